import { type SQL, sql } from 'drizzle-orm';
import { type Instant, isoInstant } from '../../core/instant.ts';
import type { Maintenance, MaintenanceDispatch } from '../../core/maintenance.ts';
import type { Executor, Transaction } from '../../postgres/executor.ts';
import { type InstantText, rowsOf, toInstant, toInstantOrNull } from '../../postgres/sql/rows.ts';

/** The name of the NOTIFY that maintenance has begun, changed or ended: a hint, never needed. */
export const MAINTENANCE_CHANGED = 'firelock_maintenance';

/** Whether a row of `maintenance` is in force; the clock is a row `clock` with the column `now`. */
const inForce = sql`(until IS NULL OR until > (SELECT now FROM clock))`;

/**
 * Whether planning is forbidden. It refers to no other row of a statement, so the server evaluates it once for each
 * statement.
 */
export const noPlanning = sql`EXISTS (SELECT FROM maintenance WHERE ${inForce})`;

/** Whether handoffs are forbidden. */
export const noHandoffs = sql`EXISTS (SELECT FROM maintenance WHERE dispatch = 'hold' AND ${inForce})`;

/** As columns of another statement: null where there is no maintenance. */
export interface MaintenanceColumns {
  maintenance_since: InstantText | null;
  maintenance_until: InstantText | null;
  maintenance_reason: string | null;
  maintenance_dispatch: MaintenanceDispatch | null;
}

export const MAINTENANCE_COLUMNS: SQL = sql`m.since AS maintenance_since, m.until AS maintenance_until,
      m.reason AS maintenance_reason, m.dispatch AS maintenance_dispatch`;

/** The row to join for these columns. */
export const maintenanceRow: SQL = sql`maintenance m ON m.until IS NULL OR m.until > clock.now`;

export function maintenanceOf(row: MaintenanceColumns): Maintenance | null {
  const { maintenance_since: since, maintenance_dispatch: dispatch } = row;
  if (since === null || dispatch === null) return null;
  const until = toInstantOrNull(row.maintenance_until);
  return { since: toInstant(since), until, reason: row.maintenance_reason, dispatch };
}

/** The maintenance in force now; null: none. */
export async function readMaintenance(db: Executor): Promise<Maintenance | null> {
  const [row] = await rowsOf<MaintenanceColumns>(db)(sql`-- readMaintenance
    WITH clock AS MATERIALIZED (SELECT clock_timestamp() AS now)
    SELECT ${MAINTENANCE_COLUMNS} FROM clock JOIN ${maintenanceRow}`);
  return row ? maintenanceOf(row) : null;
}

/** Begins maintenance, or replaces the one in force and keeps its `since`. Null: `until` is not in the future. */
export async function beginMaintenance(
  db: Executor,
  { until, reason, dispatch }: Omit<Maintenance, 'since'>,
): Promise<Maintenance | null> {
  const [row] = await rowsOf<MaintenanceColumns>(db)(sql`-- beginMaintenance
    WITH clock AS MATERIALIZED (SELECT clock_timestamp()::timestamptz(3) AS now),
    given AS (SELECT ${asText(until)}::timestamptz AS until)
    INSERT INTO maintenance AS m (since, until, reason, dispatch)
    SELECT clock.now, given.until, ${reason}::text, ${dispatch}::text FROM clock, given
    WHERE given.until IS NULL OR given.until > clock.now
    ON CONFLICT (one) DO UPDATE SET
      since = CASE WHEN m.until IS NULL OR m.until > excluded.since THEN m.since ELSE excluded.since END,
      until = excluded.until, reason = excluded.reason, dispatch = excluded.dispatch
    RETURNING ${MAINTENANCE_COLUMNS}, pg_notify(${MAINTENANCE_CHANGED}, '')`);
  return row ? maintenanceOf(row) : null;
}

/** As readMaintenance; until the transaction ends, no other transaction replaces or ends it. */
export async function lockMaintenance(tx: Transaction): Promise<Maintenance | null> {
  await tx.execute(sql`-- lockMaintenance
    SELECT FROM maintenance FOR UPDATE`);
  return readMaintenance(tx);
}

export async function endMaintenance(db: Executor): Promise<void> {
  await db.execute(sql`-- endMaintenance
    DELETE FROM maintenance RETURNING pg_notify(${MAINTENANCE_CHANGED}, '')`);
}

function asText(at: Instant | null): string | null {
  return at === null ? null : isoInstant(at);
}
