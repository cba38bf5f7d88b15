import { sql } from 'drizzle-orm';
import type { AlertKind } from '../../src/core/alerts/alert.ts';
import type { ChannelType } from '../../src/core/alerts/texts/channels.ts';
import type { EffectKind } from '../../src/core/runs/effect.ts';
import type { Definition } from '../../src/core/schedules/schedule.ts';
import type { Timing } from '../../src/core/timing/timing.ts';
import { CALENDAR_ROWS, changeLockedCalendar } from '../../src/store/calendars/calendar-rows.ts';
import { lockNamed } from '../../src/store/names/named-rows.ts';
import { putNotifier } from '../support/notifiers.ts';
import { runIdAt } from '../support/pending-runs.ts';
import type { Volume } from './volume.ts';

type OnExcluded = Timing['onExcluded'];

export const PULLED = { url: '', target: { type: 'pull', queue: 'q' } } as const;

export const idsOf = (count: number, prefix = 's') => Array.from({ length: count }, (_, n) => `${prefix}${n}`);

export const putSchedules = ({ instance }: Volume, count: number, more: Partial<Definition> = {}) =>
  instance.putMany(idsOf(count), { ...PULLED, ...more });

export async function putDue(volume: Volume, count: number, more: Partial<Definition> = {}): Promise<void> {
  await putSchedules(volume, count, more);
  await volume.store.rows(sql`UPDATE schedules SET next_fire_at = at, next_occurrence_at = at
    FROM (SELECT date_trunc('second', clock_timestamp()) AS at) AS t`);
}

/** Of each schedule, what follows from an end of a run that is not there any more. */
export const leaveEffects = (
  { store }: Volume,
  kind: EffectKind,
  { status = 'failed', alertKind = null }: { status?: string; alertKind?: AlertKind | null } = {},
) =>
  store.rows(sql`INSERT INTO effects
    (kind, run_id, schedule_uid, schedule_version, schedule_id, trigger, status, finished_at, attempt, alert_kind)
    SELECT ${kind}, ${runIdAt(sql`clock_timestamp()`)}, uid, version, id, 'schedule', ${status}, clock_timestamp(), 1, ${alertKind}
    FROM schedules WHERE id LIKE 's%'`);

/** Open episodes of all schedules, to be looked at by now. */
export const leaveAlerts = ({ store }: Volume, kind: AlertKind) =>
  store.rows(sql`INSERT INTO alerts (id, schedule_uid, schedule_id, kind, since, broken_at, look_at)
    SELECT ${runIdAt(sql`clock_timestamp()`)}, uid, id, ${kind}, now(), now(), now() FROM schedules`);

/** Messages of a notifier about open episodes, of which none could be delivered; they go to the fallback. */
export async function leaveUndelivered(
  volume: Volume,
  { messages, episodes, channel = 'webhook' }: { messages: number; episodes: number; channel?: ChannelType },
): Promise<void> {
  const { store } = volume;
  await putSchedules(volume, episodes);
  await leaveAlerts(volume, 'late');
  await putNotifier(store, { id: 'last', url: '', channel, on: [] });
  await putNotifier(store, { id: 'first', url: '', fallback: 'last' });
  await store.rows(sql`INSERT INTO messages (run_id, notifier_id, event, created_at)
    SELECT gen_random_uuid(), 'first', 'opened', now() FROM generate_series(1, ${messages}::int)`);
  await store.rows(sql`INSERT INTO message_alerts SELECT m.run_id, a.id FROM messages m, alerts a`);
  await store.rows(sql`INSERT INTO effects
    (kind, run_id, schedule_uid, schedule_version, schedule_id, trigger, status, finished_at, attempt)
    SELECT 'undelivered', run_id, gen_random_uuid(), 1, '', 'notify', 'failed', now(), 1 FROM messages`);
}

/** Episodes of so many schedules, of which so many notifiers are to be reminded now. */
export async function leaveReminders(
  volume: Volume,
  { notifiers, episodes, channel = 'webhook' }: { notifiers: number; episodes: number; channel?: ChannelType },
): Promise<void> {
  const { store } = volume;
  await putSchedules(volume, episodes);
  await leaveAlerts(volume, 'late');
  await store.rows(sql`UPDATE alerts SET look_at = NULL`);
  for (const id of idsOf(notifiers)) await putNotifier(store, { id, url: '', channel });
  await store.rows(sql`INSERT INTO alert_tellings (alert_id, notifier_id, remind_at)
    SELECT a.id, n.id, now() - interval '1 second' FROM alerts a, notifiers n`);
}

export const leaveKeys = ({ store }: Volume, count: number) =>
  store.rows(sql`INSERT INTO run_keys (scope, key, body_hash, run_id)
    SELECT gen_random_uuid(), n::text, '', ${runIdAt(sql`now() - interval '90 days'`)} FROM generate_series(1, ${count}::int) AS n`);

export const HOLIDAYS = { exclude: { dates: [], calendars: ['holidays'] } };

export async function putCalendar({ store }: Volume): Promise<void> {
  await store.rows(
    sql`INSERT INTO calendars (id, version, applied_version, updated_at) VALUES ('holidays', 1, 1, now())`,
  );
  await store.rows(
    sql`INSERT INTO calendar_versions (calendar_id, version, at, dates) VALUES ('holidays', 1, now() - interval '1 hour', '[]')`,
  );
}

/** As an instance edits it that dies before anything follows. */
export async function editCalendar({ store }: Volume, dates: string[]): Promise<void> {
  await store.database.transaction(async (tx) => {
    const current = await lockNamed(tx, CALENDAR_ROWS, { id: 'holidays' });
    if (current)
      await changeLockedCalendar(tx, current, { description: null, validUntil: null, dates }, { movesFires: true });
  });
  await store.rows(sql`UPDATE calendars SET updated_at = updated_at - interval '1 minute'`);
}

const HOUR = 3_600_000;

// A zone in which it is about noon, so that no date ends meanwhile.
const AWAY = 12 - new Date().getUTCHours();
const inAnHourLessThanADay = () => new Date(Date.now() + (AWAY + 23) * HOUR);
const dateOf = (at: Date) => at.toISOString().slice(0, 10);

/** Tomorrow, there; and so many days before it. */
export const dayToExclude = (daysBefore = 0) => {
  const tomorrow = inAnHourLessThanADay();
  return `${dateOf(new Date(tomorrow.getTime() - daysBefore * 24 * HOUR))}/${dateOf(tomorrow)}`;
};

/** Schedules that fire tomorrow; if that day is excluded, they should have fired an hour ago. Answers what their definitions say. */
export async function putOwing(volume: Volume, count: number, onExcluded: OnExcluded = 'previous') {
  const { store } = volume;
  const there = inAnHourLessThanADay();
  const timing = {
    ...{ ...HOLIDAYS, timezone: `Etc/GMT${AWAY > 0 ? '-' : '+'}${Math.abs(AWAY)}`, onExcluded },
    cron: `${there.getUTCMinutes()} ${there.getUTCHours()} ${there.getUTCDate()} ${there.getUTCMonth() + 1} *`,
  };
  await putCalendar(volume);
  await putSchedules(volume, count, timing);
  const earlier = sql`- interval '9 days'`;
  await store.rows(sql`UPDATE schedules SET created_at = created_at ${earlier}, updated_at = updated_at ${earlier}`);
  await store.rows(sql`UPDATE schedule_versions SET at = at ${earlier}`);
  await store.rows(sql`UPDATE calendar_versions SET at = at ${earlier}`);
  return timing;
}

export const DUE = sql`SELECT count(*)::int FROM schedules WHERE next_fire_at <= clock_timestamp()`;
export const PENDING = sql`SELECT count(*)::int FROM runs WHERE status = 'pending'`;
export const EFFECTS = sql`SELECT count(*)::int FROM effects`;
export const UNAPPLIED = sql`SELECT count(*)::int FROM calendars WHERE applied_version < version`;
