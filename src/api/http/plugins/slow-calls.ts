import type { RouteOptions } from 'fastify';
import { createTurns } from '../../../runtime/loop/turns.ts';
import type { Api } from '../../deps.ts';
import { unavailable } from '../problem.ts';
import { whenGone } from '../when-gone.ts';

const MOST_WAITING = 200;
/** Of one caller; where callers have no names, from one address. */
const MOST_OF_CALLER = 50;
const LONGEST_WAIT_MS = 60_000;

/**
 * Calls of routes whose pace is `slow` go on one at a time, so that they take one connection, and never all of those that
 * background work needs. Callers take turns. A call goes on to its end, also when its client has gone: the next one waits for
 * that too.
 */
export function takeSlowCallsInTurn(api: Api): void {
  const turns = createTurns({ places: 1, mostWaiting: MOST_WAITING, mostOfKey: MOST_OF_CALLER });
  const inTurn = (handler: RouteOptions['handler']): RouteOptions['handler'] =>
    async function takeTurn(request, reply) {
      const patience = { limitMs: LONGEST_WAIT_MS, signal: whenGone(reply) };
      const leave = await turns.take(request.caller.name ?? request.ip, patience);
      if (leave === null) throw unavailable('too many calls that take long are waiting for each other');
      try {
        const answer: unknown = await handler.call(this, request, reply);
        return answer;
      } finally {
        leave();
      }
    };
  api.addHook('onRoute', (route) => {
    if (route.config?.pace === 'slow') route.handler = inTurn(route.handler);
  });
}
