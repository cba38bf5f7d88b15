import { sql } from 'drizzle-orm';
import type { Instant } from '../../core/instant.ts';
import type { BacklogKind } from '../../core/runs/effect.ts';
import type { Executor, Transaction } from '../../postgres/executor.ts';
import { texts, uuids } from '../../postgres/sql/arrays.ts';
import { recordsOf } from '../../postgres/sql/rows.ts';

/** Open runs of one schedule that are ended or marked in slices. */
export interface Backlog {
  id: number;
  kind: BacklogKind;
  scheduleUid: string;
  scheduleId: string;
  /** It is about runs that were recorded until then. */
  askedAt: Instant;
  /** The run that replaces the others; null: none does. */
  keptRun: string | null;
  /** Up to which id of all open runs it has looked; null: at none. */
  position: string | null;
  /** How often a slice failed in a row. */
  failures: number;
}

interface NewBacklog {
  kind: BacklogKind;
  uid: string;
  scheduleId: string;
  keptRun?: string;
}

/**
 * In the transaction that decides about these runs. A run that replaces others replaces those as well that an earlier one was to: its
 * backlog takes the place of the earlier one, unless a slice of that is under way. Answers how many backlogs there are to see to.
 */
export async function writeBacklogs(tx: Transaction, wanted: readonly NewBacklog[]): Promise<number> {
  if (wanted.length === 0) return 0;
  const replacing = wanted.filter(({ kind }) => kind === 'replaced').map(({ uid }) => uid);
  await tx.execute(sql`-- writeBacklogs
    WITH earlier AS (
      DELETE FROM backlogs WHERE id IN (
        SELECT id FROM backlogs WHERE kind = 'replaced' AND schedule_uid = ANY (${uuids(replacing)}) FOR UPDATE SKIP LOCKED))
    INSERT INTO backlogs (kind, schedule_uid, schedule_id, kept_run, asked_at, next_at)
    SELECT w.kind, w.uid, w.id, w.kept_run, clock.now, clock.now
    FROM (SELECT clock_timestamp() AS now) AS clock, unnest(${texts(wanted.map(({ kind }) => kind))},
      ${uuids(wanted.map(({ uid }) => uid))}, ${texts(wanted.map(({ scheduleId }) => scheduleId))},
      ${uuids(wanted.map(({ keptRun }) => keptRun ?? null))}) AS w(kind, uid, id, kept_run)`);
  return wanted.length;
}

/**
 * The backlog whose turn is next, and those that go on together with it: all that is to be marked from the same position on. Their rows are
 * locked until the transaction ends; other instances take others. Runs give way when their schedule is marked: until then they are not
 * known, unless the database refuses some of the marks. Empty: none is due.
 */
export async function lockNextBacklogs(tx: Transaction): Promise<Backlog[]> {
  const next = await recordsOf<Backlog>(tx)(sql`-- lockNextBacklogs
    SELECT * FROM backlogs b WHERE next_at <= (SELECT clock_timestamp()) AND NOT (kind = 'replaced' AND EXISTS (
        SELECT FROM backlogs m WHERE m.schedule_uid = b.schedule_uid AND m.kind = 'marked' AND m.failures = 0))
      ORDER BY next_at, id LIMIT 1 FOR UPDATE SKIP LOCKED`);
  const [first] = next;
  if (first?.kind !== 'marked' || first.failures > 0) return next;
  const alike = await recordsOf<Backlog>(tx)(sql`-- lockNextBacklogs
    SELECT * FROM backlogs WHERE kind = 'marked' AND position IS NOT DISTINCT FROM ${first.position}::uuid AND failures = 0
      AND next_at <= (SELECT clock_timestamp()) AND id <> ${first.id} ORDER BY id LIMIT ${MOST_ALIKE} FOR UPDATE SKIP LOCKED`);
  return [first, ...alike];
}

const MOST_ALIKE = 1_000;

/** A slice is done, and there is more: the others have their turn first. `restMs`: rows are locked that it must come back to. */
export async function continueBacklogs(
  tx: Transaction,
  backlogs: readonly Backlog[],
  { position, changed, restMs }: { position: string | null; changed: number; restMs: number },
): Promise<void> {
  await tx.execute(sql`-- continueBacklogs
    UPDATE backlogs SET position = ${position}::uuid, failures = CASE WHEN ${changed > 0} THEN 0 ELSE failures END,
      error = CASE WHEN ${changed === 0} THEN error END,
      next_at = clock_timestamp() + make_interval(secs => ${restMs / 1_000}) WHERE id = ANY (${idsOf(backlogs)}::bigint[])`);
}

export async function deleteBacklogs(tx: Transaction, backlogs: readonly Backlog[]): Promise<void> {
  await tx.execute(sql`-- deleteBacklogs
    DELETE FROM backlogs WHERE id = ANY (${idsOf(backlogs)}::bigint[])`);
}

/** After a slice of them failed. */
export async function putOffBacklogs(
  db: Executor,
  backlogs: readonly Backlog[],
  { error, seconds }: { error: string; seconds: number },
): Promise<void> {
  await db.execute(sql`-- putOffBacklogs
    UPDATE backlogs SET failures = least(failures + 1, 30000), error = ${error},
      next_at = clock_timestamp() + make_interval(secs => ${seconds}) WHERE id = ANY (${idsOf(backlogs)}::bigint[])`);
}

function idsOf(backlogs: readonly Backlog[]): string {
  return `{${backlogs.map(({ id }) => id).join(',')}}`;
}
