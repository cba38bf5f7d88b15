import { type SQL, sql } from 'drizzle-orm';
import { LRUCache } from 'lru-cache';
import type { Handoff } from '../../core/schedules/schedule.ts';
import { ints, uuids } from '../../postgres/sql/arrays.ts';
import { successBoundsIn } from '../../core/schedules/expect.ts';
import { canBeHandedOff } from '../../core/schedules/stored-definition.ts';
import type { Executor } from '../../postgres/executor.ts';
import { queryPrepared } from '../../postgres/sql/rows.ts';
import { isPull } from '../runs/queue-lanes.ts';

export interface VersionKey {
  scheduleUid: string;
  scheduleVersion: number;
}

/**
 * One writing of a version. A failover that lost commits takes a version back, and its number is written again: what is kept in memory
 * is kept by edition. A row of `runs` needs none: the commits that a database has were made one after the other, so beside a run stands
 * the version that it was recorded under.
 */
export interface Edition extends VersionKey {
  /** Null: it was written by a firelock that knew no editions. */
  edition: string | null;
}

/** The members of a definition that handing off needs, each as JSON; null: it does not say so. */
interface HandoffRow {
  schedule_uid: string;
  version: number;
  edition: string | null;
  target: string | null;
  retry: string | null;
  timeout: string | null;
  delivery: string | null;
  completion: string | null;
  completion_timeout: string | null;
  expect: string | null;
  payload: string | null;
}

/**
 * What the named versions say about handing off, as the database has them now, keyed by versionKey(). A version that cannot be read is
 * left out, like one that is missing.
 */
export function loadHandoffs(db: Executor, keys: readonly VersionKey[]): Promise<Map<string, Handoff>> {
  return load(db, keys, { isIt: sql``, keyOf: versionKey });
}

/**
 * What these editions say, and no other edition of their versions, keyed by editionKey(). They never change, so callers may keep them.
 * A version without an edition is the only one of its number.
 */
export function loadEditions(db: Executor, keys: readonly Edition[]): Promise<Map<string, Handoff>> {
  return load(db, keys, {
    isIt: sql` AND coalesce(v.edition = k.edition, v.edition IS NULL)`,
    keyOf: editionKey,
  });
}

/** It asks for the members that are needed, as text: the server writes them out in half the time of the whole definition. */
async function load(
  db: Executor,
  keys: readonly (VersionKey & Partial<Edition>)[],
  { isIt, keyOf }: { isIt: SQL; keyOf: (edition: Edition) => string },
): Promise<Map<string, Handoff>> {
  const rows = await queryPrepared<HandoffRow>(db)(sql`-- loadHandoffs
    SELECT v.schedule_uid, v.version, k.edition, v.definition->>'target' AS target, v.definition->>'retry' AS retry,
      v.definition->>'timeoutSeconds' AS timeout, v.definition->>'delivery' AS delivery,
      v.definition->>'completion' AS completion, v.definition->>'completionTimeoutSeconds' AS completion_timeout, v.definition->>'expect' AS expect,
      v.payload
    FROM schedule_versions v
    JOIN unnest(${uuids(keys.map((key) => key.scheduleUid))}, ${ints(keys.map((key) => key.scheduleVersion))},
      ${uuids(keys.map((key) => key.edition ?? null))})
      AS k(uid, version, edition) ON v.schedule_uid = k.uid AND v.version = k.version${isIt}`);
  const found = new Map<string, Handoff>();
  for (const row of rows) {
    const said = sharedHandoff(row);
    if (said === null) continue;
    const { schedule_uid: scheduleUid, version: scheduleVersion, edition, payload } = row;
    const key = keyOf({ scheduleUid, scheduleVersion, edition });
    found.set(key, payload === null ? said : { ...said, payload });
  }
  return found;
}

/** Schedules that are due at the same moment often say the same: they share one object, and what is worked out for its target. */
const shared = new LRUCache<string, Handoff>({ max: 2_000, maxSize: 4_000_000, sizeCalculation: sizeOf });

function sizeOf(_handoff: Handoff, text: string): number {
  return text.length;
}

/** Without a payload; null: it cannot be read. */
function sharedHandoff({
  target,
  retry,
  timeout,
  delivery,
  completion,
  completion_timeout,
  expect,
}: HandoffRow): Handoff | null {
  const text = [target, retry, timeout, delivery, completion, completion_timeout, expect].join('\n');
  const known = shared.get(text);
  if (known) return known;
  const handoff = {
    target: fromJson(target),
    payload: null,
    retry: fromJson(retry),
    timeoutSeconds: fromJson(timeout),
    delivery,
    completion,
    completionTimeoutSeconds: fromJson(completion_timeout),
    expect: successBoundsIn(fromJson(expect)),
  };
  if (!canBeHandedOff(handoff)) return null;
  shared.set(text, handoff);
  return handoff;
}

/** Undefined: what is stored is no definition; another program has written it. */
function fromJson(text: string | null): unknown {
  try {
    return text === null ? undefined : JSON.parse(text);
  } catch {
    return undefined;
  }
}

export function versionKey(key: VersionKey): string {
  return `${key.scheduleUid}/${key.scheduleVersion}`;
}

export function editionKey(key: Edition): string {
  return `${key.edition ?? key.scheduleUid}/${key.scheduleVersion}`;
}

/**
 * The versions of enabled schedules whose runs are sent and that are due within so many ms, the first due ones first; none at all where
 * more of them are than asked for.
 */
export async function editionsDueWithin(
  db: Executor,
  { ms, atMost }: { ms: number; atMost: number },
): Promise<Edition[]> {
  const rows = await queryPrepared<{ uid: string; version: number; edition: string | null }>(
    db,
  )(sql`-- editionsDueWithin
    WITH due AS MATERIALIZED (
      SELECT uid, version, edition, next_fire_at FROM schedules
      WHERE enabled AND next_fire_at > (SELECT clock_timestamp())
        AND next_fire_at <= (SELECT clock_timestamp() + make_interval(secs => ${ms / 1000}))
        AND NOT ${isPull(sql`lane`)}
      ORDER BY next_fire_at LIMIT ${atMost + 1}
    )
    SELECT uid, version, edition FROM due WHERE (SELECT count(*) FROM due) <= ${atMost} ORDER BY next_fire_at`);
  return rows.map(({ uid, version, edition }) => ({ scheduleUid: uid, scheduleVersion: version, edition }));
}
