import { sql } from 'drizzle-orm';
import type { Instant } from '../../core/instant.ts';
import type { Executor } from '../../postgres/executor.ts';
import { type InstantText, rowsOf, toInstant, toInstantOrNull } from '../../postgres/sql/rows.ts';
import { type Instance, lives } from './instances.ts';

interface InstanceState extends Required<Omit<Instance, 'ttlSeconds'>> {
  startedAt: Instant;
  heartbeatAt: Instant;
  alive: boolean;
  /** It ended in good order. */
  leftAt: Instant | null;
  /** Runs it has claimed and not settled. */
  inFlight: number;
}

/** The living ones, and for a day those that left or fell silent; newest first. */
export async function listInstances(db: Executor): Promise<InstanceState[]> {
  const rows = await rowsOf<{
    id: string;
    host: string;
    port: number | null;
    version: string;
    zone_data: string;
    started_at: InstantText;
    heartbeat_at: InstantText;
    alive: boolean;
    left_at: InstantText | null;
    in_flight: number;
  }>(db)(sql`-- listInstances
    WITH clock AS MATERIALIZED (SELECT clock_timestamp() AS now)
    SELECT i.*, ${lives} AS alive,
      (SELECT count(*) FROM runs r WHERE r.status = 'pending' AND r.claimed_by IS NOT NULL AND r.claimed_by = i.id)::int
        AS in_flight
    FROM instances i, clock WHERE heartbeat_at > clock.now - interval '1 day'
    ORDER BY started_at DESC, id`);
  return rows.map((row) => ({
    id: row.id,
    host: row.host,
    port: row.port,
    version: row.version,
    zoneData: row.zone_data,
    startedAt: toInstant(row.started_at),
    heartbeatAt: toInstant(row.heartbeat_at),
    alive: row.alive,
    leftAt: toInstantOrNull(row.left_at),
    inFlight: row.in_flight,
  }));
}

export interface LivingInstance {
  id: string;
  host: string;
  heartbeatAt: Instant;
  /** Without another heartbeat, it counts as gone after this. */
  livesForSeconds: number;
}

export async function livingInstances(db: Executor): Promise<LivingInstance[]> {
  const rows = await rowsOf<{ id: string; host: string; heartbeat_at: InstantText; lives_for: number }>(
    db,
  )(sql`-- livingInstances
    WITH clock AS MATERIALIZED (SELECT clock_timestamp() AS now)
    SELECT i.id, i.host, i.heartbeat_at, ceil(extract(epoch FROM i.heartbeat_at - clock.now) + i.ttl_seconds)::int AS lives_for
    FROM instances i, clock WHERE ${lives} ORDER BY i.started_at, i.id`);
  return rows.map((row) => ({
    id: row.id,
    host: row.host,
    heartbeatAt: toInstant(row.heartbeat_at),
    livesForSeconds: row.lives_for,
  }));
}
