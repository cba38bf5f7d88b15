import { sql } from 'drizzle-orm';
import type { Instant } from '../core/instant.ts';
import type { Executor } from './executor.ts';
import { type InstantText, rowsOf, toInstant } from './rows.ts';

export interface Instance {
  id: string;
  host: string;
  version: string;
  zoneData: string;
}

export interface InstanceState extends Instance {
  startedAt: Instant;
  heartbeatAt: Instant;
  alive: boolean;
  /** Runs it has claimed and not settled. */
  inFlight: number;
}

export async function registerInstance(db: Executor, instance: Instance): Promise<void> {
  await db.execute(
    sql`INSERT INTO instances (id, host, version, zone_data, started_at, heartbeat_at)
    VALUES (${instance.id}, ${instance.host}, ${instance.version}, ${instance.zoneData}, clock_timestamp(), clock_timestamp())
    ON CONFLICT DO NOTHING`,
  );
}

/** Answers the database's clock, or null where this instance is not (or no longer) listed as living. */
export async function beatIfAlive(db: Executor, instanceId: string): Promise<Instant | null> {
  const [row] = await rowsOf<{ heartbeat_at: InstantText }>(
    db,
    sql`UPDATE instances SET heartbeat_at = clock_timestamp() WHERE id = ${instanceId} AND died_at IS NULL
    RETURNING heartbeat_at`,
  );
  return row ? toInstant(row.heartbeat_at) : null;
}

/** A clean stop: its fire-locks are free at once. */
export async function markInstanceLeft(db: Executor, instanceId: string): Promise<void> {
  await db.execute(
    sql`UPDATE instances SET died_at = clock_timestamp() WHERE id = ${instanceId} AND died_at IS NULL`,
  );
}

/** The living, and for a day those that left or fell silent; newest first. */
export async function listInstances(db: Executor, ttlSeconds: number): Promise<InstanceState[]> {
  const rows = await rowsOf<{
    id: string;
    host: string;
    version: string;
    zone_data: string;
    started_at: InstantText;
    heartbeat_at: InstantText;
    alive: boolean;
    in_flight: number;
  }>(
    db,
    sql`SELECT i.*, died_at IS NULL AND heartbeat_at > clock_timestamp() - make_interval(secs => ${ttlSeconds}) AS alive,
      (SELECT count(*) FROM runs r WHERE r.status = 'pending' AND r.claimed_by = i.id)::int AS in_flight
    FROM instances i WHERE heartbeat_at > clock_timestamp() - interval '1 day'
    ORDER BY started_at DESC, id`,
  );
  return rows.map((row) => ({
    id: row.id,
    host: row.host,
    version: row.version,
    zoneData: row.zone_data,
    startedAt: toInstant(row.started_at),
    heartbeatAt: toInstant(row.heartbeat_at),
    alive: row.alive,
    inFlight: row.in_flight,
  }));
}
