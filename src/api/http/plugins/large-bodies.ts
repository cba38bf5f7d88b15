import type { preParsingAsyncHookHandler } from 'fastify';
import type { Api } from '../../deps.ts';
import { BATCH_BODY_LIMIT, BODY_LIMIT } from './bodies.ts';

/** Together with BATCH_BODY_LIMIT, this bounds the memory of all large bodies. */
const AT_ONCE = 8;

/**
 * Routes with large bodies read and answer this many at once. Further bodies wait unread, on the client's side of the
 * connection, for no longer than a request may take to arrive.
 */
export function takeLargeBodiesInTurn(server: Api): void {
  const waiting: (() => void)[] = [];
  let taken = 0;
  const leave = () => {
    const next = waiting.shift();
    if (next === undefined) taken -= 1;
    else next();
  };
  const enter = async (): Promise<void> => {
    if (taken < AT_ONCE) taken += 1;
    else await new Promise<void>((resolve) => waiting.push(resolve));
  };
  const inTurn: preParsingAsyncHookHandler = async ({ headers }, { raw }, payload) => {
    const announced = Number(headers['content-length'] ?? BATCH_BODY_LIMIT);
    // A body whose announced length is too large is refused before any of it is read.
    if (announced <= BODY_LIMIT || announced > BATCH_BODY_LIMIT) return payload;
    await enter();
    if (raw.closed) leave();
    else raw.once('close', leave);
    return payload;
  };
  server.addHook('onRoute', (route) => {
    if ((route.bodyLimit ?? 0) > BODY_LIMIT) route.preParsing = inTurn;
  });
}
