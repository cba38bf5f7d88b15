import type { ClaimedRun } from '../generated/types.gen.ts';
import { JsonText, stringifyJson } from '../json-text.ts';
import { Problem } from '../problem.ts';
import { messageOf } from '../receiver/reply.ts';
import type { Calls, Speaker } from './calls.ts';
import type { Places } from './places.ts';
import { every, isFinal, untilTaken } from './repeat.ts';
import { createRunLog } from './run-log.ts';

/** What the work has to do with its run. */
export interface RunJob {
  /** Aborted when the run was cancelled, or is not this worker's any more: nobody wants the result. */
  signal: AbortSignal;
  /** Appends to the run's log. */
  log: (text: string) => void;
  /** How much is done, from 0 to 1; the next heartbeat tells it. */
  progress: (done: number) => void;
}

export type RunHandler = (run: ClaimedRun, job: RunJob) => unknown;

export interface Leading {
  calls: Calls;
  handler: RunHandler;
  workerId: string;
  leaseSeconds: number;
  logSeconds: number;
  isRefusal: (error: unknown) => boolean;
  onError: (error: unknown, runId: string | null) => void;
  /** For runs that are being worked on. */
  slots: Places;
  /** Aborted: what has not begun is released. */
  stopping: AbortSignal;
}

type Outcome = { status: 'succeeded'; result: JsonText } | { status: 'failed'; error: string; retry?: true };

/** Longer ones are cut by the daemon. */
const MOST_OF_ERROR = 4096;
const LOG_TRIES = 3;

/** Leads a claimed run to its end: keeps the lease, has the work done, sends the log, reports. Does not throw. */
export async function lead(run: ClaimedRun, lost: AbortController, leading: Leading): Promise<void> {
  const { calls, slots, stopping, workerId, leaseSeconds } = leading;
  const onError = (error: unknown) => leading.onError(error, run.id);
  const speaker: Speaker = { attempt: run.attempts, workerId };
  let progress: number | undefined;
  const stopBeats = every(leaseSeconds / 3, () =>
    calls.heartbeat(run.id, { ...speaker, progress }).then(
      () => undefined,
      (error: unknown) => {
        onError(error);
        // Else the daemon is away: whether the lease was lost meanwhile is said when it is back.
        if (isFinal(error)) lost.abort(error);
      },
    ),
  );
  try {
    if (await slots.take(AbortSignal.any([stopping, lost.signal]))) {
      const job = { signal: lost.signal, progress: (done: number) => (progress = done) };
      await follow(run, job, { leading, speaker, lost, onError }).finally(() => slots.give());
    } else if (!lost.signal.aborted) {
      await calls.release(run.id, speaker).catch(onError);
    }
  } finally {
    stopBeats();
  }
}

interface Following {
  leading: Leading;
  speaker: Speaker;
  lost: AbortController;
  onError: (error: unknown) => void;
}

async function follow(run: ClaimedRun, job: Omit<RunJob, 'log'>, following: Following): Promise<void> {
  const { leading, speaker, lost, onError } = following;
  const log = createRunLog((offset, text) => leading.calls.append(run.id, speaker, offset, text));
  const noteLog = (error: unknown) => {
    onError(error);
    if (error instanceof Problem && error.status === 409) lost.abort(error);
  };
  const flush = () => log.flush().catch(noteLog);
  const write = (text: string) => {
    if (log.write(text)) void flush();
  };
  const stopFlushes = every(leading.logSeconds, flush);
  const outcome = await outcomeOf(run, { ...job, log: write }, leading).finally(stopFlushes);
  if (!lost.signal.aborted) await untilTaken(log.flush, { tries: LOG_TRIES, onError }).catch(noteLog);
  if (!lost.signal.aborted) await report(run.id, outcome, following);
}

async function outcomeOf(run: ClaimedRun, job: RunJob, leading: Leading): Promise<Outcome> {
  try {
    return {
      status: 'succeeded',
      result: new JsonText(stringifyJson((await leading.handler(run, job)) ?? null)),
    };
  } catch (error) {
    leading.onError(error, run.id);
    const outcome = { status: 'failed' as const, error: messageOf(error).slice(0, MOST_OF_ERROR) };
    return leading.isRefusal(error) ? outcome : { ...outcome, retry: true };
  }
}

/** Until an instance takes it, also while stopping: a run without a report is done again. */
async function report(id: string, outcome: Outcome, following: Following): Promise<void> {
  const { speaker, leading, onError } = following;
  try {
    await untilTaken(() => leading.calls.complete(id, { ...outcome, ...speaker }), { onError });
  } catch (error) {
    onError(error);
    const isOurs = error instanceof Problem && error.status !== 404 && error.status !== 409;
    // A result that is too long, for example: without this the run would come again, and end the same.
    if (isOurs && outcome.status === 'succeeded')
      await report(id, { status: 'failed', error: error.message }, following);
  }
}
