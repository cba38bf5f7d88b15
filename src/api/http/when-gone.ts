import type { FastifyReply } from 'fastify';

/** Aborted when the client goes away without an answer. The request does not show that: it ends once its body is read. */
export function whenGone({ raw }: FastifyReply): AbortSignal {
  const gone = new AbortController();
  raw.once('close', () => gone.abort());
  if (raw.destroyed) gone.abort();
  return gone.signal;
}
