import type { FastifyRequest } from 'fastify';
import type { Api } from '../deps.ts';
import type { Access } from './access.ts';
import type { CallPace } from './calls-under-way.ts';

declare module 'fastify' {
  interface FastifyContextConfig {
    /** How long a call of this route may take, and so what it must not hold up; `usual` if it does not say. */
    pace?: CallPace;
  }
}

/**
 * Counts the calls of each caller that are under way, from their headers to their answer. The work for a client that has
 * gone goes on, so it is counted to its end: else a caller could have any amount of work under way by hanging up.
 */
export function countCallsUnderWay(api: Api, access: Access): void {
  const working = new WeakMap<FastifyRequest, Promise<unknown>>();
  api.addHook('onRoute', (route) => {
    const { handler } = route;
    route.handler = function noteWork(request, reply) {
      const work: unknown = handler.call(this, request, reply);
      if (work instanceof Promise) working.set(request, work);
      return work;
    };
  });
  api.addHook('onRequest', async (request, reply) => {
    if (request.is404) return Promise.resolve();
    const leave = access.enter(request.raw, request.routeOptions.config.pace ?? 'usual');
    reply.raw.once('close', () => void Promise.resolve(working.get(request)).then(leave, leave));
    return Promise.resolve();
  });
}
