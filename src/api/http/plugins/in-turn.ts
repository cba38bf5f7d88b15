import type { RouteOptions, FastifyReply, preParsingAsyncHookHandler } from 'fastify';
import { createTurns, onBehalfOf } from '../../../runtime/loop/turns.ts';
import type { Api } from '../../deps.ts';
import { unavailable } from '../problem.ts';
import { READING } from '../routes.ts';
import { BATCH_BODY_LIMIT, BODY_LIMIT } from './bodies.ts';

export function takeCallsInTurn(api: Api): void {
  takeSlowCallsInTurn(api);
  askInTurn(api);
}

const MOST_WAITING = 200;
/** Of one caller; where callers have no names, from one address. */
const MOST_OF_CALLER = 50;
const LONGEST_WAIT_MS = 60_000;

/**
 * Calls of routes whose pace is `slow` go on one at a time, so that they take one connection, and never all of those that
 * background work needs. Callers take turns. A call goes on to its end, also when its client has gone: the next one waits for
 * that too.
 */
function takeSlowCallsInTurn(api: Api): void {
  const turns = createTurns({ places: 1, mostWaiting: MOST_WAITING, mostOfKey: MOST_OF_CALLER });
  const inTurn = (handler: RouteOptions['handler']): RouteOptions['handler'] =>
    async function takeTurn(request, reply) {
      const patience = { limitMs: LONGEST_WAIT_MS, signal: whenGone(reply) };
      const leave = await turns.take(request.caller.name ?? request.ip, patience);
      if (leave === null) throw unavailable('too many slow calls are waiting already');
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

/** The statements of callers take turns, and one caller's that only read have half of the connections at most. */
function askInTurn(api: Api): void {
  api.addHook('onRoute', (route) => {
    const { handler } = route;
    route.handler = function askInTurn(request, reply) {
      const { caller, ip, method } = request;
      const isModest = caller.name !== null && READING.includes(method);
      const key = `${isModest ? 'reads ' : ''}${caller.name ?? ip}`;
      return onBehalfOf({ key, isModest }, () => handler.call(this, request, reply));
    };
  });
}

/** Aborted when the client goes away without an answer. The request does not show that: it ends once its body is read. */
export function whenGone({ raw }: FastifyReply): AbortSignal {
  const gone = new AbortController();
  raw.once('close', () => gone.abort());
  if (raw.destroyed) gone.abort();
  return gone.signal;
}

/** Together with BATCH_BODY_LIMIT, this bounds the memory of all large bodies. */
const AT_ONCE = 8;

/**
 * Routes with large bodies read and answer this many at once. Further bodies wait unread, on the client's side of the
 * connection, for no longer than a request may take to arrive.
 */
export function takeLargeBodiesInTurn(server: Api): void {
  const turns = createTurns({ places: AT_ONCE, mostWaiting: Infinity, mostOfKey: Infinity });
  const inTurn: preParsingAsyncHookHandler = async ({ headers }, reply, payload) => {
    const announced = Number(headers['content-length'] ?? BATCH_BODY_LIMIT);
    // A body whose announced length is too large is refused before any of it is read.
    if (announced <= BODY_LIMIT || announced > BATCH_BODY_LIMIT) return payload;
    const leave = await turns.take('', { signal: whenGone(reply) });
    if (reply.raw.closed) leave?.();
    else if (leave !== null) reply.raw.once('close', leave);
    return payload;
  };
  server.addHook('onRoute', (route) => {
    if ((route.bodyLimit ?? 0) > BODY_LIMIT) route.preParsing = inTurn;
  });
}
