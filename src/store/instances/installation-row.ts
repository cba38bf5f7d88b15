import { type SQL, sql } from 'drizzle-orm';
import { type Instant, isoInstant } from '../../core/instant.ts';
import { type Installation, type InstallationState, type Mode, type TakeOver, WORKS } from '../../core/installation.ts';
import type { Executor, Transaction } from '../../postgres/executor.ts';
import { type InstantText, rowsOf, toInstant, toInstantOrNull } from '../../postgres/sql/rows.ts';

/** The name of the NOTIFY that the mode has changed: a hint, never needed. */
export const INSTALLATION_CHANGED = 'firelock_installation';

/** The mode now: what is said until a moment ends by itself. The clock is a row `clock` with the column `now`. */
const modeNow = sql`CASE WHEN until <= (SELECT now FROM clock) THEN 'works' ELSE mode END`;

/** Whether planning is forbidden. It refers to no other row of a statement, so the server evaluates it once for each statement. */
export const noPlanning = sql`EXISTS (SELECT FROM installation WHERE ${modeNow} <> 'works')`;

/** Whether handoffs are forbidden. */
export const noHandoffs = sql`EXISTS (SELECT FROM installation WHERE ${modeNow} IN ('holds', 'observes'))`;

export interface InstallationRow {
  mode_now: Mode;
  mode_since: InstantText | null;
  until: InstantText | null;
  reason: string | null;
  took_over_at: InstantText | null;
  took_over_since: InstantText | null;
  took_over_by: string | null;
}

export const INSTALLATION_COLUMNS: SQL = sql`${modeNow} AS mode_now, mode_since, until, reason, took_over_at, took_over_since, took_over_by`;

export function installationOf(row: InstallationRow): Installation {
  const { took_over_at: at, took_over_since: since, took_over_by: by } = row;
  const tookOver = at === null || since === null ? null : { at: toInstant(at), since: toInstant(since), by };
  return { ...stateOf(row), tookOver };
}

function stateOf({ mode_now: mode, mode_since: since, until, reason }: InstallationRow): InstallationState {
  if (mode === 'works') return WORKS;
  return { mode, since: toInstantOrNull(since), until: toInstantOrNull(until), reason };
}

export async function readInstallation(db: Executor): Promise<Installation> {
  const [row] = await rowsOf<InstallationRow>(db)(sql`-- readInstallation
    WITH clock AS MATERIALIZED (SELECT clock_timestamp() AS now)
    SELECT ${INSTALLATION_COLUMNS} FROM installation`);
  if (!row) throw new Error('the table installation has lost its row: INSERT INTO installation DEFAULT VALUES');
  return installationOf(row);
}

/** As readInstallation; until the transaction ends, no instance registers, and nobody else changes the row. */
export async function lockInstallation(tx: Transaction): Promise<Installation> {
  await tx.execute(sql`-- lockInstallation
    SELECT FROM installation FOR UPDATE`);
  return readInstallation(tx);
}

/**
 * Maintenance that replaces another, and observing that is said again, keep their `since`. False: nothing was written, since `until` is
 * not in the future.
 */
export async function setState(
  tx: Transaction,
  { mode, until, reason }: Omit<InstallationState, 'since'>,
): Promise<boolean> {
  const rows = await rowsOf(tx)(sql`-- setState
    WITH clock AS MATERIALIZED (SELECT clock_timestamp()::timestamptz(3) AS now),
    given AS (SELECT ${mode}::text AS mode, ${until === null ? null : isoInstant(until)}::timestamptz AS until)
    UPDATE installation i SET mode = given.mode, until = given.until, reason = ${reason}::text,
      mode_since = CASE WHEN i.mode = 'works' OR i.until <= clock.now OR (i.mode = 'observes') <> (given.mode = 'observes')
        THEN clock.now ELSE i.mode_since END
    FROM clock, given WHERE given.until IS NULL OR given.until > clock.now
    RETURNING pg_notify(${INSTALLATION_CHANGED}, '')`);
  return rows.length > 0;
}

export async function recordTakeOver(tx: Transaction, { at, since, by }: TakeOver): Promise<void> {
  await tx.execute(sql`-- recordTakeOver
    UPDATE installation SET took_over_at = ${isoInstant(at)}::timestamptz,
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
