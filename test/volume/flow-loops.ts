import { sql } from 'drizzle-orm';
import { randomRunId } from '../../src/core/runs/run.ts';
import { leaveMessages, putNotifier } from '../support/notifiers.ts';
import { leaveOpenRuns } from '../support/open-runs.ts';
import { leaveRuns } from '../support/pending-runs.ts';
import { endedAttempt, plainSuccess } from '../support/claims.ts';
import {
  DUE,
  EFFECTS,
  HOLIDAYS,
  PENDING,
  PULLED,
  idsOf,
  leaveAlerts,
  leaveEffects,
  leaveUndelivered,
  putCalendar,
  putDue,
  putSchedules,
} from './leave.ts';
import type { LoopTable } from './loop-case.ts';
import type { Volume } from './volume.ts';

/** Outcomes of so many runs of one schedule, which this instance had claimed. */
async function addOutcomes(volume: Volume, count: number, { isPlain = true } = {}): Promise<void> {
  const { store, instance, common, workers } = volume;
  const { instanceId } = common.lease;
  await instance.put('one', { url: volume.receiver.url });
  await leaveRuns(store, 'one', { count, claimedBy: instanceId });
  const runs = await store.rows<{ id: string }>(sql`SELECT id FROM runs`);
  for (const { id } of runs) {
    const plain = plainSuccess({ runId: id, instanceId, at: Date.now() });
    const failed = { ...plain.settlement, status: 'failed', failures: 1 } as const;
    const outcome = isPlain ? plain : { ...plain, outcome: 'rejected' as const, settlement: failed };
    workers.settler.add(endedAttempt(outcome, { scheduleId: 'one', firstClaimedAt: Date.now() }));
  }
}

/** The loops of the fire protocol. */
export const FLOW_LOOPS: LoopTable = {
  settle: [
    { of: 'plain successes', leave: (volume, count) => addOutcomes(volume, count), left: PENDING },
    {
      of: 'failures',
      leave: (volume, count) => addOutcomes(volume, count, { isPlain: false }),
      left: PENDING,
    },
  ],
  effects: [
    {
      of: 'ends with a follower',
      leave: async (volume, count) => {
        await putSchedules(volume, count);
        await volume.instance.put('all', {
          ...PULLED,
          cron: null,
          after: { scheduleId: '*', on: ['failed'] },
        });
        await leaveEffects(volume, 'followers');
      },
      left: EFFECTS,
    },
    {
      of: 'runs that depend on one that failed',
      leave: async ({ instance, store }, count) => {
        const [first] = await instance.accept({ queue: 'q' });
        await instance.accept(...idsOf(count).map(() => ({ queue: 'q', dependsOn: [first?.id ?? ''] })));
        await store.rows(sql`INSERT INTO effects (kind, run_id, schedule_uid, schedule_version, schedule_id, trigger, status, finished_at, attempt)
          SELECT 'dependents', id, schedule_uid, 1, '', 'api', 'failed', now(), 1 FROM runs WHERE id = ${first?.id ?? ''}`);
      },
      left: EFFECTS,
    },
    {
      of: 'schedules to be judged',
      leave: async (volume, count) => {
        await putSchedules(volume, count, { overlap: 'queue' });
        await leaveOpenRuns(volume.store, null, 2, { status: 'waiting' });
        await leaveEffects(volume, 'overlap');
      },
      left: EFFECTS,
    },
    {
      of: 'runs that were cancelled',
      leave: async (volume, count) => {
        await putSchedules(volume, count);
        await leaveEffects(volume, 'cancel');
      },
      left: EFFECTS,
    },
  ],
  'alert-effects': [
    {
      of: 'late schedules that have succeeded',
      leave: async (volume, count) => {
        await putSchedules(volume, count, { successWithinSeconds: 60 });
        await leaveAlerts(volume, 'late');
        await leaveEffects(volume, 'heals', { alertKind: 'late' });
      },
      left: EFFECTS,
    },
    {
      of: 'schedules that break',
      leave: async (volume, count) => {
        await putSchedules(volume, count);
        await putNotifier(volume.store, { id: 'chat', url: '' });
        await leaveEffects(volume, 'breaks', { alertKind: 'failed' });
      },
      left: EFFECTS,
    },
    {
      of: 'schedules that break, of which each is an incident of PagerDuty',
      leave: async (volume, count) => {
        await putSchedules(volume, count);
        await putNotifier(volume.store, { id: 'pager', url: '', channel: 'pagerduty' });
        await leaveEffects(volume, 'breaks', { alertKind: 'failed' });
      },
      left: EFFECTS,
    },
    {
      of: 'notifiers that are told of one schedule',
      leave: async (volume, count) => {
        await putSchedules(volume, 1);
        for (const id of idsOf(count)) await putNotifier(volume.store, { id, url: '' });
        await leaveEffects(volume, 'breaks', { alertKind: 'failed' });
      },
      left: EFFECTS,
    },
    {
      of: 'episodes that are over',
      leave: async (volume, count) => {
        await putSchedules(volume, count);
        await putNotifier(volume.store, { id: 'pager', url: '', channel: 'pagerduty' });
        await leaveAlerts(volume, 'late');
        await volume.store.rows(sql`INSERT INTO alert_tellings (alert_id, notifier_id) SELECT id, 'pager' FROM alerts`);
        await leaveEffects(volume, 'heals', { alertKind: 'late' });
      },
      left: EFFECTS,
    },
    {
      of: 'messages that could not be delivered',
      leave: (volume, count) => leaveUndelivered(volume, { messages: count, episodes: 1 }),
      left: EFFECTS,
    },
    {
      of: 'episodes of a message that could not be delivered',
      leave: (volume, count) => leaveUndelivered(volume, { messages: 1, episodes: count, channel: 'pagerduty' }),
      left: EFFECTS,
    },
  ],
  'begun-effects': [
    {
      of: 'followers',
      leave: async (volume, count) => {
        await volume.instance.put('parent', PULLED);
        await putSchedules(volume, count, { cron: null, after: { scheduleId: 'parent', on: ['failed'] } });
        await volume.store
          .rows(sql`INSERT INTO effects (kind, run_id, schedule_uid, schedule_version, schedule_id, trigger, status,
            finished_at, attempt, done_through)
          SELECT 'followers', gen_random_uuid(), uid, 1, id, 'schedule', 'failed', clock_timestamp(), 1,
            '00000000-0000-0000-0000-000000000000' FROM schedules WHERE id = 'parent'`);
      },
      left: EFFECTS,
    },
    {
      of: 'episodes of a message that could not be delivered, part by part',
      leave: async (volume, count) => {
        await leaveUndelivered(volume, { messages: 1, episodes: count, channel: 'pagerduty' });
        await volume.store.rows(sql`UPDATE effects SET done_through = '00000000-0000-0000-0000-000000000000'`);
      },
      left: EFFECTS,
    },
  ],
  backlogs: [
    {
      of: 'runs of a deleted schedule',
      leave: async (volume, count) => {
        await putSchedules(volume, 1);
        await leaveOpenRuns(volume.store, null, count);
        await volume.store.rows(sql`INSERT INTO backlogs (kind, schedule_uid, schedule_id, asked_at, next_at)
          SELECT 'deleted', uid, id, now(), now() FROM schedules`);
        await volume.store.rows(sql`DELETE FROM schedules`);
      },
      left: sql`SELECT count(*)::int FROM backlogs`,
    },
    {
      of: 'runs to be marked, of schedules whose newest one replaces them',
      leave: async (volume, count) => {
        await putSchedules(volume, 10, { overlap: 'replace' });
        await leaveOpenRuns(volume.store, null, count, { guarded: false });
        await volume.store.rows(sql`INSERT INTO backlogs (kind, schedule_uid, schedule_id, kept_run, asked_at, next_at)
          SELECT kind, uid, id, CASE kind WHEN 'replaced' THEN gen_random_uuid() END, now(), now()
          FROM schedules, unnest('{marked,replaced}'::text[]) AS kind`);
      },
      left: sql`SELECT count(*)::int FROM backlogs`,
      many: 20,
    },
  ],
  pause: [
    {
      of: 'schedules whose targets want no more runs',
      leave: async (volume, count) => {
        await putSchedules(volume, count);
        await leaveEffects(volume, 'gone');
      },
      beside: ['effects'],
      left: sql`SELECT count(*)::int FROM effects WHERE kind IN ('gone', 'failing')`,
    },
    {
      of: 'schedules whose runs fail in a row',
      leave: async (volume, count) => {
        await putSchedules(volume, count, { pauseAfterFailures: 1 });
        await leaveEffects(volume, 'failing');
      },
      beside: ['effects'],
      left: sql`SELECT count(*)::int FROM effects WHERE kind IN ('gone', 'failing')`,
    },
  ],
  admission: [
    {
      of: 'runs of a limit',
      leave: async ({ instance, store, receiver }, count) => {
        await store.rows(sql`INSERT INTO limits (id, max_running, updated_at) VALUES ('l', 10000, now())`);
        await instance.accept(...idsOf(count).map(() => ({ url: receiver.url, limit: 'l' })));
      },
      left: sql`SELECT count(*)::int FROM runs WHERE admitted_at IS NULL`,
    },
    {
      of: 'limits',
      leave: async ({ instance, store, receiver }, count) => {
        const ids = idsOf(count, 'l');
        for (const id of ids)
          await store.rows(sql`INSERT INTO limits (id, max_running, updated_at) VALUES (${id}, 1, now())`);
        await instance.accept(...ids.map((limit) => ({ url: receiver.url, limit })));
      },
      left: sql`SELECT count(*)::int FROM runs WHERE admitted_at IS NULL`,
    },
  ],
  dispatch: [
    {
      of: 'runs to send at most once',
      leave: async ({ instance, store, receiver }, count) => {
        await instance.put('one', { url: receiver.url, delivery: 'atMostOnce' });
        await leaveRuns(store, 'one', { count });
      },
      left: sql`SELECT count(*)::int FROM runs WHERE handoff_started_at IS NULL`,
    },
    {
      of: 'runs that come due',
      leave: async ({ instance, store, receiver }, count) => {
        await instance.put('one', { url: receiver.url });
        await leaveRuns(store, 'one', { count });
        await store.rows(sql`UPDATE runs SET ready = false`);
      },
      left: sql`SELECT count(*)::int FROM runs WHERE claimed_by IS NULL`,
    },
  ],
  messages: [
    {
      of: 'messages of a notifier',
      // It has room for as many.
      many: 100,
      leave: ({ store, receiver }, count) => leaveMessages(store, { url: receiver.url, count }),
      left: sql`SELECT count(*)::int FROM runs WHERE claimed_by IS NULL`,
    },
  ],
  tick: [
    { of: 'due schedules', leave: (volume, count) => putDue(volume, count), left: DUE },
    {
      of: 'due schedules whose runs must not overlap, beside an open run',
      leave: async (volume, count) => {
        await putDue(volume, count, { overlap: 'skip' });
        await leaveOpenRuns(volume.store, null, 1);
      },
      left: DUE,
    },
    {
      of: 'due schedules that name a calendar',
      leave: async (volume, count) => {
        await putCalendar(volume);
        await putDue(volume, count, HOLIDAYS);
      },
      left: DUE,
    },
    {
      of: 'due schedules of which a fire is to be skipped',
      leave: async (volume, count) => {
        await putDue(volume, count);
        await volume.store.rows(
          sql`INSERT INTO skips (schedule_uid, fire_at, asked_at) SELECT uid, next_fire_at, now() FROM schedules`,
        );
        await volume.store.rows(sql`UPDATE schedules SET has_skips = true`);
      },
      left: DUE,
    },
    {
      of: 'schedules that cannot be planned',
      leave: async (volume, count) => {
        await putDue(volume, count);
        await volume.store.rows(sql`UPDATE schedules SET timing = 'none'`);
      },
      left: DUE,
    },
  ],
  'read-ahead': [{ of: 'schedules that are due soon', leave: (volume, count) => putDue(volume, count) }],
  logs: [
    {
      of: 'readers who follow logs of runs',
      leave: async ({ workers }, count) => {
        const patience = { ms: 60_000, signals: [] };
        for (let n = 0; n < count; n += 1)
          void workers.logFollowers.wait({ runId: randomRunId(Date.now()), attempt: 1, offset: 0 }, patience);
        return Promise.resolve();
      },
    },
  ],
  pull: [
    {
      of: 'workers that wait at a queue, and runs for them',
      leave: async ({ workers, instance }, count) => {
        for (const workerId of idsOf(count))
          void workers.pullQueues.claim({
            ...{ queue: 'q', workerId, max: 1, leaseSeconds: 60, waitSeconds: 60, scope: null },
            signal: new AbortController().signal,
          });
        await instance.accept(...idsOf(count).map(() => ({ queue: 'q' })));
      },
      left: PENDING,
    },
    {
      of: 'workers of a scope, and runs on which others depend',
      leave: async ({ workers, instance }, count) => {
        for (const workerId of idsOf(count))
          void workers.pullQueues.claim({
            ...{ queue: 'q', workerId, max: 1, leaseSeconds: 60, waitSeconds: 60, scope: ['s'] },
            signal: new AbortController().signal,
          });
        await instance.accept(
          ...idsOf(count).map((key) => ({ queue: 'q', key, ref: key })),
          ...idsOf(count).map((key) => ({ queue: 'later', key: `${key}-later`, dependsOn: [key] })),
        );
      },
      left: PENDING,
    },
  ],
};
