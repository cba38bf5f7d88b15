import { sql } from 'drizzle-orm';
import { createExpiry } from '../../src/recovery/expiry.ts';
import { findReminders, remind } from '../../src/store/alerts/reminders.ts';
import { leaveOpenRuns } from '../support/open-runs.ts';
import { leaveRuns, runIdAt } from '../support/pending-runs.ts';
import { deadInstance } from '../support/recovering.ts';
import {
  HOLIDAYS,
  UNAPPLIED,
  dayToExclude,
  editCalendar,
  idsOf,
  leaveAlerts,
  leaveKeys,
  leaveReminders,
  putCalendar,
  putOwing,
  putSchedules,
} from './leave.ts';
import type { LoopTable } from './loop-case.ts';

const REMINDERS = sql`SELECT count(*)::int FROM alert_tellings WHERE remind_at <= clock_timestamp()`;

/** All other loops. */
export const BACKGROUND_LOOPS: LoopTable = {
  heartbeat: [
    {
      of: 'silent instances',
      leave: async ({ store }, count) => {
        for (let n = 0; n < count; n += 1) await deadInstance(store);
        await store.rows(
          sql`UPDATE instances SET died_at = NULL, heartbeat_at = now() - interval '1 hour' WHERE ttl_seconds = 10`,
        );
      },
    },
  ],
  'pause-end': [
    {
      of: 'pauses that are over',
      leave: async (volume, count) => {
        await putSchedules(volume, count, { enabled: false, pauseUntil: Date.now() + 3_600_000 });
        const at = Date.now() - 1_000;
        await volume.store.rows(sql`UPDATE schedules SET pause_until = to_timestamp(${at / 1_000}::float8)`);
        await volume.store.rows(
          sql`UPDATE schedule_versions SET definition = jsonb_set(definition, '{pauseUntil}', to_jsonb(${at}::bigint))`,
        );
      },
      left: sql`SELECT count(*)::int FROM schedules WHERE NOT enabled`,
    },
  ],
  recovery: [
    {
      of: 'claims of a dead instance',
      leave: async ({ instance, store, receiver }, count) => {
        await instance.put('one', { url: receiver.url });
        await leaveRuns(store, 'one', { count, claimedBy: await deadInstance(store) });
      },
      left: sql`SELECT count(*)::int FROM runs WHERE claimed_by IS NOT NULL`,
    },
  ],
  backstop: [
    {
      of: 'schedules whose runs wait in vain',
      leave: async (volume, count) => {
        await putSchedules(volume, count, { overlap: 'skip' });
        await leaveOpenRuns(volume.store, null, 1, { status: 'waiting' });
      },
      left: sql`SELECT (SELECT count(*) FROM runs)::int - (SELECT count(*) FROM effects)::int AS count`,
    },
    {
      of: 'waiting runs of a deleted schedule',
      leave: async (volume, count) => {
        await putSchedules(volume, 1);
        await leaveOpenRuns(volume.store, null, count, { status: 'waiting' });
        await volume.store.rows(sql`DELETE FROM schedules`);
      },
      left: sql`SELECT count(*)::int FROM runs`,
    },
    {
      of: 'runs that maintenance held',
      leave: async (volume, count) => {
        await putSchedules(volume, 1);
        await leaveOpenRuns(volume.store, null, count, { status: 'waiting', guarded: false });
        await volume.store.rows(sql`INSERT INTO held_runs SELECT id FROM runs`);
      },
      left: sql`SELECT count(*)::int FROM held_runs`,
    },
    {
      of: 'runs that were written, and effects that were put off, while the clock was ahead',
      leave: async (volume, count) => {
        await putSchedules(volume, 1);
        await leaveOpenRuns(volume.store, null, count, { guarded: false });
        await volume.store.rows(sql`UPDATE runs SET updated_at = now() + interval '2 hours'`);
        await volume.store.rows(sql`INSERT INTO effects
          (kind, run_id, schedule_uid, schedule_version, schedule_id, trigger, status, finished_at, attempt, retry_at)
          SELECT 'overlap', id, schedule_uid, schedule_version, schedule_id, trigger, 'succeeded', now(), 1, updated_at FROM runs`);
      },
      left: sql`SELECT (SELECT count(*) FROM runs WHERE updated_at > now() + interval '1 minute')::int
        + (SELECT count(*) FROM effects WHERE retry_at > now() + interval '1 minute')::int AS count`,
    },
  ],
  expiry: [
    {
      of: 'runs that have gone silent',
      leave: async (volume, count) => {
        await putSchedules(volume, 1);
        await leaveOpenRuns(volume.store, null, count, { status: 'running' });
        await volume.store.rows(sql`UPDATE runs SET expires_at = now() - interval '1 hour'`);
      },
      left: sql`SELECT count(*)::int FROM runs WHERE status = 'running'`,
      loop: ({ common, workers }) => createExpiry({ ...common, wake: workers.wake, graceSeconds: 0 }),
    },
  ],
  'alert-watch': [
    {
      of: 'schedules that are late',
      leave: async (volume, count) => {
        await putSchedules(volume, count, { successWithinSeconds: 60 });
        await volume.store.rows(
          sql`UPDATE outcome_watches SET look_at = now(), success_since = now() - interval '1 hour'`,
        );
      },
      left: sql`SELECT count(*)::int FROM outcome_watches WHERE look_at <= clock_timestamp()`,
    },
    {
      of: 'open episodes to look at',
      leave: async (volume, count) => {
        await putSchedules(volume, count);
        await leaveAlerts(volume, 'missed');
      },
      left: sql`SELECT count(*)::int FROM alerts WHERE look_at <= clock_timestamp()`,
    },
    {
      of: 'reminders of a notifier, of which each is an incident of PagerDuty',
      leave: (volume, count) => leaveReminders(volume, { notifiers: 1, episodes: count, channel: 'pagerduty' }),
      left: REMINDERS,
    },
    {
      of: 'notifiers to be reminded',
      leave: (volume, count) => leaveReminders(volume, { notifiers: count, episodes: 1 }),
      left: REMINDERS,
    },
    {
      of: 'messages that have gathered',
      leave: async (volume, count) => {
        await leaveReminders(volume, { notifiers: count, episodes: 1 });
        const { database } = volume.store;
        const due = await database.run((db) => findReminders(db, { limit: 1_000, besides: [], besideNotifiers: [] }));
        await database.transaction((tx) => remind(tx, due.due, null));
        await volume.store.rows(sql`UPDATE messages SET gathers_until = now() - interval '1 second'`);
      },
      left: sql`SELECT count(*)::int FROM messages WHERE gathers_until IS NOT NULL`,
    },
  ],
  'expect-watch': [
    {
      of: 'runs past a bound',
      leave: async (volume, count) => {
        await putSchedules(volume, 1, {
          expect: { startWithinSeconds: 60, finishWithinSeconds: null, atLeastSeconds: null, result: null },
        });
        await leaveOpenRuns(volume.store, null, count);
        await volume.store.rows(sql`UPDATE runs SET next_bound = 'start', bound_at = now() - interval '1 second'`);
      },
      left: sql`SELECT count(*)::int FROM runs WHERE bound_at <= clock_timestamp()`,
    },
  ],
  'waiting-watch': [
    {
      of: 'runs that have expired',
      leave: async (volume, count) => {
        await putSchedules(volume, 1, { expiresAfterSeconds: 60 });
        await leaveOpenRuns(volume.store, null, count);
        await volume.store.rows(sql`UPDATE runs SET begin_by = now() - interval '1 second'`);
      },
      left: sql`SELECT count(*)::int FROM runs`,
    },
  ],
  partitions: 'it makes days, whatever is in them',
  retention: [
    { of: 'keys of runs that are gone', leave: leaveKeys, left: sql`SELECT count(*)::int FROM run_keys` },
    {
      of: 'dependencies of runs that are gone',
      leave: ({ store }, count) =>
        store.rows(sql`INSERT INTO run_dependencies (run_id, depends_on, position)
          SELECT ${runIdAt(sql`now() - interval '90 days'`)}, gen_random_uuid(), 1 FROM generate_series(1, ${count}::int)`),
      left: sql`SELECT count(*)::int FROM run_dependencies`,
    },
    {
      of: 'definitions that nothing uses',
      leave: async (volume, count) => {
        await putSchedules(volume, count);
        await volume.store.rows(sql`DELETE FROM schedules`);
        await volume.store.rows(sql`UPDATE schedule_versions SET at = now() - interval '90 days'`);
      },
      left: sql`SELECT count(*)::int FROM schedule_versions`,
    },
  ],
  'zone-watch': [
    {
      of: 'next fires by other zone data',
      leave: async (volume, count) => {
        await putSchedules(volume, count, { timezone: 'Europe/Paris' });
        await volume.store.rows(sql`UPDATE schedules SET next_fire_at = next_fire_at + interval '1 hour',
          next_occurrence_at = next_occurrence_at + interval '1 hour'`);
        await volume.store.rows(sql`UPDATE instances SET zone_data = ${volume.common.zoneData}`);
      },
      left: sql`SELECT 1 - count(*)::int AS count FROM zone_data`,
    },
  ],
  'calendar-watch': [
    {
      of: 'schedules whose next fires move',
      leave: async (volume, count) => {
        await putCalendar(volume);
        await putSchedules(volume, count, { ...HOLIDAYS, cron: '0 0 * * *' });
        await editCalendar(volume, [`2000-01-01/${new Date(Date.now() + 172_800_000).toISOString().slice(0, 10)}`]);
      },
      left: UNAPPLIED,
    },
    {
      of: 'schedules to which an edit of their calendar owes a fire',
      leave: async (volume, count) => {
        await putOwing(volume, count);
        await editCalendar(volume, [dayToExclude()]);
      },
      left: sql`SELECT (${UNAPPLIED}) + (SELECT count(*)::int FROM schedules) - (SELECT count(*)::int FROM runs) AS count`,
    },
  ],
  gauges: [{ of: 'schedules', leave: (volume, count) => putSchedules(volume, count) }],
  'scope-caps': [
    {
      of: 'open runs',
      leave: ({ instance }, count) =>
        instance.accept(...idsOf(count).map((key) => ({ queue: 'q', key: `capped.${key}` }))),
    },
  ],
  memory: 'it asks no database',
  connections: 'it opens a few, whatever is in the database',
};
