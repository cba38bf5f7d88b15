import type { Api, ApiDeps } from '../deps.ts';
import { Problem, nothingHere } from '../http/problem.ts';
import { sendPacked } from '../http/packed-file.ts';

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
