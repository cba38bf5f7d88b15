import { type SQL, sql } from 'drizzle-orm';
import { ALERT_OF_BOUND } from '../../core/alerts/alert.ts';
import { type Bound, MAX_EXPECT_SECONDS } from '../../core/schedules/expect.ts';
import { type AlertCause, hasOpenAlert, healOpenAlerts, writeAlertEffects } from '../alerts/alert-effects.ts';
import type { BoundVerdict } from '../../core/runs/bounds.ts';
import type { RunRecord } from '../../core/runs/run-record.ts';
import type { Executor, Transaction } from '../../postgres/executor.ts';
import type { RunStatus } from '../../core/runs/run.ts';
import { uuids } from '../../postgres/sql/arrays.ts';
import { type InstantText, onlyColumnOf, rowsOf, toInstant } from '../../postgres/sql/rows.ts';

const [START, FINISH] = [sql.raw(`'${ALERT_OF_BOUND.start}'`), sql.raw(`'${ALERT_OF_BOUND.finish}'`)];

/** What is left of a run's bounds, as columns of its row. */
export const BOUND_COLUMNS = sql`next_bound, bound_at, finish_within_seconds`;

/** Their values for a run that is recorded now, from a row of that name with the bounds of its schedule: `boundsOf` in SQL. */
export function recordedBounds(row: SQL, dueAt: SQL): SQL {
  return sql`CASE WHEN ${row}.start_within_seconds IS NOT NULL THEN 'start' END,
        ${dueAt} + make_interval(secs => ${row}.start_within_seconds), ${row}.finish_within_seconds`;
}

/** Whether the beginning of the first attempt of a run `r` has to be durable, since bounds go by it; null: no. */
export const IS_TO_BEGIN = sql`nullif(r.next_bound = 'start' OR r.finish_within_seconds IS NOT NULL, false)`;

/** Of a run `r` whose beginning is judged, as it was before. */
export const BEFORE_BEGINNING = sql`r.id, r.schedule_uid, r.schedule_version, r.schedule_id, r.trigger, r.status,
      r.next_bound, r.bound_at`;

/** In the SET of an UPDATE of runs `r`, an attempt of which begins at that moment. If it is not the first, they stay as they are. */
export function setBegun(at: SQL): SQL {
  return sql`unmet = CASE WHEN r.next_bound = 'start' AND r.bound_at < ${at} THEN array_append(r.unmet, 'start') ELSE r.unmet END,
      next_bound = CASE WHEN r.finish_within_seconds IS NOT NULL THEN 'finish' ELSE nullif(r.next_bound, 'start') END,
      bound_at = CASE WHEN r.finish_within_seconds IS NOT NULL THEN ${at} + make_interval(secs => r.finish_within_seconds)
        WHEN r.next_bound = 'finish' THEN r.bound_at END,
      finish_within_seconds = NULL`;
}

/**
 * The statement that writes, as effects, what these beginnings mean for their schedules: `begun` is a FROM with rows `b` of
 * BEFORE_BEGINNING. A bound that was kept heals only an episode that is open.
 */
export function causesOfBeginnings(begun: SQL, at: SQL): SQL {
  return sql`INSERT INTO effects (kind, alert_kind, run_id, schedule_uid, schedule_version, schedule_id, trigger, status, finished_at, attempt)
      SELECT CASE WHEN b.bound_at < ${at} THEN 'breaks' ELSE 'heals' END, 'unstarted', b.id, b.schedule_uid, b.schedule_version,
        b.schedule_id, b.trigger, b.status, least(b.bound_at, ${at}), 0
      FROM ${begun} WHERE b.next_bound = 'start' AND (b.bound_at < ${at} OR ${hasOpenAlert(sql`b.schedule_uid`, START)})`;
}

/** Whether the end of a run `r` at that moment says nothing of a bound: it has none, or keeps it, and heals no episode by that. */
export function keepsBoundQuietly(finishedAt: SQL): SQL {
  return sql`CASE WHEN r.bound_at IS NULL THEN true
          ELSE ${finishedAt} <= r.bound_at AND ${hasOpenAlert(sql`r.schedule_uid`, FINISH)} IS NOT TRUE END`;
}

/**
 * In the SET of an UPDATE of runs `r` whose attempt has not begun after all. If it was the first, they are again as they were recorded: the
 * bounds of the run's version. A bound that was found broken stays so.
 */
export function setNotBegun(wasFirst: SQL): SQL {
  return sql`(${BOUND_COLUMNS}) = (
        SELECT CASE WHEN NOT o.again THEN r.next_bound WHEN e.start_seconds IS NOT NULL THEN 'start' END,
          CASE WHEN o.again THEN r.due_at + make_interval(secs => e.start_seconds) ELSE r.bound_at END,
          CASE WHEN o.again THEN e.finish_seconds ELSE r.finish_within_seconds END
        FROM (SELECT ${wasFirst} AND r.retried_after IS NULL AS again) AS o LEFT JOIN LATERAL (
          SELECT CASE WHEN r.unmet IS NULL AND r.trigger <> 'backfill' THEN ${secondsOf('startWithinSeconds')} END AS start_seconds,
            ${secondsOf('finishWithinSeconds')} AS finish_seconds
          FROM schedule_versions v
          WHERE o.again AND v.schedule_uid = r.schedule_uid AND v.version = r.schedule_version) AS e ON true)`;
}

/** No cast fails, whatever text is stored. */
function secondsOf(bound: string): SQL {
  const value = sql`v.definition->'expect'->${sql.raw(`'${bound}'`)}`;
  return sql`CASE WHEN jsonb_typeof(${value}) = 'number' THEN least((${value})::numeric, ${sql.raw(String(MAX_EXPECT_SECONDS))})::int END`;
}

export interface JudgedRun {
  run: Pick<RunRecord, 'id' | 'status' | 'scheduleUid' | 'scheduleVersion' | 'scheduleId'>;
  verdict: BoundVerdict;
}

/**
 * Writes what these runs have made of their bounds as effects, in the transaction that judges them: a broken bound opens an episode, and
 * one that was kept heals the episode that is open. Answers how many effects it wrote.
 */
export async function writeBoundEffects(tx: Transaction, judged: readonly JudgedRun[]): Promise<number> {
  const broken = judged.filter(({ verdict }) => !verdict.isKept);
  const kept = judged.filter(({ verdict }) => verdict.isKept);
  const healed = kept.map(({ run, verdict }) => ({
    schedule: scheduleOf(run),
    alertKinds: [ALERT_OF_BOUND[verdict.bound]],
    at: verdict.at,
  }));
  return (await writeAlertEffects(tx, broken.map(causeOf))) + (await healOpenAlerts(tx, healed));
}

function causeOf({ run, verdict: { bound, at } }: JudgedRun): AlertCause {
  const { id: runId, status } = run;
  return { kind: 'breaks', alertKind: ALERT_OF_BOUND[bound], schedule: scheduleOf(run), runId, status, at };
}

function scheduleOf({ scheduleUid: uid, scheduleId: id, scheduleVersion: version }: JudgedRun['run']) {
  return { uid, id, version };
}

/** What was done in time may be written a moment later. */
const ALLOWANCE_SECONDS = 1;
const PASSED = sql`bound_at IS NOT NULL AND bound_at < (SELECT clock_timestamp() - make_interval(secs => ${ALLOWANCE_SECONDS}))`;

/** Ids of open runs of which a bound has passed, the longest ago first. */
export async function findPassedBounds(
  db: Executor,
  { limit, besides }: { limit: number; besides: readonly string[] },
): Promise<string[]> {
  return onlyColumnOf<string>(db)(sql`-- findPassedBounds
    SELECT id FROM runs WHERE ${PASSED} AND id <> ALL (${uuids(besides)}) ORDER BY bound_at LIMIT ${limit}`);
}

interface PassedRow {
  id: string;
  status: RunStatus;
  schedule_uid: string;
  schedule_version: number;
  schedule_id: string;
  bound: Bound;
  passed_at: InstantText;
}

/**
 * Judges these runs, where a bound has still passed: it did not hold, whatever the run does from now on. Rows that other transactions have
 * locked are passed over: the next look finds them, or their run begins or ends, which judges them too. Answers how many effects it wrote.
 */
export async function judgePassedBounds(tx: Transaction, ids: readonly string[]): Promise<number> {
  const rows = await rowsOf<PassedRow>(tx)(sql`-- judgePassedBounds
    WITH passed AS MATERIALIZED (
      SELECT id, next_bound, bound_at FROM runs WHERE id = ANY (${uuids(ids)}) AND ${PASSED} ORDER BY id FOR UPDATE SKIP LOCKED
    )
    UPDATE runs r SET unmet = array_append(r.unmet, passed.next_bound), next_bound = NULL, bound_at = NULL, updated_at = clock_timestamp()
    FROM passed WHERE r.id = passed.id
    RETURNING r.id, r.status, r.schedule_uid, r.schedule_version, r.schedule_id, passed.next_bound AS bound, passed.bound_at AS passed_at`);
  return writeBoundEffects(tx, rows.map(judgedRun));
}

function judgedRun(row: PassedRow): JudgedRun {
  const { id, status, schedule_uid: scheduleUid, schedule_version: scheduleVersion } = row;
  return {
    run: { id, status, scheduleUid, scheduleVersion, scheduleId: row.schedule_id },
    verdict: { bound: row.bound, isKept: false, at: toInstant(row.passed_at) },
  };
}

/** Judges runs that this transaction has claimed for workers: an attempt of each began with its claim. */
export async function judgeBegunUnderLock(tx: Transaction, ids: readonly string[]): Promise<void> {
  if (ids.length === 0) return;
  await tx.execute(sql`-- judgeBegunUnderLock
    WITH begun AS MATERIALIZED (SELECT ${BEFORE_BEGINNING}, r.claimed_at FROM runs r WHERE r.id = ANY (${uuids(ids)})),
    judged AS (${causesOfBeginnings(sql`begun b`, sql`b.claimed_at`)})
    UPDATE runs r SET ${setBegun(sql`r.claimed_at`)} FROM begun WHERE r.id = begun.id`);
}
