import { readdirSync, readFileSync } from 'node:fs';
import { extname, join } from 'node:path';
import type { Api, ApiDeps, Dashboard } from '../deps.ts';
import { nothingHere, Problem } from '../http/problem.ts';
import { type PackedFile, pack, sendPacked } from '../http/packed-file.ts';

/** Nothing but what the daemon itself serves, and nothing inline. */
const POLICY = [
  "default-src 'none'",
  "script-src 'self'",
  "style-src 'self'",
  "img-src 'self'",
  "connect-src 'self'",
  "base-uri 'self'",
  "form-action 'none'",
  "frame-ancestors 'none'",
].join('; ');

const DOCUMENT_HEADERS = {
  'Content-Security-Policy': POLICY,
  'Referrer-Policy': 'no-referrer',
  'Cross-Origin-Opener-Policy': 'same-origin',
  'Cache-Control': 'no-cache',
};

/** An asset's name contains a hash of what is in it. */
const ASSET_HEADERS = { 'Cache-Control': 'public, max-age=31536000, immutable' };

const hidden = { schema: { hide: true } };

/** The pages of the dashboard. They need no token: they read their data from the API, which asks for one. */
export function addDashboard(server: Api, deps: ApiDeps): void {
  const { dashboard, basePath } = deps;
  if (dashboard === null) {
    server.get('/', hidden, () => {
      throw new Problem(404, 'the dashboard is not built; run `npm run build`');
    });
    return;
  }
  for (const [page, options] of dashboard.pages.flatMap((path) => routesOf(path, basePath))) {
    server.get(page, options, async (request, reply) =>
      sendPacked(request, reply.headers(DOCUMENT_HEADERS), await dashboard.document(deps)),
    );
  }
  server.get<{ Params: { name: string } }>('/assets/:name', hidden, async (request, reply) => {
    const asset = await dashboard.asset(request.params.name);
    if (asset === null) throw nothingHere();
    return sendPacked(request, reply.headers(ASSET_HEADERS), asset);
  });
}

/**
 * A browser at a path where nothing is gets the document, which says so; all others, and paths of the API, get a problem.
 * For the whole server: its hooks alone run where there is no route.
 */
export function answerLostBrowsers(server: Api, deps: ApiDeps): void {
  const { dashboard, basePath } = deps;
  if (dashboard === null) return;
  server.addHook('onRequest', async (request, reply) => {
    const { is404, method, url, headers } = request;
    const isLost = is404 && (method === 'GET' || method === 'HEAD') && url.startsWith(`${basePath}/`);
    if (!isLost || url.startsWith(`${basePath}/api/`) || !/\btext\/html\b/.test(headers.accept ?? '')) return;
    return sendPacked(request, reply.code(404).headers(DOCUMENT_HEADERS), await dashboard.document(deps));
  });
}

/** `/cron` and `/cron/` are two routes, so that both know which methods they take. */
function routesOf(page: string, basePath: string) {
  if (page !== '/' || basePath === '') return [[page, hidden] as const];
  return (['slash', 'no-slash'] as const).map(
    (prefixTrailingSlash) => [page, { ...hidden, prefixTrailingSlash }] as const,
  );
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
