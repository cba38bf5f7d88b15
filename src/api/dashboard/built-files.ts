import { readFileSync, readdirSync } from 'node:fs';
import { extname, join } from 'node:path';
import { type PackedFile, pack } from '../http/packed-file.ts';

interface DocumentFacts {
  /** With which the paths of the daemon begin. */
  basePath: string;
  /** Its signs of life are on another port. */
  hasSignsElsewhere: boolean;
}

/** The files that `npm run build` has made of web/. */
export interface Dashboard {
  /** Paths that show the dashboard, as routes: `/schedules/:id`. */
  pages: readonly string[];
  /** The document of all pages. It tells them for which daemon it is written, and is the same in each call. */
  document(daemon: DocumentFacts): Promise<PackedFile>;
  /** Null: there is no such file. The names contain a hash of the content. */
  asset(name: string): Promise<PackedFile | null>;
}

/** The path is the same from src/ and from dist/, whose folders are equally deep. */
const BUILT = join(import.meta.dirname, '..', '..', '..', 'dist', 'web');

/**
 * Null: the dashboard was not built. All files are read at once, so that they stay files of one build while another
 * build replaces them. Each is compressed at its first request.
 */
export function readDashboard(directory = BUILT): Dashboard | null {
  const read = readFiles(directory);
  if (read === null) return null;
  const packed = new Map<string, Promise<PackedFile>>();
  const once = (name: string, bytes: Buffer): Promise<PackedFile> => {
    const file = packed.get(name) ?? pack(TYPES[extname(name)] ?? 'application/octet-stream', bytes);
    packed.set(name, file);
    return file;
  };
  return {
    pages: read.pages,
    document: ({ basePath, hasSignsElsewhere }) => {
      const signs = hasSignsElsewhere ? ' data-signs="elsewhere"' : '';
      const html = read.html.replace('<base href="/"', `<base href="${basePath}/"${signs}`);
      return once('index.html', Buffer.from(html));
    },
    asset: (name) => {
      const bytes = read.assets.get(name);
      return bytes === undefined ? Promise.resolve(null) : once(`assets/${name}`, bytes);
    },
  };
}

function readFiles(directory: string) {
  try {
    const text = (name: string) => readFileSync(join(directory, name), 'utf8');
    const pages = Object.values(JSON.parse(text('pages.json')) as Record<string, string>);
    const names = readdirSync(join(directory, 'assets'));
    const assets = new Map(names.map((name) => [name, readFileSync(join(directory, 'assets', name))]));
    return { pages, html: text('index.html'), assets };
  } catch {
    return null;
  }
}

const TYPES: Record<string, string> = {
  '.html': 'text/html; charset=utf-8',
  '.js': 'text/javascript; charset=utf-8',
  '.css': 'text/css; charset=utf-8',
  '.svg': 'image/svg+xml',
};
