import { sql, type SQL } from 'drizzle-orm';
import { type JudgedSuccess, judgeEnd, judgeSuccess, withVerdicts } from '../../core/runs/bounds.ts';
import type { EffectKind } from '../../core/runs/effect.ts';
import { queueOfLane } from '../../core/runs/run-lane.ts';
import type { RunRecord } from '../../core/runs/run-record.ts';
import { isEnd, type RunStatus } from '../../core/runs/run.ts';
import { mayBecome } from '../../core/runs/transitions.ts';
import type { Transaction } from '../../postgres/executor.ts';
import { uuids } from '../../postgres/sql/arrays.ts';
import { onlyColumnOf, rowsOf } from '../../postgres/sql/rows.ts';
import type { Work } from '../../runtime/loop/wake.ts';
import { insertEffects, writeEffects } from '../effects/insert-effects.ts';
import { type JudgedRun, writeBoundEffects } from './bounds.ts';
import { isReady } from './statement-parts.ts';
import { recordset, WRITTEN_COLUMNS, type RecordRow, RECORD_COLUMNS, toRecord } from './record-columns.ts';

/** How to meet rows that other transactions have locked: pass over them, or wait in line. */
export type MeetingLocks = 'skipLocked' | 'wait';

/** Open runs of these ids, their rows locked until the transaction ends, in the order of ids: the order of all multi-row locks. */
export function lockOpenRuns(tx: Transaction, ids: readonly string[], meeting: MeetingLocks): Promise<RunRecord[]> {
  return lockIn(tx, 'runs', ids, meeting);
}

/** The same of runs that have ended. */
export function lockEndedRuns(tx: Transaction, ids: readonly string[], meeting: MeetingLocks): Promise<RunRecord[]> {
  return lockIn(tx, 'history', ids, meeting);
}

async function lockIn(
  tx: Transaction,
  table: 'runs' | 'history',
  ids: readonly string[],
  meeting: MeetingLocks,
): Promise<RunRecord[]> {
  if (ids.length === 0) return [];
  const rows = await rowsOf<RecordRow>(tx)(sql`-- lockIn
    SELECT ${RECORD_COLUMNS[table]} FROM ${sql.raw(table)} r WHERE r.id = ANY (${uuids(ids)})
    ORDER BY r.id FOR UPDATE ${skip(meeting)}`);
  return rows.map(toRecord);
}

/**
 * One run, open or ended, its row locked; null: there is none. It asks once more if the run may have moved from one table to the other
 * between the two questions: each question sees the commits before it.
 */
export async function lockRun(tx: Transaction, id: string): Promise<RunRecord | null> {
  for (const lock of [lockOpenRuns, lockEndedRuns, lockOpenRuns, lockEndedRuns]) {
    const [run] = await lock(tx, [id], 'wait');
    if (run) return run;
  }
  return null;
}

/** Which of these runs there are, open or ended, whatever transaction has them locked. */
export async function presentAmong(tx: Transaction, ids: readonly string[]): Promise<ReadonlySet<string>> {
  if (ids.length === 0) return new Set();
  const found = await onlyColumnOf<string>(tx)(sql`-- presentAmong
    SELECT id FROM all_runs WHERE id = ANY (${uuids(ids)})`);
  return new Set(found);
}

/** Which of these runs are open, whatever transaction has them locked. */
export async function openAmong(tx: Transaction, ids: readonly string[]): Promise<ReadonlySet<string>> {
  if (ids.length === 0) return new Set();
  const found = await onlyColumnOf<string>(tx)(sql`-- openAmong
    SELECT id FROM runs WHERE id = ANY (${uuids(ids)})`);
  return new Set(found);
}

function skip(meeting: MeetingLocks): SQL {
  return meeting === 'skipLocked' ? sql`SKIP LOCKED` : sql``;
}

/** A run as it was when its row was locked, and as it is to be. */
export interface RunChange {
  from: RunRecord;
  to: RunRecord;
  /** What is to follow that its record does not say (effectsOfEnd). */
  also?: readonly Extract<EffectKind, 'gone' | 'undelivered'>[];
  /** What judges it if this ends it with a success. */
  success?: JudgedSuccess | null;
}

/** The work that new runs leave which may be claimed. */
export function workOfNew(runs: readonly Pick<RunRecord, 'lane' | 'limitId'>[]): Work {
  return {
    toClaim: runs.length,
    toPull: runs.some(({ lane }) => queueOfLane(lane) !== null),
    toAdmit: runs.some(({ limitId }) => limitId !== null),
  };
}

/** The work that these changes leave after the commit. */
export function workOfChanges(changes: readonly RunChange[], effects: number): Required<Work> {
  const pending = changes.filter(({ to }) => to.status === 'pending');
  const toPull = pending.some(({ to }) => queueOfLane(to.lane) !== null);
  const toAdmit = changes.some(({ from, to }) => from.limitId !== null || to.limitId !== null);
  return { effects, toClaim: pending.length, toPull, toAdmit, messages: 0 };
}

/**
 * Writes runs whose rows this transaction has locked, each once. An end moves the row to history and writes its effects; an opening
 * moves it back. Answers how many effects there are to see to.
 * @throws if a change of the status is none of STATUS_STEPS: then nothing is written
 */
export async function saveLockedRuns(tx: Transaction, changes: readonly RunChange[]): Promise<number> {
  for (const { from, to } of changes) refuseUnlessStep(from.status, to);
  const moved = (from: boolean, to: boolean) =>
    changes.filter((change) => isEnd(change.from.status) === from && isEnd(change.to.status) === to);
  await updateOpen(tx, moved(false, false).map(toOf));
  const { ended, judged } = judgeEnds(moved(false, true));
  const again = judgeEnds(moved(true, true));
  await updateEnded(tx, again.ended.map(toOf));
  await deleteOpen(tx, ended.map(toOf));
  await insertEnded(tx, ended.map(toOf));
  const reopened = moved(true, false).map(toOf);
  await deleteEnded(tx, reopened);
  await insertOpen(tx, reopened);
  // A late report about an ended run may end it otherwise: that is an end as well.
  const endedAnew = again.ended.filter(({ from, to }) => from.status !== to.status);
  // An open run has only those that are named.
  const named = moved(false, false).flatMap(({ to, also = [] }) =>
    also.map((kind) => ({ kind, run: { ...to, finishedAt: to.updatedAt } })),
  );
  return (
    (await insertEffects(tx, [...ended, ...endedAnew])) +
    (await writeEffects(tx, named)) +
    (await writeBoundEffects(tx, [...judged, ...again.judged]))
  );
}

/** By the bounds that are left of them, and a success by what else is expected of it. One that stays as it ended was judged before. */
function judgeEnds(changes: readonly RunChange[]): { ended: RunChange[]; judged: JudgedRun[] } {
  const ends = changes.map(({ success = null, ...change }) => {
    const { from, to: run } = change;
    const verdicts = from.status === run.status ? [] : [judgeEnd(run) ?? [], judgeSuccess(run, success)].flat();
    return {
      ended: { ...change, to: withVerdicts(run, verdicts) },
      judged: verdicts.map((verdict) => ({ run, verdict })),
    };
  });
  return { ended: ends.map(({ ended }) => ended), judged: ends.flatMap(({ judged }) => judged) };
}

/**
 * Records new runs, open or ended (a missed fire ends as it is recorded), where no open run of the same fire is there. Answers the ids
 * of those it recorded, and how many effects there are to see to.
 */
export async function recordRuns(
  tx: Transaction,
  records: readonly RunRecord[],
): Promise<{ ids: ReadonlySet<string>; effects: number }> {
  for (const record of records) refuseUnlessStep(null, record);
  const ended = records.filter(({ status }) => isEnd(status));
  const open = records.filter(({ status }) => !isEnd(status));
  const inserted = await insertOpen(tx, open);
  await insertEnded(tx, ended);
  const effects = await insertEffects(
    tx,
    ended.map((to) => ({ from: null, to })),
  );
  return { ids: new Set([...inserted, ...ended.map(({ id }) => id)]), effects };
}

/** A fault of this program. */
function refuseUnlessStep(from: RunStatus | null, { id, status: to }: RunRecord): void {
  if (mayBecome(from, to)) return;
  throw new Error(`run ${id} cannot ${from === null ? 'be recorded as' : `go from ${from} to`} ${to}`);
}

function toOf({ to }: RunChange): RunRecord {
  return to;
}

const READY = isReady(
  { dueAt: sql`due_at`, limitId: sql`limit_id`, admittedAt: sql`admitted_at`, observed: sql`observed` },
  sql`clock.now`,
);

async function updateOpen(tx: Transaction, records: readonly RunRecord[]): Promise<void> {
  if (records.length === 0) return;
  await tx.execute(sql`-- updateOpen
    UPDATE runs r SET (${WRITTEN_COLUMNS.runs}, ready) = (
      SELECT ${WRITTEN_COLUMNS.runs}, ${READY} FROM (SELECT s.*) AS saved)
    FROM jsonb_populate_recordset(NULL::runs, ${recordset(records)}) AS s, (SELECT clock_timestamp() AS now) AS clock
    WHERE r.id = s.id`);
}

async function insertOpen(tx: Transaction, records: readonly RunRecord[]): Promise<string[]> {
  if (records.length === 0) return [];
  return onlyColumnOf<string>(tx)(sql`-- insertOpen
    INSERT INTO runs (${WRITTEN_COLUMNS.runs}, ready)
    SELECT ${WRITTEN_COLUMNS.runs}, ${READY}
    FROM jsonb_populate_recordset(NULL::runs, ${recordset(records)}) AS s, (SELECT clock_timestamp() AS now) AS clock
    ON CONFLICT DO NOTHING RETURNING id`);
}

async function insertEnded(tx: Transaction, records: readonly RunRecord[]): Promise<void> {
  if (records.length === 0) return;
  await tx.execute(sql`-- insertEnded
    INSERT INTO history (${WRITTEN_COLUMNS.history}, ended_at)
    SELECT ${WRITTEN_COLUMNS.history}, clock.now
    FROM jsonb_populate_recordset(NULL::history, ${recordset(records)}) AS s, (SELECT clock_timestamp() AS now) AS clock`);
}

/** Stays in the partition of the day of its first end. */
async function updateEnded(tx: Transaction, records: readonly RunRecord[]): Promise<void> {
  if (records.length === 0) return;
  await tx.execute(sql`-- updateEnded
    UPDATE history r SET (${WRITTEN_COLUMNS.history}) = (SELECT ${WRITTEN_COLUMNS.history} FROM (SELECT s.*) AS saved)
    FROM jsonb_populate_recordset(NULL::history, ${recordset(records)}) AS s WHERE r.id = s.id`);
}

async function deleteOpen(tx: Transaction, records: readonly RunRecord[]): Promise<void> {
  if (records.length === 0) return;
  await tx.execute(sql`-- deleteOpen
    DELETE FROM runs WHERE id = ANY (${uuids(records.map(({ id }) => id))})`);
}

async function deleteEnded(tx: Transaction, records: readonly RunRecord[]): Promise<void> {
  if (records.length === 0) return;
  await tx.execute(sql`-- deleteEnded
    DELETE FROM history WHERE id = ANY (${uuids(records.map(({ id }) => id))})`);
}
