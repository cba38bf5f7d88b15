import { sql } from 'drizzle-orm';
import type { Executor } from '../../postgres/executor.ts';
import { COST, oneSample, type Sample } from '../reports/sample.ts';

interface UsedKeys {
  /** Each once. */
  keyIds: string[];
  /** Where the next page begins; null: this was the last. */
  next: string | null;
}

/**
 * The keys that encrypt the secret values of some schedules, by uid: as many schedules as can be read in a moment. The
 * first page has those of all connections and notifiers too, which are few.
 */
export function sampleUsedKeys(db: Executor, after: string | null): Promise<Sample<UsedKeys>> {
  const further = after === null ? sql`` : sql`WHERE uid > ${after}::uuid`;
  return oneSample<UsedKeys>(
    db,
    sql`-- sampleUsedKeys
    WITH page AS MATERIALIZED (SELECT uid, version FROM schedules ${further} ORDER BY uid LIMIT ${PAGE}),
    paths(path) AS (VALUES ('$.target.headers.*.keyId'::jsonpath), ('$.target.secret[*].keyId'),
      ('$.target.body.secrets.*.keyId'), ('$.target.body.secrets.*.seal.keyId'), ('$.target.lookup.headers.*.keyId'), ('$.target.cancel.headers.*.keyId')),
    used AS (
      SELECT key.id FROM page JOIN schedule_versions v ON v.schedule_uid = page.uid AND v.version = page.version,
        paths, LATERAL jsonb_path_query(v.definition, paths.path) AS key(id)
      UNION
      SELECT k.key->'keyId' FROM page JOIN ping_keys k ON k.schedule_uid = page.uid WHERE jsonb_typeof(k.key) = 'object'
      UNION
      SELECT key.id FROM connections c,
        LATERAL jsonb_path_query(c.definition, '$.**.keyId ? (@.type() == "string")') AS key(id) WHERE ${after === null}
      UNION
      SELECT key.id FROM notifiers n JOIN schedule_versions v ON v.schedule_uid = n.uid AND v.version = n.version,
        LATERAL jsonb_path_query(v.definition, '$.target.**.keyId ? (@.type() == "string")') AS key(id) WHERE ${after === null}
    )
    SELECT (SELECT coalesce(json_agg(id), '[]') FROM used) AS key_ids,
      (SELECT uid FROM page ORDER BY uid OFFSET ${PAGE - 1}) AS next, ${COST} AS cost_ms`,
  );
}

const PAGE = 10_000;
