import { sql } from 'drizzle-orm';
import { type Instant, isoInstant } from '../../core/instant.ts';
import type { Installation, TakeOver } from '../../core/observing.ts';
import type { Executor, Transaction } from '../../postgres/executor.ts';
import { type InstantText, rowsOf, toInstant, toInstantOrNull } from '../../postgres/sql/rows.ts';

/** Whether all instances of this database only observe. */
export const observes = sql`EXISTS (SELECT FROM installation WHERE observing_since IS NOT NULL)`;

interface Row {
  observing_since: InstantText | null;
  reason: string | null;
  took_over_at: InstantText | null;
  took_over_since: InstantText | null;
  took_over_by: string | null;
}

export async function readInstallation(db: Executor): Promise<Installation> {
  const [row] = await rowsOf<Row>(db)(sql`-- readInstallation
    SELECT * FROM installation`);
  if (!row)
    throw new Error('the table installation has lost its row: INSERT INTO installation DEFAULT VALUES');
  const { took_over_at: at, took_over_since: since, took_over_by: by } = row;
  const tookOver = at === null || since === null ? null : { at: toInstant(at), since: toInstant(since), by };
  return { observingSince: toInstantOrNull(row.observing_since), reason: row.reason, tookOver };
}

/** As readInstallation; until the transaction ends, no instance registers, and nobody else changes the row. */
export async function lockInstallation(tx: Transaction): Promise<Installation> {
  await tx.execute(sql`-- lockInstallation
    SELECT FROM installation FOR UPDATE`);
  return readInstallation(tx);
}

/** Answers since when they observe: a second call keeps that, and replaces the reason. */
export async function beginObserving(tx: Transaction, reason: string | null): Promise<Instant> {
  const [row] = await rowsOf<{ since: InstantText }>(tx)(sql`-- beginObserving
    UPDATE installation SET observing_since = coalesce(observing_since, clock_timestamp()), reason = ${reason}
    RETURNING observing_since AS since`);
  if (!row)
    throw new Error('the table installation has lost its row: INSERT INTO installation DEFAULT VALUES');
  return toInstant(row.since);
}

export async function recordTakeOver(tx: Transaction, { at, since, by }: TakeOver): Promise<void> {
  await tx.execute(sql`-- recordTakeOver
    UPDATE installation SET observing_since = NULL, reason = NULL, took_over_at = ${isoInstant(at)}::timestamptz,
      took_over_since = ${isoInstant(since)}::timestamptz, took_over_by = ${by}::text`);
}

/** The server is a standby, or a default of the role or the database forbids writes. */
export async function mayOnlyRead(db: Executor): Promise<boolean> {
  const [row] = await rowsOf<{ yes: boolean }>(db)(sql`-- mayOnlyRead
    SELECT pg_is_in_recovery() OR current_setting('default_transaction_read_only') = 'on' AS yes`);
  return row?.yes ?? true;
}

/** No instance lives when this is called: one that was only silent may not go on under its id, and its claims are free. */
export async function endSilentInstances(tx: Transaction): Promise<void> {
  await tx.execute(sql`-- endSilentInstances
    UPDATE instances SET died_at = clock_timestamp() WHERE died_at IS NULL`);
}

/** Whether an instance has begun to work since. */
export async function hasWorkedSince(db: Executor, at: Instant): Promise<boolean> {
  const rows = await rowsOf(db)(sql`-- hasWorkedSince
    SELECT FROM instances WHERE started_at > ${isoInstant(at)}::timestamptz LIMIT 1`);
  return rows.length > 0;
}
