/**
 * Guarantees: what is asked of one run is done wholly or not at all, and refused where its state, or a newer attempt, does not allow it.
 * Transaction: one, under the run's row lock, taken by an earlier statement than the write; a heartbeat is one guarded statement.
 * If the process dies here: it is done or not; asking again answers the same. A target may not have been told of a cancellation.
 */
import type { RunSettled } from '../core/events.ts';
import type { Instant } from '../core/instant.ts';
import {
  type CompletionWord,
  type Decision,
  type RunState,
  type Speaker,
  decideCancel,
  decideComplete,
  decideHeartbeat,
  decideRetry,
} from '../core/run-actions.ts';
import { type Run, scheduledForOf } from '../core/run.ts';
import type { EventBus } from '../runtime/event-bus.ts';
import type { Database } from '../store/database.ts';
import { TryAgain } from '../store/errors.ts';
import type { Transaction } from '../store/executor.ts';
import { type Aftermath, NO_AFTERMATH } from '../store/followers.ts';
import {
  type LockedRun,
  type ReportedEnd,
  cancelUnderLock,
  completeUnderLock,
  heartbeatIfCurrent,
  keepScheduleOf,
  lockRun,
  retryUnderLock,
  stateOfRun,
} from '../store/run-actions.ts';
import { findRun } from '../store/runs.ts';

export interface RunActionDeps {
  database: Database;
  events: EventBus;
  /** Sees to what ends brought about. */
  followUp: (aftermath: Aftermath) => void;
}

export type ActionResult =
  | { kind: 'done'; run: Run }
  | { kind: 'noSuchRun' }
  /** `standing`: what the run is instead, for programs. */
  | { kind: 'notPossible'; message: string; standing: RunStanding };

export type RunStanding = Pick<RunState, 'status' | 'reason' | 'attempts'>;

export interface CompletionReport extends CompletionWord {
  /** Text to keep as the result's body, already cut and storable; null: none was given. */
  result: string | null;
}

export interface HeartbeatReport extends Speaker {
  /** 0 … 1 */
  progress: number | null;
}

/** Ends a run that has not ended; one that was cancelled already stays as it is. */
export async function cancelRun(deps: RunActionDeps, id: string): Promise<ActionResult> {
  return act(deps, id, {
    decide: decideCancel,
    write: async (tx, run, { toTell }) => {
      const aftermath = await cancelUnderLock(tx, run);
      return () => {
        deps.events.emit({ type: 'runsCancelled', reason: 'request', count: 1, runId: id });
        const stopped = toTell ? [{ ...run, attempt: run.attempts }] : [];
        deps.followUp({ ...aftermath, stopped });
      };
    },
  });
}

/** Opens a run again that has ended and not succeeded, whatever `overlap` its schedule has. */
export async function retryRun(deps: RunActionDeps, id: string): Promise<ActionResult> {
  return act(deps, id, {
    keepsSchedule: true,
    decide: (run, hasSchedule) => decideRetry(run, run.scheduleId !== null && !hasSchedule),
    write: async (tx, run, { status }) => {
      const { queue } = await retryUnderLock(tx, run, status);
      return () => {
        const { scheduleId, status: was } = run;
        deps.events.emit({ type: 'runRetried', runId: id, scheduleId, was });
        const toClaim = status === 'pending' ? 1 : 0;
        const toPull = toClaim > 0 && queue !== null;
        deps.followUp({ ...NO_AFTERMATH, toClaim, toPull, openedSince: scheduledForOf(id) });
      };
    },
  });
}

/** Ends a run by the word of who worked on it, also before the outcome of the attempt itself is written. */
export async function completeRun(
  deps: RunActionDeps,
  id: string,
  word: CompletionReport,
): Promise<ActionResult> {
  return act(deps, id, {
    decide: (run) => decideComplete(run, word),
    write: async (tx, run, { status, error }) => {
      const end = { status, error, result: word.result };
      const { finishedAt, aftermath } = await completeUnderLock(tx, run, end);
      return () => {
        const { scheduleId, attempts: attempt } = run;
        const settlement = toldOf(run, end, finishedAt);
        deps.events.emit({ type: 'runCompleted', runId: id, scheduleId, attempt, settlement });
        deps.followUp(aftermath);
      };
    },
  });
}

/** Says that a run is being worked on: by then it expires later. */
export async function heartbeatRun(
  { database }: RunActionDeps,
  id: string,
  word: HeartbeatReport,
): Promise<ActionResult> {
  return database.run(async (db): Promise<ActionResult> => {
    if (await heartbeatIfCurrent(db, id, word)) return answer(await findRun(db, id));
    const run = await stateOfRun(db, id);
    if (!run) return { kind: 'noSuchRun' };
    const decision = decideHeartbeat(run, word);
    if (decision.kind === 'notPossible') return { ...decision, standing: standingOf(run) };
    // A claim came in between.
    throw new TryAgain(`run ${id} was written while its heartbeat came`);
  });
}

interface Action<Write> {
  /** Whether it is about the schedule of the run as well, which then stays until the action is done. */
  keepsSchedule?: boolean;
  decide: (run: LockedRun, hasSchedule: boolean) => Decision<Write>;
  /** Answers how to tell of it once it is committed. */
  write: (tx: Transaction, run: LockedRun, decision: Write) => Promise<() => void>;
}

async function act<Write>(
  { database }: RunActionDeps,
  id: string,
  { keepsSchedule = false, decide, write }: Action<Write>,
): Promise<ActionResult> {
  const { result, tell } = await database.transaction(async (tx): Promise<Acted> => {
    // The schedule first, as everybody locks them.
    const hasSchedule = keepsSchedule && (await keepScheduleOf(tx, id));
    const run = await lockRun(tx, id);
    if (!run) return { result: { kind: 'noSuchRun' } };
    const decision = decide(run, hasSchedule);
    if (decision.kind === 'notPossible') return { result: { ...decision, standing: standingOf(run) } };
    if (decision.kind === 'asItIs') return { result: answer(await findRun(tx, id)) };
    const tell = await write(tx, run, decision);
    return { result: answer(await findRun(tx, id)), tell };
  });
  tell?.();
  return result;
}

interface Acted {
  result: ActionResult;
  tell?: () => void;
}

function toldOf(
  { firstClaimedAt, lostAt, handedOffAt }: LockedRun,
  { status, error }: ReportedEnd,
  finishedAt: Instant,
): RunSettled {
  return {
    status,
    error: error?.message ?? null,
    durationMs: firstClaimedAt === null ? null : finishedAt - firstClaimedAt,
    retryAt: null,
    // What was handed off before has been told of already.
    recovered: lostAt !== null && handedOffAt === null,
    inDoubt: false,
  };
}

function standingOf({ status, reason, attempts }: RunState): RunStanding {
  return { status, reason, attempts };
}

function answer(run: Run | null): ActionResult {
  return run ? { kind: 'done', run } : { kind: 'noSuchRun' };
}
