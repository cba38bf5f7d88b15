import { sql } from 'drizzle-orm';
import type { TroubledNotifiers } from '../../core/alerts/alert-events.ts';
import { FAILING_ENDS } from '../../core/run-end.ts';
import { texts } from '../../postgres/sql/arrays.ts';
import type { Executor } from '../../postgres/executor.ts';
import { COST, type Sample, oneSample } from './sample.ts';

/** Enabled notifiers of whose messages people may not learn. A message that was cancelled says nothing about that. */
export async function sampleNotifiers(db: Executor): Promise<Sample<TroubledNotifiers>> {
  const { undelivered, waiting, cost_ms } = await oneSample<{ undelivered: string; waiting: string }>(
    db,
    sql`-- sampleNotifiers
    WITH clock AS MATERIALIZED (SELECT clock_timestamp() AS now), newest AS (
      SELECT DISTINCT ON (h.schedule_uid) h.schedule_uid AS uid, h.status FROM history h
      WHERE h.trigger <> 'schedule' AND h.trigger = 'notify' AND h.status = ANY (${texts(['succeeded', ...FAILING_ENDS])})
        AND h.ended_at > (SELECT now - interval '1 day' FROM clock)
      ORDER BY h.schedule_uid, h.finished_at DESC, h.id DESC
    )
    SELECT (
      SELECT coalesce(json_agg(n.id ORDER BY n.id), '[]')::text FROM notifiers n JOIN newest USING (uid)
      WHERE n.enabled AND newest.status <> 'succeeded'
    ) AS undelivered, (
      SELECT coalesce(json_agg(n.id ORDER BY n.id), '[]')::text FROM notifiers n WHERE n.enabled AND (
        SELECT min(r.created_at) FROM runs r
        WHERE r.schedule_uid = n.uid AND r.trigger NOT IN ('schedule', 'catchUp', 'backfill')
      ) < (SELECT now - interval '5 minutes' FROM clock)
    ) AS waiting, ${COST} AS cost_ms`,
  );
  const values = {
    undelivered: JSON.parse(undelivered) as string[],
    waiting: JSON.parse(waiting) as string[],
  };
  return { values, costMs: cost_ms };
}
