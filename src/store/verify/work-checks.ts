import { sql } from 'drizzle-orm';
import { OVERLAPS } from '../../core/schedules/schedule.ts';
import { texts } from '../../postgres/sql/arrays.ts';
import { isUnlisted } from '../instances/instances.ts';
import { hasActive } from '../runs/guarded-runs.ts';
import { noHandoffs } from '../instances/installation-row.ts';
import { type Check, NEWEST_ASKED, RUN_NAME } from './check.ts';

const IS_SETTLED = sql`r.updated_at < (SELECT at FROM settled)`;

/** Work that a loop of any living instance should have done by now. */
export const WORK_CHECKS: readonly Check[] = [
  {
    name: 'silentInstancesAreDeclaredDead',
    holds: 'an instance that is silent for longer than its TTL is declared dead',
    found: sql`SELECT 'instance ' || i.id AS name, 'is silent since ' || i.heartbeat_at AS fault FROM instances i
      WHERE i.died_at IS NULL AND i.heartbeat_at < (SELECT at FROM settled) - make_interval(secs => i.ttl_seconds)`,
  },
  {
    name: 'claimsHaveHolders',
    holds: 'a claimed run belongs to a living instance, or is taken over',
    found: sql`SELECT ${RUN_NAME} AS name, 'is claimed by ' || r.claimed_by || ', which is not alive' AS fault FROM runs r
      WHERE r.status = 'pending' AND r.claimed_by IS NOT NULL AND ${isUnlisted(sql`r.claimed_by`)}
        AND r.claimed_at < (SELECT at FROM settled) AND NOT ${noHandoffs}
        AND NOT EXISTS (SELECT FROM instances i WHERE i.id = r.claimed_by AND i.died_at >= (SELECT at FROM settled))`,
  },
  {
    name: 'runningRunsExpire',
    holds: 'a running or observed run that reports nothing is settled when it expires',
    found: sql`SELECT ${RUN_NAME} AS name, coalesce('was to expire at ' || r.expires_at, 'never expires') AS fault FROM runs r
      WHERE (r.status = 'running' OR r.observed) AND coalesce(r.expires_at < (SELECT at FROM settled), true)`,
  },
  {
    name: 'boundsAreJudged',
    holds: 'an open run is judged by a bound of expect once that has passed',
    found: sql`SELECT ${RUN_NAME} AS name, 'is not judged by its bound ' || r.next_bound || ', which passed at ' || r.bound_at AS fault
      FROM runs r WHERE r.bound_at < (SELECT at FROM settled)`,
  },
  {
    name: 'dueRunsAreReady',
    holds: 'a run without a limit can be claimed once it is due',
    found: sql`SELECT ${RUN_NAME} AS name, 'is due since ' || r.due_at || ' and cannot be claimed' AS fault FROM runs r
      WHERE r.status = 'pending' AND r.claimed_by IS NULL AND NOT r.ready AND r.limit_id IS NULL AND NOT r.observed
        AND r.due_at < (SELECT at FROM settled) AND NOT ${noHandoffs}`,
  },
  {
    name: 'waitingRunsWaitForSomething',
    holds: 'a waiting run waits for a run that is open, or for the end of maintenance',
    found: sql`SELECT ${RUN_NAME} AS name, 'waits for nothing' AS fault FROM runs r LEFT JOIN schedules s ON s.uid = r.schedule_uid
      WHERE r.status = 'waiting' AND ${IS_SETTLED} AND coalesce(r.open_dependencies, 0) = 0
        AND NOT EXISTS (SELECT FROM held_runs h WHERE h.run_id = r.id)
        AND NOT EXISTS (SELECT FROM effects e WHERE e.schedule_uid = r.schedule_uid AND e.kind = 'overlap')
        AND NOT EXISTS (SELECT FROM backlogs b WHERE b.schedule_uid = r.schedule_uid)
        AND (NOT r.overlap_guarded OR s.overlap = ANY (${texts(OVERLAPS)}) AND NOT ${hasActive(sql`r.schedule_uid`)})`,
  },
  {
    name: 'endsAreCounted',
    holds: 'no run waits for one that has ended, once the effects of that end are applied',
    found: sql`SELECT 'run ' || d.run_id AS name, 'waits for run ' || d.depends_on || ', which has ended' AS fault
      FROM (SELECT * FROM run_dependencies WHERE counted_at IS NULL ORDER BY depends_on DESC, run_id DESC LIMIT ${NEWEST_ASKED}) AS d
      WHERE NOT EXISTS (SELECT FROM runs r WHERE r.id = d.depends_on)
        AND EXISTS (SELECT FROM history h WHERE h.id = d.depends_on)
        AND NOT EXISTS (SELECT FROM effects e WHERE e.run_id = d.depends_on AND e.kind = 'dependents')`,
  },
  {
    name: 'effectsAreDone',
    holds: 'the effects of an ended run are applied within an hour',
    found: sql`SELECT 'effect ' || e.id || ' (' || e.kind || ')' AS name,
        'of ' || e.finished_at || ' is not applied' || coalesce(': ' || left(e.error, 200), '') AS fault
      FROM effects e, clock WHERE e.finished_at < clock.now - interval '1 hour'
      UNION ALL SELECT 'backlog ' || b.id || ' (' || b.kind || ')',
        'of ' || b.asked_at || ' is not applied' || coalesce(': ' || left(b.error, 200), '')
      FROM backlogs b, clock WHERE b.asked_at < clock.now - interval '1 hour'`,
  },
];
