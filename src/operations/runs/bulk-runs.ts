/**
 * Guarantees: of the runs that match when it begins, each is acted on once, as if it had been named; or it is counted as remaining.
 *   The audit names the runs that each transaction changes, and the filter.
 * Transaction: one for each batch of runs. It waits for no row that another transaction has locked, and comes back to it a few times.
 * If the process dies here: the batches before are done, the others are as they were; asked again, it goes on with these.
 */
import { CANCELLABLE, RETRIABLE } from '../../core/runs/run-decisions.ts';
import type { RunStatus } from '../../core/runs/run.ts';
import type { RunRecord } from '../../core/runs/run-record.ts';
import { wakeFor, type Work } from '../../runtime/loop/wake.ts';
import { batchFaultOf, isLockedByOthers } from '../../postgres/errors.ts';
import type { Transaction } from '../../postgres/executor.ts';
import { databaseNow, limitLockWaits } from '../../postgres/sql/rows.ts';
import {
  lockFreeRuns,
  type MatchingRuns,
  matchingRuns,
  shareFreeDefinitions,
} from '../../store/runs/search/matching-runs.ts';
import { type RunChange, saveLockedRuns, workOfChanges } from '../../store/runs/lock-and-save.ts';
import { runIdsOfBatch } from '../../store/runs/run-tags.ts';
import { uidsOf } from '../../store/schedules/search/find-schedules.ts';
import type { OperationRefused } from '../operation-refused.ts';
import { type Action, CANCEL, RETRY, type RunActionDeps } from './act-on-runs.ts';
import type { AuditDetail } from '../../core/audit.ts';
import { isoInstant } from '../../core/instant.ts';
import type { Auditor } from '../../store/audit/audit-rows.ts';
import { goneNamesOf, refuseGone } from '../../store/runs/gone-names.ts';
import type { RunFilter } from '../../store/runs/search/run-pages.ts';
import { actOnBatches } from './act-on-batches.ts';
import { inLaneOfScope, nameOfRun } from '../scope-caps.ts';

interface BulkRunRequest {
  action: 'retry' | 'cancel';
  filter: BulkRunFilter;
  /** How many runs are acted on at most, the newest first. */
  limit: number;
  dryRun: boolean;
}

export interface BulkOutcome {
  matched: number;
  changed: number;
  /** Runs that matched, and were neither changed nor found in another state. */
  remaining: number;
  /** The ids of the first runs that match. */
  sample: string[];
}

export const SAMPLE = 10;
const BATCH = 100;
const COUNTED = 100_000;
const SEARCH_LIMIT_MS = 15_000;

/**
 * Retries or cancels the runs that match, or only counts them. Runs in whose status the action is not possible do not match. What a cap
 * keeps from being retried remains. @throws OperationRefused, if that is why none was changed
 */
export async function actOnMatchingRuns(deps: RunActionDeps, request: BulkRunRequest): Promise<BulkOutcome> {
  const { action, dryRun } = request;
  const { matched, ids } = await find(deps, request);
  const sample = ids.slice(0, SAMPLE);
  if (dryRun) return { matched, changed: 0, remaining: matched, sample };
  const statuses = statusesOf(request);
  const done: Done = { changed: 0, capped: 0, refusal: null };
  const noting: BulkNoting = { action, filter: request.filter, matched, parts: 0 };
  const actOnSome = (some: readonly string[]) =>
    action === 'retry'
      ? actOnBatch(deps, { action: RETRY, table: 'history', ids: some, statuses, noting })
      : actOnBatch(deps, { action: CANCEL, table: 'runs', ids: some, statuses, noting });
  const act = async (some: readonly string[]) => {
    const outcome = await actOnSome(some);
    done.changed += outcome.changes.length;
    done.capped += outcome.capped;
    done.refusal ??= outcome.refusal;
    return outcome.locked;
  };
  // A run that the database refuses remains.
  const faultOf = (error: unknown) => (isLockedByOthers(error) ? 'refused' : batchFaultOf(error));
  const left = await actOnBatches(ids, { size: BATCH, act, faultOf });
  if (done.changed === 0 && done.refusal) throw done.refusal;
  const remaining = matched - ids.length + done.capped + left;
  return { matched, changed: done.changed, remaining, sample };
}

const POSSIBLE = { retry: RETRIABLE, cancel: CANCELLABLE };

/** Runs with other statuses of the filter do not match. */
function statusesOf({ action, filter: { statuses } }: BulkRunRequest): readonly RunStatus[] {
  return POSSIBLE[action].filter((status) => statuses?.includes(status) ?? true);
}

function find({ database, scope }: RunActionDeps, request: BulkRunRequest): Promise<MatchingRuns> {
  const { action, filter, dryRun } = request;
  const { scheduleId, batchId, ...rest } = filter;
  return database.run(async (db) => {
    const scheduleUids = scheduleId === undefined ? undefined : await uidsOf(db, scheduleId, scope);
    const ids = batchId === undefined ? undefined : await runIdsOfBatch(db, batchId, scope, 'act');
    const limit = dryRun ? SAMPLE : request.limit;
    return matchingRuns(
      db,
      { ...rest, scheduleUids, ids, statuses: statusesOf(request), limit, scope },
      { countTo: COUNTED, scheduleIsThere: action === 'retry' },
    );
  }, SEARCH_LIMIT_MS);
}

/** The committed result. */
interface Done {
  changed: number;
  /** Those that a cap keeps from being opened again. */
  capped: number;
  /** Why some of them remain. */
  refusal: OperationRefused | null;
}

interface Batch<Write> {
  noting: BulkNoting;
  action: Action<Write>;
  table: 'runs' | 'history';
  ids: readonly string[];
  statuses: readonly RunStatus[];
}

interface BatchOutcome {
  changes: RunChange[];
  /** Ids of runs that another transaction has locked, or whose schedule it has locked. */
  locked: string[];
  /** Of how many runs the scope has as many open ones as it may have. */
  capped: number;
  refusal: OperationRefused | null;
  work: Work;
}

async function actOnBatch<Write>(deps: RunActionDeps, batch: Batch<Write>): Promise<BatchOutcome> {
  const outcome = await deps.database.transaction(async (tx) => {
    const acted = await actUnlessLocked(tx, deps, batch);
    const changed = acted.changes.map(({ from }) => from.id);
    await noteBulkRuns(tx, deps.auditor, batch.noting, changed);
    return acted;
  });
  if (outcome.changes.length > 0) batch.noting.parts += 1;
  for (const { from, to } of outcome.changes) batch.action.emit(deps.events, from, to);
  wakeFor(deps.wake, outcome.work);
  return outcome;
}

/** The schedules first, as all transactions lock them. */
async function actUnlessLocked<Write>(
  tx: Transaction,
  { scopeShares, openRunCaps }: RunActionDeps,
  { action, table, ids, statuses }: Batch<Write>,
): Promise<BatchOutcome> {
  await limitLockWaits(tx);
  const schedules = action.keepsSchedule === true ? await shareFreeDefinitions(tx, ids) : null;
  const { free, locked } = await lockFreeRuns(tx, table, { ids, statuses });
  const isLocked = ({ scheduleUid }: RunRecord) => schedules?.locked.has(scheduleUid) === true;
  const gone = await goneNamesOf(tx, action.keepsSchedule === true ? free : []);
  const now = await databaseNow(tx);
  const refusals: OperationRefused[] = [];
  const changes = free
    .filter((run) => !isLocked(run))
    .flatMap((from): RunChange[] => {
      const definition = inLaneOfScope(schedules?.free.get(from.scheduleUid) ?? null, scopeShares);
      const decision = refuseGone(action.decide(from, definition, null), from, gone);
      if (decision.kind !== 'write') return [];
      const refusal = action.opens === true ? openRunCaps?.takeOrSay(nameOfRun(from)) : null;
      if (refusal) refusals.push(refusal);
      return refusal ? [] : [action.change(from, decision, { definition, known: null, now })];
    });
  const work = workOfChanges(changes, await saveLockedRuns(tx, changes));
  const left = [...locked, ...free.filter(isLocked).map(({ id }) => id)];
  return { changes, locked: left, capped: refusals.length, refusal: refusals[0] ?? null, work };
}

interface BulkRunFilter extends Pick<RunFilter, 'labels' | 'statuses' | 'triggers' | 'unmet' | 'from' | 'to'> {
  scheduleId?: string | undefined;
  batchId?: string | undefined;
}

/** What all entries of one call have in common. */
interface BulkNoting {
  action: string;
  filter: BulkRunFilter;
  matched: number;
  /** How many entries there are already. */
  parts: number;
}

/** A batch is small enough for an entry to name all of its runs. */
async function noteBulkRuns(
  tx: Transaction,
  auditor: Auditor | undefined,
  { action, filter, matched, parts }: BulkNoting,
  runs: readonly string[],
): Promise<void> {
  if (!auditor || runs.length === 0) return;
  const counts = { matched, changed: runs.length, part: parts + 1 };
  await auditor.note(tx, {
    ...{ action: 'runs.bulk', subject: null, scheduleId: filter.scheduleId ?? null },
    detail: { action, ...counts, filter: shown(filter), runs },
  });
}

/** A filter may have very many labels, and long ones; each entry of the call repeats it. */
const MAX_LABELS = 20;
const MAX_LENGTH = 200;

/** In the words of the API. */
function shown(filter: BulkRunFilter): AuditDetail[string] {
  const { scheduleId, batchId, labels, statuses, triggers, unmet, from, to } = filter;
  const label = labels?.slice(0, MAX_LABELS).map((pair) => pair.join(':').slice(0, MAX_LENGTH));
  const period = [from, to].map((at) => (at === undefined ? undefined : isoInstant(at)));
  const words = { status: statuses, trigger: triggers, unmet };
  const named = { scheduleId, batchId, label, ...words, from: period[0], to: period[1] };
  return Object.fromEntries(
    Object.entries(named).flatMap(([name, value]) => (value === undefined ? [] : [[name, value] as const])),
  );
}
