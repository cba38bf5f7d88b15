import { type SQL, sql } from 'drizzle-orm';
import { type Instant, isoInstant } from '../core/instant.ts';
import type { OneOffHandoff } from '../core/one-off.ts';
import { type OnDependencyFailure, type RunStatus, scheduledForOf } from '../core/run.ts';
import { booleans, instants, ints, texts, uuids } from './arrays.ts';
import type { Transaction } from './executor.ts';
import { runsByKey, withinDaysOf } from './by-key.ts';
import { NO_SCHEDULE, rowsOf } from './rows.ts';

/** Keys of one-off runs are unique over all of them: one scope. */
export const ONE_OFF_KEYS = '00000000-0000-0000-0000-000000000000';
/** A definition of one-off runs never changes: what would change makes another one. */
export const ONE_OFF_VERSION = 1;

export interface KeyToTake {
  key: string;
  bodyHash: Buffer;
  runId: string;
}

/**
 * Takes the keys that nobody has, for the runs named; answers whose the others are. Somebody who takes one at the same moment is
 * waited for. In key order, as everywhere.
 */
export async function takeKeysUnlessTaken(
  tx: Transaction,
  keys: readonly KeyToTake[],
): Promise<Map<string, { runId: string; bodyHash: string }>> {
  if (keys.length === 0) return new Map();
  const sorted = [...keys].sort((a, b) => (a.key < b.key ? -1 : 1));
  const names = texts(sorted.map(({ key }) => key));
  await tx.execute(
    sql`INSERT INTO run_keys (scope, key, body_hash, run_id)
    SELECT ${ONE_OFF_KEYS}::uuid, k.key, decode(k.hash, 'hex'), k.run_id
    FROM unnest(${names}, ${texts(sorted.map(({ bodyHash }) => bodyHash.toString('hex')))},
      ${uuids(sorted.map(({ runId }) => runId))}) WITH ORDINALITY AS k(key, hash, run_id, place)
    ORDER BY place ON CONFLICT DO NOTHING`,
  );
  // A statement of its own: it sees what whoever was waited for has committed.
  const rows = await rowsOf<{ key: string; body_hash: string; run_id: string }>(
    tx,
    sql`SELECT key, encode(body_hash, 'hex') AS body_hash, run_id FROM run_keys
    WHERE key = ANY (${names}) AND scope = ${ONE_OFF_KEYS}`,
  );
  const own = new Set(keys.map(({ runId }) => runId));
  return new Map(
    rows
      .filter(({ run_id }) => !own.has(run_id))
      .map(({ key, body_hash, run_id }) => [key, { runId: run_id, bodyHash: body_hash }]),
  );
}

/** Which of these runs are there. */
export async function findThere(tx: Transaction, ids: readonly string[]): Promise<Set<string>> {
  if (ids.length === 0) return new Set();
  const rows = await rowsOf<{ id: string }>(tx, sql`SELECT r.id ${byKey(ids)}`);
  return new Set(rows.map(({ id }) => id));
}

/**
 * Locks runs that others depend on, whose edges are recorded, and answers where they stand; what is not there is left out. Nobody ends
 * or opens one until this transaction does; and whoever ends one afterwards sees by its own row that it has dependents.
 *
 * In one order, and not shared: those who share a lock overtake who waits to have it alone, for ever where there are many.
 */
export async function lockDependencies(
  tx: Transaction,
  ids: readonly string[],
): Promise<Map<string, RunStatus>> {
  if (ids.length === 0) return new Map();
  const rows = await rowsOf<{ id: string; status: RunStatus; has_dependents: boolean }>(
    tx,
    sql`SELECT r.id, r.status, r.has_dependents ${byKey(ids)} ORDER BY r.scheduled_for, r.id FOR NO KEY UPDATE OF r`,
  );
  const unmarked = rows.filter((row) => !row.has_dependents).map(({ id }) => id);
  if (unmarked.length > 0) {
    await tx.execute(
      sql`UPDATE runs SET has_dependents = true WHERE (scheduled_for, id) IN (SELECT r.scheduled_for, r.id ${byKey(unmarked)})
        AND ${withinDaysOf(sql`scheduled_for`, unmarked.map(scheduledForOf))}`,
    );
  }
  return new Map(rows.map(({ id, status }) => [id, status]));
}

/** The ids carry the first column of their key. */
function byKey(ids: readonly string[]): SQL {
  return sql`FROM unnest(${instants(ids.map(scheduledForOf))}, ${uuids(ids)}) AS i(scheduled_for, id)
    JOIN runs r ON ${runsByKey(sql`r`, sql`i`, ids.map(scheduledForOf))}`;
}

/**
 * Keeps definitions of one-off runs, by their uid. What has been there for a while is said to be in use again, so that it is not
 * dropped with the history of those before.
 */
export async function keepDefinitions(
  tx: Transaction,
  definitions: ReadonlyMap<string, OneOffHandoff>,
): Promise<void> {
  const sorted = [...definitions].sort(([a], [b]) => (a < b ? -1 : 1));
  const uids = uuids(sorted.map(([uid]) => uid));
  const kept = await rowsOf<{ uid: string }>(
    tx,
    sql`SELECT schedule_uid AS uid FROM schedule_versions WHERE schedule_uid = ANY (${uids})
      AND at > (SELECT clock_timestamp() - make_interval(secs => ${FRESH_SECONDS}))`,
  );
  const fresh = new Set(kept.map(({ uid }) => uid));
  const toKeep = sorted.filter(([uid]) => !fresh.has(uid));
  if (toKeep.length === 0) return;
  await tx.execute(
    sql`INSERT INTO schedule_versions (schedule_uid, version, schedule_id, change, at, definition)
    SELECT d.uid, ${ONE_OFF_VERSION}, ${NO_SCHEDULE}, 'created', clock_timestamp(), d.definition::jsonb
    FROM unnest(${uuids(toKeep.map(([uid]) => uid))}, ${texts(toKeep.map(([, handoff]) => JSON.stringify(handoff)))})
      WITH ORDINALITY AS d(uid, definition, place)
    ORDER BY place ON CONFLICT (schedule_uid, version) DO UPDATE SET at = excluded.at`,
  );
}

/** Far less than history is kept, at least; otherwise every call would write, and wait for, the row of its kind. */
const FRESH_SECONDS = 3600;

/** A one-off run as it is recorded. */
export interface RunToRecord {
  id: string;
  scheduledFor: Instant;
  definitionUid: string;
  lane: string;
  /** Rank. */
  priority: number;
  payload: string | null;
  key: string | null;
  /** How many it waits for; null: it depends on none. */
  dependencies: number | null;
  onDependencyFailure: OnDependencyFailure;
  hasDependents: boolean;
}

/** Some with long payloads take long to be put together, and nobody else has a turn meanwhile. */
export const RUNS_AT_ONCE = 50;

/** At most RUNS_AT_ONCE of them. What depends on others waits. */
export async function recordRuns(tx: Transaction, runs: readonly RunToRecord[], now: Instant): Promise<void> {
  await tx.execute(
    sql`INSERT INTO runs (id, scheduled_for, schedule_uid, schedule_version, schedule_id, trigger, status, lane, priority,
      due_at, attempts, own_payload, key, open_dependencies, on_dependency_failure, has_dependents,
      created_at, updated_at)
    SELECT i.id, i.scheduled_for, i.definition_uid, ${ONE_OFF_VERSION}, ${NO_SCHEDULE}, 'api',
      CASE WHEN i.dependencies IS NULL THEN 'pending' ELSE 'waiting' END, i.lane, i.priority, i.scheduled_for, 0, i.payload,
      i.key, i.dependencies, i.on_dependency_failure, i.has_dependents, clock.now, clock.now
    FROM unnest(${uuids(runs.map(({ id }) => id))}, ${instants(runs.map(({ scheduledFor }) => scheduledFor))},
      ${uuids(runs.map((run) => run.definitionUid))}, ${texts(runs.map(({ lane }) => lane))},
      ${ints(runs.map(({ priority }) => priority))}, ${texts(runs.map(({ payload }) => payload))},
      ${texts(runs.map(({ key }) => key))}, ${ints(runs.map((run) => run.dependencies))},
      ${texts(runs.map((run) => (run.dependencies === null ? null : run.onDependencyFailure)))},
      ${booleans(runs.map((run) => run.hasDependents))})
      AS i(id, scheduled_for, definition_uid, lane, priority, payload, key, dependencies, on_dependency_failure, has_dependents), (SELECT ${isoInstant(now)}::timestamptz AS now) AS clock`,
  );
}

/** That one run waits for another. */
export interface Edge {
  runId: string;
  dependsOn: string;
  /** In the list of the one that waits. */
  position: number;
}

export const EDGES_AT_ONCE = 5_000;

/** At most EDGES_AT_ONCE of them. */
export async function recordDependencies(tx: Transaction, edges: readonly Edge[]): Promise<void> {
  const dependsOn = edges.map((edge) => edge.dependsOn);
  const runIds = edges.map((edge) => edge.runId);
  await tx.execute(
    sql`INSERT INTO run_dependencies (run_id, scheduled_for, depends_on, depends_on_scheduled_for, position)
    SELECT * FROM unnest(${uuids(runIds)}, ${instants(runIds.map(scheduledForOf))}, ${uuids(dependsOn)},
      ${instants(dependsOn.map(scheduledForOf))}, ${ints(edges.map(({ position }) => position))})`,
  );
}
