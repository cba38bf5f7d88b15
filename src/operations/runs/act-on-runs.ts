/**
 * Guarantees: what is asked of one run is done wholly or not at all, and refused where its state, or a newer attempt, does not allow it.
 * Transaction: one, under the run's row lock, taken by an earlier statement than the write; a heartbeat is one guarded statement.
 * If the process dies here: it is done or not; asking again answers the same. A target may not have heard of a cancellation.
 */
import type { Scope, ScopeShares } from '../../core/access/scope.ts';
import { hasNoTarget } from '../../core/runs/run-lane.ts';
import type { AuditAction, AuditDetail } from '../../core/audit.ts';
import type { Instant } from '../../core/instant.ts';
import {
  type CompletionWord,
  decideCancel,
  decideComplete,
  decideHeartbeat,
  decideRetry,
  type Decision,
  type RunState,
  type Speaker,
} from '../../core/runs/run-decisions.ts';
import { mayBeRunId, type Run } from '../../core/runs/run.ts';
import type { OfSchedule } from '../../core/runs/new-run.ts';
import type { RunRecord } from '../../core/runs/run-record.ts';
import { endAsReported as completed, endRun, reopenRun } from '../../core/runs/transitions.ts';
import type { EventBus } from '../../runtime/event-bus.ts';
import { type Wake, wakeFor, type Work } from '../../runtime/loop/wake.ts';
import type { Database } from '../../postgres/database.ts';
import { TryAgain } from '../../postgres/errors.ts';
import type { Transaction } from '../../postgres/executor.ts';
import { type Auditor, noteOrNow } from '../../store/audit/audit-rows.ts';
import { scheduleIdOf } from '../../postgres/sql/rows.ts';
import { findRun } from '../../store/runs/search/find-runs.ts';
import { type RunChange, lockRun, saveLockedRuns, workOfChanges } from '../../store/runs/lock-and-save.ts';
import {
  findRecord,
  heartbeatIfCurrent,
  shareCurrentDefinition,
  successBoundsOf,
} from '../../store/runs/run-to-act-on.ts';
import { writeReopens } from '../../store/effects/reopen-dependents.ts';
import { type OpenRunCaps, inLaneOfScope, nameOfOneOff, nameOfRun } from '../scope-caps.ts';
import { goneNamesOf, refuseGone } from '../../store/runs/gone-names.ts';
import { judgedReport, settledOf } from './settled-by-report.ts';

/** Also of a fire by hand, and of one-off runs. */
export interface RunActionDeps {
  database: Database;
  events: EventBus;
  wake: Wake;
  auditor?: Auditor;
  /** Of the caller: what it does not show is unknown, and not named. */
  scope: Scope;
  scopeShares?: ScopeShares;
  openRunCaps?: OpenRunCaps;
}

export type ActionResult =
  | { kind: 'done'; run: Run }
  | { kind: 'noSuchRun' }
  /** `standing`: the present state of the run, for programs. */
  | { kind: 'notPossible'; message: string; summary: RunSummary };

export type RunSummary = Pick<RunState, 'status' | 'reason' | 'attempts'>;

export interface CompletionReport extends CompletionWord {
  /** Text to keep as the result's body, already cut so that it can be stored; null: none was given. */
  result: string | null;
  /** As it was given, to be judged; absent: as it is kept. */
  whole?: string | null;
}

export interface HeartbeatReport extends Speaker {
  /** 0 … 1 */
  progress: number | null;
}

/** Ends a run that has not ended; a cancelled run stays as it is. */
export const CANCEL: Action<object> = {
  audited: 'run.cancel',
  read: readsNothing,
  decide: decideCancel,
  change: (from, _, { now }) => ({ from, to: endRun(from, { status: 'cancelled', reason: 'request' }, now) }),
  emit: (events, { id }) => events.emit({ type: 'runsCancelled', reason: 'request', count: 1, runId: id }),
};

/** Opens an ended run again that has not succeeded, whatever `overlap` its schedule has. */
export const RETRY: Action<{ status: 'pending' | 'waiting' }> = {
  audited: 'run.retry',
  read: readsNothing,
  keepsSchedule: true,
  opens: true,
  decide: (run, definition) =>
    definition !== null && hasNoTarget(definition.lane)
      ? { kind: 'notPossible', message: 'the schedule of the run has no target any more: it only observes' }
      : decideRetry(run, run.scheduleId !== '' && definition === null),
  change: (from, { status }, { definition, now }) => ({
    from,
    to: reopenRun(from, definition, { status, now }),
  }),
  emit: (events, { id, scheduleId, status: was }) =>
    events.emit({ type: 'runRetried', runId: id, scheduleId: scheduleIdOf(scheduleId), was }),
};

export function cancelRun(deps: RunActionDeps, id: string): Promise<ActionResult> {
  return act(deps, id, CANCEL);
}

/** `dependents`: also what failed for want of it, down the graph, by effects that follow. */
export function retryRun(
  deps: RunActionDeps,
  id: string,
  { dependents }: { dependents: boolean } = { dependents: false },
): Promise<ActionResult> {
  if (!dependents) return act(deps, id, RETRY);
  const save = async (tx: Transaction, change: RunChange) =>
    (await saveLockedRuns(tx, [change])) + (await writeReopens(tx, [{ run: change.to, scope: deps.scope }]));
  return act(deps, id, { ...RETRY, detail: () => ({ dependents }), save });
}

/** Ends a run as its worker or target reports, even before the outcome of the attempt itself is written. */
export function completeRun(deps: RunActionDeps, id: string, word: CompletionReport): Promise<ActionResult> {
  return act(deps, id, {
    audited: 'run.complete',
    read: (tx, run) => (word.status === 'succeeded' ? successBoundsOf(tx, run) : readsNothing()),
    decide: (run) => decideComplete(run, word),
    detail: ({ attempts: attempt }, { status }) => ({ status, attempt }),
    change: (from, { status, error }, { now, known: bounds }) => {
      const to = completed(from, { status, error, result: word.result }, now);
      return { from, to, success: judgedReport(bounds, word.whole ?? to.resultBody) };
    },
    emit: (events, run, { status, error, finishedAt }) => {
      const settlement = settledOf(run, { status, error, finishedAt: finishedAt ?? 0 });
      const ofRun = { runId: id, scheduleId: scheduleIdOf(run.scheduleId), notifierId: run.notifierId };
      events.emit({ type: 'runCompleted', ...ofRun, attempt: run.attempts, settlement });
    },
  });
}

/** A heartbeat: the run expires later. */
export async function heartbeatRun(
  { database, scope }: RunActionDeps,
  id: string,
  word: HeartbeatReport,
): Promise<ActionResult> {
  return database.run(async (db): Promise<ActionResult> => {
    if (await heartbeatIfCurrent(db, id, word)) return answer(await findRun(db, id, scope));
    const run = await findRecord(db, id);
    if (!run) return { kind: 'noSuchRun' };
    const decision = decideHeartbeat(run, word);
    if (decision.kind === 'notPossible') return { ...decision, summary: summaryOf(run) };
    // A claim came in between.
    throw new TryAgain(`run ${id} was written while its heartbeat came`);
  });
}

/** `Known`: what it reads of its own. */
export interface Action<Write, Known = null> {
  audited: AuditAction;
  /** What the audit keeps of the action, beside the run's previous state. */
  detail?: (from: RunRecord, decision: Write) => AuditDetail;
  /** Whether the action is about the run's schedule as well, which then stays unchanged until the action is done. */
  keepsSchedule?: boolean;
  /** Whether the run is open afterwards, and counts towards the caps of its scope. */
  opens?: boolean;
  /** What else decides, once the run is locked. */
  read: (tx: Transaction, run: RunRecord) => Promise<Known>;
  decide: (run: RunRecord, definition: OfSchedule | null, known: Known) => Decision<Write>;
  change: (
    from: RunRecord,
    decision: Write,
    given: { definition: OfSchedule | null; known: Known; now: Instant },
  ) => RunChange;
  /** Answers how many effects there are to see to. */
  save?: (tx: Transaction, change: RunChange) => Promise<number>;
  /** Called once it is committed. */
  emit: (events: EventBus, from: RunRecord, to: RunRecord) => void;
}

function readsNothing(): Promise<null> {
  return Promise.resolve(null);
}

interface Acted {
  result: ActionResult;
  change?: RunChange;
  work?: Work;
}

export async function act<Write, Known>(
  deps: RunActionDeps,
  id: string,
  action: Action<Write, Known>,
): Promise<ActionResult> {
  if (!mayBeRunId(id)) return { kind: 'noSuchRun' };
  const { result, change, work } = await deps.database.transaction((tx) => actIn(tx, id, action, deps));
  if (change) action.emit(deps.events, change.from, change.to);
  if (work) wakeFor(deps.wake, work);
  return result;
}

async function actIn<Write, Known>(
  tx: Transaction,
  id: string,
  action: Action<Write, Known>,
  { auditor, scope, scopeShares, openRunCaps }: RunActionDeps,
): Promise<Acted> {
  const { audited, detail, save } = action;
  // The schedule first, as all transactions lock them.
  const before = action.keepsSchedule === true ? await findRecord(tx, id) : null;
  const current = before ? await shareCurrentDefinition(tx, before.scheduleUid) : null;
  const definition = inLaneOfScope(current, scopeShares);
  const gone = await goneNamesOf(tx, before ? [before] : []);
  const run = await lockRun(tx, id);
  if (!run) return { result: { kind: 'noSuchRun' } };
  const known = await action.read(tx, run);
  const decision = refuseGone(action.decide(run, definition, known), run, gone);
  if (decision.kind === 'notPossible') return { result: { ...decision, summary: summaryOf(run) } };
  if (decision.kind === 'asItIs') return { result: answer(await findRun(tx, id, scope)) };
  if (action.opens === true) openRunCaps?.take([nameOfRun(run)]);
  const now = await noteOrNow(tx, auditor, () => ({
    ...{ action: audited, subject: id, scheduleId: scheduleIdOf(run.scheduleId), runName: nameOfOneOff(run) },
    detail: { was: run.status, ...detail?.(run, decision) },
  }));
  const change = action.change(run, decision, { definition, known, now });
  const effects = save ? await save(tx, change) : await saveLockedRuns(tx, [change]);
  const work = workOfChanges([change], effects);
  return { result: answer(await findRun(tx, id, scope)), change, work };
}

function summaryOf({ status, reason, attempts }: RunState): RunSummary {
  return { status, reason, attempts };
}

function answer(run: Run | null): ActionResult {
  return run ? { kind: 'done', run } : { kind: 'noSuchRun' };
}
