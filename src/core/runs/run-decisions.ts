import type { AttemptError } from './attempts/outcome.ts';
import type { RunFields, RunStatus, RunTrigger } from './run.ts';

/** The fields of a run's locked row that decide about an action on it. */
export interface RunState {
  trigger: RunTrigger;
  status: RunStatus;
  reason: string | null;
  attempts: number;
  /**
   * The first attempt that the target may be reporting on, since no newer one is known to have been sent; null: the
   * last attempt.
   */
  attemptInDoubt: number | null;
  /** The worker that last claimed a pull run. */
  workerId: string | null;
  /** How many runs it waits for; null: it depends on none. */
  openDependencies: number | null;
  observed: boolean;
}

/** `asItIs`: the run is in the requested state already. */
export type Decision<Write> =
  ({ kind: 'write' } & Write) | { kind: 'asItIs' } | { kind: 'notPossible'; message: string };

/** The attempt, and the worker, that a report names; null: it names none. Of a run that a worker has claimed, it must name that worker. */
export interface Speaker {
  attempt: number | null;
  workerId: string | null;
}

/** The statuses in which a run can be opened again. */
export const RETRIABLE: readonly RunStatus[] = ['failed', 'unknown', 'abandoned', 'skipped', 'cancelled'];

/** The statuses in which a run can be cancelled. */
export const CANCELLABLE: readonly RunStatus[] = ['waiting', 'pending', 'running'];

export function decideCancel({ status }: RunState): Decision<object> {
  if (status === 'cancelled') return { kind: 'asItIs' };
  if (CANCELLABLE.includes(status)) return { kind: 'write' };
  return notPossible(`the run has ended as ${status}: there is nothing to cancel`);
}

/** `isScheduleGone` has no meaning for a one-off run, which has no schedule. */
export function decideRetry(
  { status, openDependencies, observed }: RunState,
  isScheduleGone: boolean,
): Decision<{ status: 'pending' | 'waiting' }> {
  if (!RETRIABLE.includes(status)) {
    return notPossible(
      status === 'succeeded'
        ? 'the run has succeeded: there is nothing to retry'
        : `the run is ${status}: it has not ended yet`,
    );
  }
  if (observed) return notPossible('the run is observed: another scheduler runs the job, and nothing is sent');
  if (isScheduleGone) return notPossible('the schedule of the run was deleted, so the run cannot be retried');
  // No dependent starts before the runs that it depends on have ended.
  return { kind: 'write', status: (openDependencies ?? 0) > 0 ? 'waiting' : 'pending' };
}

export interface CompletionWord extends Speaker {
  status: 'succeeded' | 'failed';
  /** The error, in the reporter's words. */
  error: string | null;
}

export function decideComplete(
  run: RunState,
  word: CompletionWord,
): Decision<{ status: 'succeeded' | 'failed'; error: AttemptError | null }> {
  if (run.trigger === 'notify') return notPossible(OF_NOTIFIER);
  const isRepeated = run.status === word.status;
  const mayEnd = run.status === 'unknown' || isUnderWay(run);
  if (!isRepeated && !mayEnd) return notPossible(stateOf(run));
  const stale = staleness(run, word);
  if (stale !== null) return notPossible(stale);
  if (isRepeated) return { kind: 'asItIs' };
  const { status } = word;
  return { kind: 'write', status, error: status === 'failed' ? reported(word.error) : null };
}

/** A failure that passes. Between two attempts the last one has been counted already, or was given back: then nothing changes. */
export function decideTransient(
  run: RunState & Pick<RunFields, 'claimedBy'>,
  word: Omit<CompletionWord, 'status'>,
): ReturnType<typeof decideComplete> {
  const decision = decideComplete(run, { ...word, status: 'failed' });
  const isBetween = run.status === 'pending' && run.claimedBy === null && !run.observed;
  return decision.kind === 'write' && isBetween ? { kind: 'asItIs' } : decision;
}

/** Gives back what a worker has claimed and not begun. `hasLog`: the attempt has printed something. */
export function decideRelease(
  run: RunState & Pick<RunFields, 'claimedBy' | 'progress'>,
  { hasLog, ...speaker }: Speaker & { hasLog: boolean },
): Decision<object> {
  if (run.workerId === null) return notPossible('no worker has claimed the run: there is nothing to release');
  const isGivenBack = run.status === 'pending' && run.claimedBy === null;
  if (run.status !== 'running' && !isGivenBack) return notPossible(stateOf(run));
  const stale = staleness(run, speaker);
  if (stale !== null) return notPossible(stale);
  if (isGivenBack) return { kind: 'asItIs' };
  if (run.progress !== null || hasLog) return notPossible(hasBegun(hasLog ? 'log' : 'progress'));
  return { kind: 'write' };
}

function hasBegun(by: string): string {
  return `the worker has begun the run, by its ${by}: it can only be completed`;
}

export function decideHeartbeat(run: RunState, speaker: Speaker): Decision<object> {
  if (run.trigger === 'notify') return notPossible(OF_NOTIFIER);
  if (!isUnderWay(run)) return notPossible(stateOf(run));
  const stale = staleness(run, speaker);
  return stale === null ? { kind: 'write' } : notPossible(stale);
}

/** For how long after its end a run takes what was on its way to its log. */
const LOG_AFTER_END_MS = 60_000;

/**
 * Whether the log of a run takes what this speaker appends, who need not say which worker it is. `endedMsAgo`: null, it has not ended.
 */
export function decideAppend(
  run: Omit<RunState, 'openDependencies'>,
  { attempt, workerId }: Speaker,
  endedMsAgo: number | null,
): Decision<object> {
  if (run.trigger === 'notify') return notPossible(OF_NOTIFIER);
  if (run.attempts === 0 || !(endedMsAgo === null ? isUnderWay(run) : endedMsAgo <= LOG_AFTER_END_MS))
    return notPossible(stateOf(run));
  const stale = staleness(run, { attempt, workerId: workerId ?? run.workerId });
  return stale === null ? { kind: 'write' } : notPossible(stale);
}

const OF_NOTIFIER = 'the run is a message of a notifier: only its receiver says whether it arrived';

function isUnderWay({ status, attempts, observed }: Pick<RunState, 'status' | 'attempts' | 'observed'>): boolean {
  return status === 'running' || (status === 'pending' && (attempts > 0 || observed));
}

function reported(error: string | null): AttemptError {
  return { kind: 'reported', message: error ?? 'reported as failed' };
}

/** Tells a worker whether to go on. */
function stateOf({ status, reason }: Pick<RunState, 'status' | 'reason'>): string {
  if (status === 'pending' || status === 'waiting') return `the run is ${status}: no attempt has started`;
  return `the run has ended as ${status}${reason === null ? '' : ` (${reason})`}`;
}

function staleness(run: Omit<RunState, 'openDependencies'>, { attempt, workerId }: Speaker): string | null {
  if (attempt !== null && (attempt > run.attempts || attempt < (run.attemptInDoubt ?? run.attempts)))
    return `attempt ${attempt} is not the current one (${run.attempts})`;
  if (workerId === run.workerId) return null;
  if (run.workerId === null) return `the run is not claimed by worker ${workerId}: no worker has claimed it`;
  // The right name would let a stranger speak for that worker.
  return workerId === null
    ? 'a worker has claimed the run: workerId must name it'
    : `the run is not claimed by worker ${workerId}`;
}

function notPossible(message: string): { kind: 'notPossible'; message: string } {
  return { kind: 'notPossible', message };
}
