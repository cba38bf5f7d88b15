import type { Api } from '../deps.ts';
import type { Caller, RoleNeeded } from '../../core/access/roles.ts';
import type { Access } from './access.ts';

declare module 'fastify' {
  interface FastifyRequest {
    /** Who calls; of a request under `/api/v1`. */
    caller: Caller;
  }
  interface FastifyContextConfig {
    /** Which role a route under `/api/v1` asks of its caller. */
    role?: RoleNeeded;
  }
}

/**
 * Asks every caller of the routes that are added after this one who they are, also where there is no route: without a token
 * a stranger does not learn which paths exist.
 */
export function guardRoutes(api: Api, access: Access): void {
  api.decorateRequest('caller', null as unknown as Caller);
  api.addHook('onRoute', ({ method, url, config }) => {
    if (config?.role === undefined) throw new Error(noRole([method].flat().join(', '), url));
  });
  api.addHook('onRequest', async (request) => {
    request.caller = access.identify(request.raw);
    if (request.is404) return Promise.resolve();
    const { role } = request.routeOptions.config;
    if (role === undefined) throw new Error(noRole(request.method, request.url));
    access.authorize(request.raw, request.caller, role);
    return Promise.resolve();
  });
}

function noRole(method: string, url: string): string {
  return (
    `the route ${method} ${url} does not say who may call it: add "config: { role: … }" to its options, with viewer ` +
    '(it only reads), worker (queue claims and reports on runs), operator (it acts on runs), admin (everything else), ' +
    'or any (every role)'
  );
}
