import { sql } from 'drizzle-orm';
import { LRUCache } from 'lru-cache';
import type { Handoff } from '../../core/schedules/schedule.ts';
import { ints, uuids } from '../../postgres/sql/arrays.ts';
import { canBeHandedOff } from '../../core/schedules/stored-definition.ts';
import type { Executor } from '../../postgres/executor.ts';
import { queryPrepared } from '../../postgres/sql/rows.ts';
import { isPull } from '../runs/queue-lanes.ts';

export interface VersionKey {
  scheduleUid: string;
  scheduleVersion: number;
}

/** The members of a definition that handing off needs, each as JSON; null: it does not say so. */
interface HandoffRow {
  schedule_uid: string;
  version: number;
  target: string | null;
  retry: string | null;
  timeout: string | null;
  delivery: string | null;
  completion: string | null;
  completion_timeout: string | null;
  payload: string | null;
}

/**
 * What the named versions say about handing off, keyed by versionKey(). Versions never change, so callers may keep them.
 * A version that cannot be read is left out, like one that is missing.
 *
 * It asks for the members that are needed, as text: the server writes them out in half the time of the whole definition.
 */
export async function loadHandoffs(db: Executor, keys: readonly VersionKey[]): Promise<Map<string, Handoff>> {
  const rows = await queryPrepared<HandoffRow>(db)(sql`-- loadHandoffs
    SELECT v.schedule_uid, v.version, v.definition->>'target' AS target, v.definition->>'retry' AS retry,
      v.definition->>'timeoutSeconds' AS timeout, v.definition->>'delivery' AS delivery,
      v.definition->>'completion' AS completion, v.definition->>'completionTimeoutSeconds' AS completion_timeout, v.payload
    FROM schedule_versions v
    JOIN unnest(${uuids(keys.map((key) => key.scheduleUid))}, ${ints(keys.map((key) => key.scheduleVersion))})
      AS k(uid, version) ON v.schedule_uid = k.uid AND v.version = k.version`);
  const found = new Map<string, Handoff>();
  for (const row of rows) {
    const said = sharedHandoff(row);
    if (said === null) continue;
    const key = versionKey({ scheduleUid: row.schedule_uid, scheduleVersion: row.version });
    found.set(key, row.payload === null ? said : { ...said, payload: row.payload });
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
}: HandoffRow): Handoff | null {
  const text = [target, retry, timeout, delivery, completion, completion_timeout].join('\n');
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
  };
  if (!canBeHandedOff(handoff)) return null;
  shared.set(text, handoff);
  return handoff;
}

/** Undefined: a foreign hand wrote something else. */
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

/**
 * The versions of enabled schedules whose runs are sent and that are due within so many ms, the first due ones first; none at all where
 * more of them are than asked for.
 */
export async function versionsDueWithin(
  db: Executor,
  { ms, atMost }: { ms: number; atMost: number },
): Promise<VersionKey[]> {
  const rows = await queryPrepared<{ uid: string; version: number }>(db)(sql`-- versionsDueWithin
    WITH due AS MATERIALIZED (
      SELECT uid, version, next_fire_at FROM schedules
      WHERE enabled AND next_fire_at > (SELECT clock_timestamp())
        AND next_fire_at <= (SELECT clock_timestamp() + make_interval(secs => ${ms / 1000}))
        AND NOT ${isPull(sql`lane`)}
      ORDER BY next_fire_at LIMIT ${atMost + 1}
    )
    SELECT uid, version FROM due WHERE (SELECT count(*) FROM due) <= ${atMost} ORDER BY next_fire_at`);
  return rows.map(({ uid, version }) => ({ scheduleUid: uid, scheduleVersion: version }));
}
