import { sql } from 'drizzle-orm';
import type { OneOffHandoff } from '../../core/runs/one-off-run.ts';
import { texts, uuids } from '../../postgres/sql/arrays.ts';
import type { Transaction } from '../../postgres/executor.ts';
import { NO_SCHEDULE, rowsOf } from '../../postgres/sql/rows.ts';

/** A definition of one-off runs never changes: what would change makes another one. */
export const ONE_OFF_VERSION = 1;

/**
 * Keeps definitions of one-off runs, by their uid. An old one is marked as in use again, so that retention does not drop it with the
 * history of earlier runs.
 */
export async function keepDefinitions(
  tx: Transaction,
  definitions: ReadonlyMap<string, OneOffHandoff>,
): Promise<void> {
  const sorted = [...definitions].sort(([a], [b]) => (a < b ? -1 : 1));
  const uids = uuids(sorted.map(([uid]) => uid));
  const kept = await rowsOf<{ uid: string }>(tx)(sql`-- keepDefinitions
    SELECT schedule_uid AS uid FROM schedule_versions WHERE schedule_uid = ANY (${uids})
      AND at > (SELECT clock_timestamp() - make_interval(secs => ${FRESH_SECONDS}))`);
  const fresh = new Set(kept.map(({ uid }) => uid));
  const toKeep = sorted.filter(([uid]) => !fresh.has(uid));
  if (toKeep.length === 0) return;
  await tx.execute(sql`-- keepDefinitions
    INSERT INTO schedule_versions (schedule_uid, version, schedule_id, change, at, definition)
    SELECT d.uid, ${ONE_OFF_VERSION}, ${NO_SCHEDULE}, 'created', clock_timestamp(), d.definition::jsonb
    FROM unnest(${uuids(toKeep.map(([uid]) => uid))}, ${texts(toKeep.map(([, handoff]) => JSON.stringify(handoff)))})
      WITH ORDINALITY AS d(uid, definition, place)
    ORDER BY place ON CONFLICT (schedule_uid, version) DO UPDATE SET at = excluded.at`);
}

/** Far less than the retention. Otherwise every call would update, and wait for, the row of its definition. */
const FRESH_SECONDS = 3600;
