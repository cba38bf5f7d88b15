import { type SQL, sql } from 'drizzle-orm';
import { LRUCache } from 'lru-cache';
import { type Instant, isoInstant } from '../../core/instant.ts';
import type { Definition, Handoff } from '../../core/schedules/schedule.ts';
import { type StoredDefinition, canBeHandedOff, readDefinition } from '../../core/schedules/stored-definition.ts';
import type { Executor, Transaction } from '../../postgres/executor.ts';
import { ints, uuids } from '../../postgres/sql/arrays.ts';
import { type PageRoom, type Sized, readInRoom, rowBytes, withinRoom } from '../../postgres/sql/lists.ts';
import { type InstantText, queryPrepared, rowsOf, toInstant } from '../../postgres/sql/rows.ts';
import { successBoundsIn } from '../../core/schedules/expect.ts';
import { isPull } from '../runs/statement-parts.ts';

/** One write of a schedule. */
export interface ScheduleVersion {
  uid: string;
  version: number;
  at: Instant;
  by: string | null;
  change: 'created' | 'updated' | 'deleted';
  /** The schedule from then on; for a deletion: the schedule until then. */
  definition: Definition;
}

interface VersionPosition {
  at: Instant;
  uid: string;
  version: number;
}

/** For every schedule that ever had the id, newest first: (at, uid, version) descending. `room`: where its bytes end, the list ends. */
export async function listVersions(
  db: Executor,
  scheduleId: string,
  { before, limit, room }: { before: VersionPosition | undefined; limit: number; room: PageRoom },
): Promise<ScheduleVersion[]> {
  const older = before
    ? sql`AND (at, schedule_uid, version) < (${isoInstant(before.at)}::timestamptz, ${before.uid}::uuid, ${before.version}::int)`
    : sql``;
  // The page is chosen by its keys: definitions are large, and an id may have had many.
  interface Row extends Sized {
    uid: string;
    version: number;
    at: InstantText;
    by: string | null;
    change: ScheduleVersion['change'];
    definition: StoredDefinition;
    payload: string | null;
  }
  const bytes = rowBytes({ texts: [sql`v.payload`], documents: [sql`v.definition`] });
  const page = sql`WITH page AS MATERIALIZED (
      SELECT schedule_uid, version FROM schedule_versions WHERE schedule_id = ${scheduleId} ${older}
      ORDER BY at DESC, schedule_uid DESC, version DESC LIMIT ${limit}
    )
    SELECT v.schedule_uid AS uid, v.version, v.at, v.by, v.change, v.definition, v.payload, ${bytes} AS row_bytes
    FROM page JOIN schedule_versions v ON v.schedule_uid = page.schedule_uid AND v.version = page.version
    ORDER BY v.at DESC, v.schedule_uid DESC, v.version DESC`;
  const read = () =>
    rowsOf<Row>(db)(sql`-- listVersions
    ${withinRoom(page, sql`p.at DESC, p.uid DESC, p.version DESC`, room)}`);
  const rows = await readInRoom(room, read, ({ row_bytes }) => row_bytes);
  return rows.map(({ uid, version, at, by, change, definition, payload }) => ({
    ...{ uid, version, at: toInstant(at), by, change },
    definition: readDefinition(definition, payload),
  }));
}

/** What runs of a version need of its definition; its target without what is sent. */
export type RunRules = Pick<
  Definition,
  | 'target'
  | 'priority'
  | 'limit'
  | 'overlap'
  | 'expiresAfterSeconds'
  | 'pauseAfterFailures'
  | 'successWithinSeconds'
  | 'expect'
  | 'observe'
>;

/** By version. Retention keeps them until the transaction ends; one that it has dropped is left out. */
export async function keepVersions(
  tx: Transaction,
  uid: string,
  versions: readonly number[],
): Promise<Map<number, RunRules>> {
  const rows = await rowsOf<{ version: number; rules: RunRules }>(tx)(sql`-- keepVersions
    SELECT v.version, jsonb_build_object('target', (v.definition->'target') - ${SENT}::text[], 'priority', v.definition->'priority',
      'limit', v.definition->'limit', 'overlap', v.definition->'overlap', 'expiresAfterSeconds', v.definition->'expiresAfterSeconds',
      'pauseAfterFailures', v.definition->'pauseAfterFailures', 'successWithinSeconds', v.definition->'successWithinSeconds',
      'expect', v.definition->'expect', 'observe', v.definition->'observe') AS rules
    FROM schedule_versions v WHERE v.schedule_uid = ${uid} AND v.version = ANY (${ints(versions)})
    ORDER BY v.version FOR KEY SHARE`);
  return new Map(rows.map(({ version, rules }) => [version, rules]));
}

const SENT = sql.raw(`'{headers,body,secret,lookup,cancel,outcome}'`);

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
