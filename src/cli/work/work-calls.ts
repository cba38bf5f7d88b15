import { problemOf } from '../../schedules-file/apply/caller.ts';
import { type Answer, type Server, connectTo, pathOf, NO_ROUTE } from '../server/server-calls.ts';
import { CliError } from '../exit-codes.ts';
import type { Surroundings } from '../surroundings.ts';
import { type Claimed, claimedRuns } from './job-command.ts';
import type { JobEnd } from './job-end.ts';
import { reasonOf } from '../../runtime/reason.ts';

/**
 * What the server made of a call about a run. `refused`: asking again is of no use. `unknown`: it is of a version that does not have
 * the call. `away`: anything else, which passes.
 */
export type Said =
  | { kind: 'done'; body: unknown }
  | { kind: 'refused'; status: number; detail: string }
  | { kind: 'unknown' }
  | { kind: 'away'; reason: string };

export interface WorkCalls {
  /** @throws CliError if it is refused, or the server is away */
  claim(queue: string, ask: { max: number; waitSeconds: number }, signal: AbortSignal): Promise<Claimed[]>;
  heartbeat(run: Claimed, signal: AbortSignal): Promise<Said>;
  complete(run: Claimed, end: JobEnd): Promise<Said>;
  release(run: Claimed): Promise<Said>;
  append(run: Claimed, offset: number, bytes: Uint8Array<ArrayBuffer>): Promise<Said>;
}

/** A call that is not answered by then is made again. */
const CALL_MS = 30_000;

interface Speaker {
  workerId: string;
  leaseSeconds: number;
}

/** Ctrl-C ends no call: what is under way is to be reported. */
export function createWorkCalls(surroundings: Surroundings, speaker: Speaker): WorkCalls {
  const { env, version } = surroundings;
  const server = connectTo({ env, version, signal: new AbortController().signal });
  const { workerId } = speaker;
  const say = (run: Claimed, call: string, body: object, signal?: AbortSignal) =>
    saidOf(() => {
      const sent = { attempt: run.attempts, workerId, ...body };
      return server.ask('POST', pathOf('runs', run.id, call), {
        body: sent,
        signal: limited(CALL_MS, signal),
      });
    });
  return {
    claim: async (queue, ask, signal) => claimedRuns((await claim(server, queue, { ...speaker, ...ask }, signal)).text),
    heartbeat: (run, signal) => say(run, 'heartbeat', {}, signal),
    complete: (run, end) => say(run, 'complete', end),
    release: (run) => say(run, 'release', {}),
    append: (run, offset, bytes) =>
      saidOf(() =>
        server.ask('POST', pathOf('runs', run.id, 'log'), {
          query: { attempt: run.attempts, offset, workerId },
          bytes,
          signal: limited(CALL_MS),
        }),
      ),
  };
}

function claim(
  server: Server,
  queue: string,
  body: Speaker & { max: number; waitSeconds: number },
  signal: AbortSignal,
): Promise<Answer> {
  const limit = limited(body.waitSeconds * 1000 + CALL_MS, signal);
  return server.call('POST', pathOf('queues', queue, 'claim'), { body, signal: limit });
}

function limited(ms: number, signal?: AbortSignal): AbortSignal {
  const limit = AbortSignal.timeout(ms);
  return signal === undefined ? limit : AbortSignal.any([limit, signal]);
}

export function whyOf(error: unknown): string {
  return error instanceof CliError ? error.message : reasonOf(error);
}

const REFUSALS = [400, 404, 409, 413, 415, 422];

async function saidOf(ask: () => Promise<Answer>): Promise<Said> {
  try {
    const answer = await ask();
    const { status, text } = answer;
    if (status >= 200 && status < 300) return { kind: 'done', body: answer.body() };
    const detail = problemOf(text).detail;
    if (status === 404 && (detail ?? NO_ROUTE) === NO_ROUTE) return { kind: 'unknown' };
    const reason = detail ?? `the server answered ${status}`;
    return REFUSALS.includes(status) ? { kind: 'refused', status, detail: reason } : { kind: 'away', reason };
  } catch (error) {
    return { kind: 'away', reason: whyOf(error) };
  }
}
