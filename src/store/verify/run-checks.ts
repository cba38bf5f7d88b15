import { type SQL, sql } from 'drizzle-orm';
import { OVERLAPS } from '../../core/schedules/schedule.ts';
import { texts } from '../../postgres/sql/arrays.ts';
import { noHandoffs } from '../instances/installation-row.ts';
import { isUnlisted } from '../instances/instances.ts';
import { hasActive } from '../runs/guarded-runs.ts';

/** An invariant: it holds in every snapshot of the database, whatever instances do, and however they die. */
export interface Check {
  name: string;
  /** The invariant, as a sentence for operators. */
  holds: string;
  /**
   * A query with the columns `name` (of the row, for a person) and `fault`. It may use `clock`, a row with the column `now`, and
   * `settled`, a row with `at`: what is older than that is not under way any more.
   */
  found: SQL;
}

/** Loops come back to unfinished work much sooner. Younger work may be under way, and is no violation. */
export const SETTLED_SECONDS = 300;

/** Among ended runs, the newest by `scheduledFor` are checked: so many that a check takes a second at most. */
const NEWEST_ENDED = 100_000;
/** Among open runs, which are usually few: the newest, too. */
const NEWEST_OPEN = 100_000;
/** For these runs, every day of history is searched. */
const NEWEST_ASKED = 5_000;

/** By the index on the id, in every day of history. */
const newestEnded = sql`(SELECT * FROM history ORDER BY id DESC LIMIT ${NEWEST_ENDED})`;
export const newestOpen = sql`(SELECT * FROM runs ORDER BY id DESC LIMIT ${NEWEST_OPEN})`;

/** A run, for a person; from a row `r`. */
export const RUN_NAME = sql`'run ' || r.id || CASE WHEN r.schedule_id = '' THEN '' ELSE ' of schedule ' || r.schedule_id END`;

const PLANNED_IDS = sql`trigger IN ('schedule', 'catchUp', 'backfill')`;

/** Runs against each other, and against their own rows. */
export const RUN_CHECKS: readonly Check[] = [
  {
    name: 'oneRunForEachFire',
    holds: 'each fire time of a schedule has at most one run',
    found: sql`SELECT 'schedule ' || min(r.schedule_id) AS name, 'has ' || count(*) || ' runs for ' || r.scheduled_for AS fault
      FROM (SELECT schedule_uid, scheduled_for, schedule_id FROM ${newestEnded} AS ended WHERE ${PLANNED_IDS}
        UNION ALL SELECT schedule_uid, scheduled_for, schedule_id FROM ${newestOpen} AS open WHERE ${PLANNED_IDS}) AS r
      GROUP BY r.schedule_uid, r.scheduled_for HAVING count(*) > 1`,
  },
  {
    name: 'runsAreInOneTable',
    holds: 'a run is either open or ended',
    found: sql`SELECT ${RUN_NAME} AS name, 'is open and ended' AS fault
      FROM (SELECT * FROM runs ORDER BY id DESC LIMIT ${NEWEST_ASKED}) AS r WHERE EXISTS (SELECT FROM history h WHERE h.id = r.id)
      UNION SELECT ${RUN_NAME}, 'is open and ended' FROM ${newestEnded} AS r WHERE EXISTS (SELECT FROM runs o WHERE o.id = r.id)`,
  },
  {
    name: 'cursorsCoverRuns',
    holds: 'a schedule has been planned up to its newest planned run, so that no fire is planned again',
    found: sql`SELECT ${RUN_NAME} AS name,
        'is for ' || r.scheduled_for || '; its schedule counts as planned up to ' || coalesce(s.planned_through::text, 'nothing') AS fault
      FROM (SELECT id, schedule_uid, schedule_id, scheduled_for, trigger FROM ${newestEnded} AS ended
        UNION ALL SELECT id, schedule_uid, schedule_id, scheduled_for, trigger FROM ${newestOpen} AS open) AS r
      JOIN schedules s ON s.uid = r.schedule_uid
      WHERE r.trigger IN ('schedule', 'catchUp') AND coalesce(s.planned_through < r.scheduled_for, true)
        AND NOT EXISTS (SELECT FROM skips k WHERE k.schedule_uid = r.schedule_uid AND k.fire_at = r.scheduled_for AND k.made)`,
  },
  {
    name: 'idsTellTheirMoment',
    holds: 'the time bits of a run’s id are its scheduledFor',
    found: sql`SELECT ${RUN_NAME} AS name, 'is for ' || r.scheduled_for AS fault
      FROM (SELECT id, schedule_id, scheduled_for FROM ${newestEnded} AS ended
        UNION ALL SELECT id, schedule_id, scheduled_for FROM ${newestOpen} AS open) AS r
      WHERE ('x' || left(replace(r.id::text, '-', ''), 12))::bit(48)::bigint <> round(extract(epoch FROM r.scheduled_for) * 1000)`,
  },
  {
    name: 'endedRunsAddUp',
    holds: 'the row of an ended run is consistent: its status, its attempts and its handoff',
    found: sql`SELECT * FROM (SELECT ${RUN_NAME} AS name, CASE
        WHEN r.status NOT IN ('succeeded', 'failed', 'unknown', 'abandoned', 'skipped', 'cancelled') THEN 'has ended as ' || r.status
        WHEN r.status = 'succeeded' AND r.handed_off_at IS NULL THEN 'succeeded and was never handed off'
        WHEN r.status IN ('skipped', 'abandoned') AND r.reason IS NULL THEN 'is ' || r.status || ' without a reason'
        WHEN r.recoveries > 0 AND r.lost_at IS NULL THEN 'was recovered and never lost'
        WHEN r.failures > r.attempts THEN 'has ' || r.failures || ' failures in ' || r.attempts || ' attempts'
        END AS fault FROM ${newestEnded} AS r) AS ended WHERE fault IS NOT NULL`,
  },
  {
    name: 'limitsAreKept',
    holds: 'no more runs of a limit are under way than its maxRunning',
    // A limit that was made smaller stops nothing that was under way already.
    found: sql`SELECT 'limit ' || l.id AS name, count(*) || ' runs are under way, of ' || l.max_running AS fault
      FROM limits l JOIN runs r ON r.limit_id = l.id AND r.admitted_at IS NOT NULL
      GROUP BY l.id HAVING count(*) > l.max_running AND max(r.admitted_at) > l.updated_at`,
  },
  {
    name: 'oneActiveRun',
    holds: 'a schedule whose runs must not overlap has at most one active run',
    // Backfills and retries start all the same, and an edit of `overlap` applies to runs that are recorded after it.
    found: sql`SELECT 'schedule ' || s.id AS name, count(*) || ' runs are active' AS fault
      FROM runs r JOIN schedules s ON s.uid = r.schedule_uid AND s.overlap IN ('skip', 'queue', 'replace')
      WHERE r.overlap_guarded AND r.status IN ('pending', 'running') AND r.trigger <> 'backfill' AND r.retried_after IS NULL
        AND r.created_at > s.updated_at AND NOT EXISTS (SELECT FROM backlogs b WHERE b.schedule_uid = s.uid)
      GROUP BY s.uid HAVING count(*) > 1`,
  },
  {
    name: 'openDependenciesAddUp',
    holds: 'a waiting run counts its open dependencies correctly',
    found: sql`SELECT ${RUN_NAME} AS name, 'waits for ' || r.open_dependencies || ' runs, of which ' || open.count || ' are not counted' AS fault
      FROM ${newestOpen} AS r, LATERAL (
        SELECT count(*) FROM run_dependencies d WHERE d.run_id = r.id AND d.counted_at IS NULL) AS open
      WHERE r.status = 'waiting' AND r.open_dependencies IS NOT NULL AND r.open_dependencies <> open.count`,
  },
];

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
