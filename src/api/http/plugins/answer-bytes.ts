import type { FastifyRequest } from 'fastify';
import type { AnswerLimits, Api } from '../../deps.ts';
import { READING } from '../routes.ts';
import { Problem, unavailable } from '../problem.ts';

/** So small an answer is sent in any case, and a refusal is one. */
const SMALL = 16 * 1024;
const RETRY_SECONDS = 1;

/**
 * Counts the bytes of answers under way. Beyond a limit, a call that only reads is answered 429 or 503 in its place: before its work, or
 * after it, where the answer would not fit beside others. What changes something is never refused once it is done.
 */
export function limitAnswers(
  api: Api,
  limits: AnswerLimits,
  /** A call was refused because its caller leaves too much unread. */
  onRefused: (request: FastifyRequest) => void,
): void {
  const held = createHeld();
  /** Null: so many bytes more have room. What is under way alone always has. */
  const faultOf = (request: FastifyRequest, more: number): Problem | null => {
    const { own, all } = held.by(keyOf(request));
    if (own > 0 && own + more > limits.ofCaller) {
      onRefused(request);
      const headers = { 'Retry-After': String(RETRY_SECONDS) };
      return new Problem(429, 'too many bytes of answers to you are not read yet', { headers });
    }
    if (all === 0 || all + more <= limits.inAll) return null;
    return unavailable('too many bytes of answers are not read yet');
  };
  api.addHook('onRequest', async (request) => {
    const problem = mayBeRefused(request) ? faultOf(request, 1) : null;
    if (problem !== null) throw problem;
    return Promise.resolve();
  });
  api.addHook('onSend', async (request, reply, payload) => {
    // It has not been found out who calls, or a stream.
    if (!hasCaller(request) || (typeof payload !== 'string' && !Buffer.isBuffer(payload))) return payload;
    const bytes = Buffer.byteLength(payload);
    if (bytes > SMALL && READING.includes(request.method)) {
      const problem = faultOf(request, bytes);
      if (problem !== null) throw problem;
    }
    if (!reply.raw.destroyed) {
      const key = keyOf(request);
      held.add(key, bytes);
      reply.raw.once('close', () => held.add(key, -bytes));
    }
    // A text would be kept beside the bytes that are sent.
    return Promise.resolve(typeof payload === 'string' && bytes > SMALL ? Buffer.from(payload) : payload);
  });
}

/** Bytes by caller, and of all. */
function createHeld() {
  const byCaller = new Map<string, number>();
  let all = 0;
  return {
    by: (key: string) => ({ own: byCaller.get(key) ?? 0, all }),
    add: (key: string, bytes: number) => {
      all += bytes;
      const own = (byCaller.get(key) ?? 0) + bytes;
      if (own > 0) byCaller.set(key, own);
      else byCaller.delete(key);
    },
  };
}

/** Its answer may be large, and it has changed nothing yet. A claim may wait meanwhile for what it could not be sent. */
function mayBeRefused(request: FastifyRequest): boolean {
  const { pace } = request.routeOptions.config;
  return !request.is404 && (READING.includes(request.method) || pace === 'waits');
}

/** Before the token is looked at, there is none. */
function hasCaller({ caller }: { caller: FastifyRequest['caller'] | null }): boolean {
  return caller !== null;
}

function keyOf({ caller, ip }: FastifyRequest): string {
  return caller.name ?? ip;
}
