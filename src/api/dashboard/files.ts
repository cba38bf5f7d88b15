import { createHash } from 'node:crypto';
import { readFileSync, readdirSync } from 'node:fs';
import { readFile } from 'node:fs/promises';
import { extname, join } from 'node:path';
import { promisify } from 'node:util';
import { constants, gzip } from 'node:zlib';

/** One file of the dashboard, in both forms in which it is sent. */
export interface DashboardFile {
  type: string;
  plain: Buffer;
  zipped: Buffer;
  etag: string;
}

/** What `npm run build` has made of web/. */
export interface Dashboard {
  /** Paths that show the dashboard, as routes: `/schedules/:id`. */
  pages: readonly string[];
  /** The document of all pages, for a daemon whose paths begin with this. */
  document(basePath: string): Promise<DashboardFile>;
  /** Null: there is no such file. Their names contain a hash of what is in them. */
  asset(name: string): Promise<DashboardFile | null>;
}

/** The same from src/ and from dist/, whose folders are equally deep. */
const BUILT = join(import.meta.dirname, '..', '..', '..', 'dist', 'web');

/** Null: it was not built. Each file is read, and compressed, when it is asked for first. */
export function readDashboard(directory = BUILT): Dashboard | null {
  const listed = listFiles(directory);
  if (listed === null) return null;
  const { pages, names } = listed;
  const files = new Map<string, Promise<DashboardFile>>();
  const once = (name: string, read: () => Promise<Buffer>): Promise<DashboardFile> => {
    const known = files.get(name);
    if (known) return known;
    const file = read().then((bytes) => pack(name, bytes));
    files.set(name, file);
    // What could not be read now may be later.
    file.catch(() => files.delete(name));
    return file;
  };
  return {
    pages,
    document: (basePath) =>
      once('index.html', async () => {
        const html = await readFile(join(directory, 'index.html'), 'utf8');
        return Buffer.from(html.replace('<base href="/"', `<base href="${basePath}/"`));
      }),
    asset: (name) =>
      names.has(name)
        ? once(`assets/${name}`, () => readFile(join(directory, 'assets', name)))
        : Promise.resolve(null),
  };
}

function listFiles(directory: string): { pages: string[]; names: ReadonlySet<string> } | null {
  try {
    const pages = JSON.parse(readFileSync(join(directory, 'pages.json'), 'utf8')) as Record<string, string>;
    return { pages: Object.values(pages), names: new Set(readdirSync(join(directory, 'assets'))) };
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

const zip = promisify(gzip);

async function pack(name: string, plain: Buffer): Promise<DashboardFile> {
  return {
    type: TYPES[extname(name)] ?? 'application/octet-stream',
    plain,
    zipped: await zip(plain, { level: constants.Z_BEST_COMPRESSION }),
    etag: `"${createHash('sha256').update(plain).digest('base64url').slice(0, 22)}"`,
  };
}
