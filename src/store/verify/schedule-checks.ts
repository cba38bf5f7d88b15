import { sql } from 'drizzle-orm';
import { BEFORE_SCOPE } from '../../core/runs/run-lane.ts';
import { laneOfConnection } from '../../core/connections/connection.ts';
import { isAhead } from '../schedules/cursors-ahead.ts';
import { isUidOfPrefix } from '../effects/followers.ts';
import { noPlanning } from '../instances/installation-row.ts';
import { type Check, newestOpen, RUN_NAME } from './run-checks.ts';

const IS_OF_CONNECTION = sql`starts_with(lane, 'http connection ')`;
const CONNECTION_EXISTS = sql`EXISTS (SELECT FROM connections c WHERE ${laneOfConnection('')} || c.id = split_part(lane, ${BEFORE_SCOPE}, 1))`;

/** There are at most some hundred thousand schedules, and all are read. */
export const SCHEDULE_CHECKS: readonly Check[] = [
  {
    name: 'dueSchedulesArePlanned',
    holds: 'a schedule that is due is planned, unless maintenance is in force',
    found: sql`SELECT 'schedule ' || s.id AS name, 'was due at ' || s.next_fire_at AS fault FROM schedules s
      WHERE s.enabled AND s.error IS NULL AND s.next_fire_at < (SELECT at FROM settled) AND NOT ${noPlanning}`,
  },
  {
    name: 'enabledSchedulesWake',
    holds: 'an enabled schedule with an upcoming occurrence has a next fire',
    found: sql`SELECT 'schedule ' || s.id AS name, 'has an occurrence at ' || s.next_occurrence_at || ' and no next fire' AS fault
      FROM schedules s WHERE s.enabled AND s.next_occurrence_at IS NOT NULL AND s.next_fire_at IS NULL`,
  },
  {
    name: 'cursorsAreNotAhead',
    holds:
      'no schedule was planned or written at a moment that is still to come, when the clock of the database was ahead',
    found: sql`SELECT 'schedule ' || s.id AS name, 'is not planned before ' || greatest(s.planned_through, s.updated_at)
        || ': \`firelock resume --from-now\` sets it back' AS fault FROM schedules s, clock WHERE ${isAhead}`,
  },
  {
    name: 'pausesEnd',
    holds: 'a pause with an end has ended at that time',
    found: sql`SELECT 'schedule ' || s.id AS name, 'was to be enabled at ' || s.pause_until AS fault FROM schedules s
      WHERE s.pause_until < (SELECT at FROM settled) AND NOT s.enabled AND s.error IS NULL`,
  },
  {
    name: 'definitionsAreThere',
    holds: 'the version that a schedule or an open run names is stored',
    found: sql`SELECT 'schedule ' || s.id AS name, 'has no version ' || s.version AS fault FROM schedules s
      WHERE NOT EXISTS (SELECT FROM schedule_versions v WHERE v.schedule_uid = s.uid AND v.version = s.version)
      UNION ALL SELECT 'run ' || r.id, 'goes by version ' || r.schedule_version || ', which is not stored' FROM ${newestOpen} AS r
      WHERE NOT EXISTS (SELECT FROM schedule_versions v WHERE v.schedule_uid = r.schedule_uid AND v.version = r.schedule_version)`,
  },
  {
    name: 'followedSchedulesExist',
    holds: 'the schedule that another one follows exists',
    found: sql`SELECT 'schedule ' || s.id AS name, 'follows a schedule that does not exist' AS fault FROM schedules s
      WHERE s.after_uid IS NOT NULL AND NOT ${isUidOfPrefix(sql`s.after_uid`)}
        AND NOT EXISTS (SELECT FROM schedules p WHERE p.uid = s.after_uid)`,
  },
  {
    name: 'namedLimitsExist',
    holds: 'the limit that a schedule or an open run names exists',
    found: sql`SELECT 'schedule ' || s.id AS name, 'names the limit ' || s.limit_id || ', which does not exist' AS fault FROM schedules s
      WHERE s.limit_id IS NOT NULL AND NOT EXISTS (SELECT FROM limits l WHERE l.id = s.limit_id)
      UNION ALL SELECT 'run ' || r.id, 'names the limit ' || r.limit_id || ', which does not exist' FROM runs r
      WHERE r.limit_id IS NOT NULL AND NOT EXISTS (SELECT FROM limits l WHERE l.id = r.limit_id)`,
  },
  {
    name: 'namedConnectionsExist',
    holds: 'the connection that a schedule or an open run names exists',
    found: sql`SELECT 'schedule ' || id AS name, 'has the lane ' || lane || ', and there is no such connection' AS fault FROM schedules
      WHERE ${IS_OF_CONNECTION} AND NOT ${CONNECTION_EXISTS}
      UNION ALL SELECT ${RUN_NAME}, 'has the lane ' || lane || ', and there is no such connection' FROM ${newestOpen} AS r
      WHERE ${IS_OF_CONNECTION} AND NOT ${CONNECTION_EXISTS}`,
  },
  {
    name: 'lanesFollowConnections',
    // By its lane a deletion finds who names a connection.
    holds: 'the lane of a schedule is that of the connection that its definition names',
    found: sql`SELECT 'schedule ' || s.id AS name, 'has the lane ' || s.lane || ', and names '
        || coalesce('the connection ' || t.connection, 'no connection') AS fault
      FROM schedules s JOIN schedule_versions v ON v.schedule_uid = s.uid AND v.version = s.version,
        LATERAL (SELECT CASE v.definition->'target'->>'type' WHEN 'http' THEN v.definition->'target'->>'connection' END AS connection) AS t
      WHERE CASE WHEN t.connection IS NULL THEN starts_with(s.lane, 'http connection ')
        ELSE s.lane <> ${laneOfConnection('')} || t.connection END`,
  },
  {
    name: 'namedCalendarsExist',
    holds: 'the calendar that a schedule excludes exists',
    found: sql`SELECT 'schedule ' || coalesce(s.id, sc.schedule_uid::text) AS name,
        'excludes the calendar ' || sc.calendar_id || ', which does not exist' AS fault
      FROM schedule_calendars sc LEFT JOIN schedules s ON s.uid = sc.schedule_uid
      WHERE NOT EXISTS (SELECT FROM calendars c WHERE c.id = sc.calendar_id)`,
  },
  {
    name: 'calendarsAreApplied',
    holds: 'the next fires of schedules that exclude a calendar follow its current version',
    found: sql`SELECT 'calendar ' || c.id AS name, 'version ' || c.version || ': next fires follow version ' || c.applied_version AS fault
      FROM calendars c WHERE c.applied_version < c.version AND c.updated_at < (SELECT at FROM settled)`,
  },
];
