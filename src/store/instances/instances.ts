import { type SQL, sql } from 'drizzle-orm';
import type { Installation } from '../../core/installation.ts';
import type { Instant } from '../../core/instant.ts';
import type { Executor } from '../../postgres/executor.ts';
import { uuids } from '../../postgres/sql/arrays.ts';
import {
  type InstantText,
  onlyColumnOf,
  recordsOf,
  rowsOf,
  toInstant,
  toInstantOrNull,
} from '../../postgres/sql/rows.ts';
import { INSTALLATION_COLUMNS, installationOf, type InstallationRow } from './installation-row.ts';

export interface Instance {
  id: string;
  host: string;
  /** Where its API listens; null or absent: it does not yet. */
  port?: number | null;
  version: string;
  zoneData: string;
  /** If it is silent for longer than this, the others may declare it dead. */
  ttlSeconds: number;
}

/** Of a row of `instances`; `clock` is a row with the column `now`. A heartbeat that is ahead of it was written by a wrong clock. */
const isSilent = (
  row: SQL,
) => sql`(${row}.heartbeat_at NOT BETWEEN clock.now - make_interval(secs => ${row}.ttl_seconds)
  AND clock.now + make_interval(secs => ${row}.ttl_seconds))`;

/** Whether the others count on a row of `instances i`. */
export const lives = sql`i.died_at IS NULL AND NOT ${isSilent(sql`i`)}`;

/** Whether no instance of this id is listed as living: its locks and claims are free. */
export function isUnlisted(instanceId: SQL): SQL {
  return sql`NOT EXISTS (SELECT FROM instances i WHERE i.id = ${instanceId} AND i.died_at IS NULL)`;
}

/**
 * Lists it as living, without which it can neither lock nor claim. False: it is not, since the instances of this database only
 * observe. The lock of that row decides: an instance registers before they begin to observe, or not at all.
 */
export async function registerUnlessObserving(db: Executor, instance: Instance): Promise<boolean> {
  const [row] = await rowsOf<{ works: boolean }>(db)(sql`-- registerUnlessObserving
    WITH working AS MATERIALIZED (SELECT one FROM installation WHERE mode <> 'observes' FOR SHARE),
    registered AS (
      INSERT INTO instances (id, host, port, version, zone_data, ttl_seconds, started_at, heartbeat_at)
      SELECT ${instance.id}::uuid, ${instance.host}::text, ${instance.port ?? null}::int, ${instance.version}::text, ${instance.zoneData}::text,
        ${instance.ttlSeconds}::int, clock_timestamp(), clock_timestamp() FROM working
      ON CONFLICT DO NOTHING
    )
    SELECT EXISTS (SELECT FROM working) AS works`);
  return row?.works ?? false;
}

export interface HeartbeatAnswer {
  /** The database's clock. */
  now: Instant;
  /** False: this instance is not, or no longer, listed as living. */
  listed: boolean;
  /** This instance's last heartbeat in the database; null: no row. */
  previous: Instant | null;
  /** Others that are listed as living and silent. */
  overdue: { id: string; ttlSeconds: number }[];
  installation: Installation;
}

/** Reports that this instance lives, if it is still listed as living. */
export async function beatIfListed(db: Executor, instanceId: string): Promise<HeartbeatAnswer> {
  const rows = await rowsOf<BeatRow>(db)(sql`-- beatIfListed
    WITH clock AS MATERIALIZED (SELECT clock_timestamp() AS now),
    before AS MATERIALIZED (SELECT heartbeat_at FROM instances WHERE id = ${instanceId} FOR UPDATE),
    beaten AS (
      UPDATE instances i SET heartbeat_at = clock.now FROM clock, before
      WHERE i.id = ${instanceId} AND i.died_at IS NULL RETURNING i.id
    )
    SELECT clock.now, EXISTS (SELECT FROM beaten) AS listed, (SELECT heartbeat_at FROM before) AS previous,
      peers.id AS overdue, peers.ttl_seconds AS overdue_ttl, ${INSTALLATION_COLUMNS}
    FROM clock CROSS JOIN installation LEFT JOIN instances peers ON peers.died_at IS NULL AND peers.id <> ${instanceId}
      AND ${isSilent(sql`peers`)}`);
  const [first] = rows;
  if (!first) throw new Error('the heartbeat statement answered no row');
  return {
    now: toInstant(first.now),
    listed: first.listed,
    previous: toInstantOrNull(first.previous),
    overdue: rows.flatMap((row) => (row.overdue === null ? [] : [{ id: row.overdue, ttlSeconds: row.overdue_ttl }])),
    installation: installationOf(first),
  };
}

/** One row for each overdue peer, or one row. */
interface BeatRow extends InstallationRow {
  now: InstantText;
  listed: boolean;
  previous: InstantText | null;
  overdue: string | null;
  overdue_ttl: number;
}

/**
 * Declares instances dead that are still silent, if the caller itself lives; answers their ids. This frees
 * their fire-locks, and recovery finds their claims. The caller must know that the database did not stand still.
 */
export async function declareDeadIfSilent(
  db: Executor,
  instanceId: string,
  silent: readonly string[],
): Promise<string[]> {
  return onlyColumnOf<string>(db)(sql`-- declareDeadIfSilent
    WITH clock AS MATERIALIZED (SELECT clock_timestamp() AS now),
    dying AS MATERIALIZED (
      SELECT i.id FROM instances i, clock
      WHERE i.id = ANY(${uuids(silent)}) AND i.died_at IS NULL AND ${isSilent(sql`i`)}
        AND EXISTS (SELECT FROM instances i WHERE i.id = ${instanceId} AND ${lives})
      ORDER BY i.id FOR UPDATE OF i
    )
    UPDATE instances i SET died_at = clock.now FROM dying, clock WHERE i.id = dying.id RETURNING i.id`);
}

/** The dead stay listed for a day. Those that still have a claim stay until recovery has taken it over. */
export async function forgetLongDead(db: Executor): Promise<void> {
  await db.execute(sql`-- forgetLongDead
    DELETE FROM instances i WHERE i.died_at < (SELECT clock_timestamp() - interval '1 day')
      AND NOT EXISTS (SELECT FROM runs r WHERE r.status = 'pending' AND r.claimed_by IS NOT NULL AND r.claimed_by = i.id)`);
}

/** A clean stop: its fire-locks are free at once. */
export async function markInstanceLeft(db: Executor, instanceId: string): Promise<void> {
  await db.execute(sql`-- markInstanceLeft
    WITH clock AS MATERIALIZED (SELECT clock_timestamp() AS now)
    UPDATE instances SET died_at = clock.now, left_at = clock.now FROM clock WHERE id = ${instanceId} AND died_at IS NULL`);
}

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
export function listInstances(db: Executor): Promise<InstanceState[]> {
  return recordsOf<InstanceState>(db)(sql`-- listInstances
    WITH clock AS MATERIALIZED (SELECT clock_timestamp() AS now)
    SELECT i.id, i.host, i.port, i.version, i.zone_data, i.started_at, i.heartbeat_at, i.left_at, ${lives} AS alive,
      (SELECT count(*) FROM runs r WHERE r.status = 'pending' AND r.claimed_by IS NOT NULL AND r.claimed_by = i.id)::int
        AS in_flight
    FROM instances i, clock WHERE heartbeat_at > clock.now - interval '1 day'
    ORDER BY started_at DESC, id`);
}

export interface LivingInstance {
  id: string;
  host: string;
  heartbeatAt: Instant;
  /** Without another heartbeat, it counts as gone after this. */
  livesForSeconds: number;
}

export function livingInstances(db: Executor): Promise<LivingInstance[]> {
  return recordsOf<LivingInstance>(db)(sql`-- livingInstances
    WITH clock AS MATERIALIZED (SELECT clock_timestamp() AS now)
    SELECT i.id, i.host, i.heartbeat_at, ceil(extract(epoch FROM i.heartbeat_at - clock.now) + i.ttl_seconds)::int AS lives_for_seconds
    FROM instances i, clock WHERE ${lives} ORDER BY i.started_at, i.id`);
}
