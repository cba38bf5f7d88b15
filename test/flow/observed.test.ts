import { sql } from 'drizzle-orm';
import { expect, onTestFinished, test } from 'vitest';
import type { FirelockEvent } from '../../src/core/events.ts';
import type { Definition } from '../../src/core/schedules/schedule.ts';
import { createExpiry } from '../../src/recovery/expiry.ts';
import { systemClock } from '../../src/runtime/clock.ts';
import { createEventBus } from '../../src/runtime/event-bus.ts';
import { ALL_CHECKS, checkOnSnapshot } from '../../src/store/verify/check-on-snapshot.ts';
import { eachTest, instanceOfTest, receiverOfTest, storeOfTest } from '../support/of-test.ts';
import { NO_WAKE } from '../support/working.ts';
import { until } from '../support/until.ts';

const store = eachTest(storeOfTest);
const receiver = eachTest(receiverOfTest);
const instance = eachTest(() => instanceOfTest(store));
const MINUTE = 60_000;
const EVERY_MINUTE = {
  cron: '* * * * *',
  catchUp: 'all',
  graceSeconds: 0,
  completionTimeoutSeconds: 86_400,
} as const;
const put = (id: string, definition: Partial<Definition>) =>
  instance.put(id, { ...EVERY_MINUTE, url: receiver.url, ...definition });

/** As if the schedules had last been looked at so many minutes ago. Answers the present minute. */
async function rewind(minutes: number): Promise<number> {
  const [row] = await store.rows<{ now: string }>(sql`UPDATE schedules SET
    next_occurrence_at = date_trunc('minute', clock_timestamp()) - interval '1 minute' * ${minutes}::int,
    next_fire_at = date_trunc('minute', clock_timestamp()) - interval '1 minute' * ${minutes}::int
    WHERE after_uid IS NULL RETURNING date_trunc('minute', clock_timestamp()) AS now`);
  return Date.parse(row?.now ?? '');
}

interface Row extends Record<string, unknown> {
  id: string;
  schedule_id: string;
  status: string;
  observed: boolean;
  scheduled_for: string;
}
const runs = () => store.rows<Row>(sql`SELECT * FROM all_runs ORDER BY scheduled_for, schedule_id`);

async function expectSound(): Promise<void> {
  const results = await store.database.transaction((tx) => checkOnSnapshot(tx, () => 60_000, ALL_CHECKS));
  expect(results.filter(({ violations }) => violations !== 0)).toEqual([]);
}

test('moments before until are recorded and not sent, those from it on are sent, by two instances, whatever overlap says', async () => {
  const observe = { until: Math.floor(Date.now() / MINUTE) * MINUTE - 5 * MINUTE };
  await put('split', { observe });
  await put('one-at-a-time', { observe, overlap: 'queue' });
  await put('none', {});
  const began = (await rewind(9)) - 9 * MINUTE;
  const second = await instanceOfTest(store);
  await Promise.all([instance.start(), second.start()]);
  await until(async () => {
    const left = (await runs()).filter(
      (run) => !run.observed && run.status !== 'succeeded' && run.status !== 'skipped',
    );
    const planned = await store.rows(sql`SELECT FROM schedules WHERE next_fire_at <= clock_timestamp()`);
    return left.length + planned.length === 0 ? true : null;
  });
  for (const id of ['split', 'one-at-a-time']) {
    const own = (await runs()).filter((run) => run.schedule_id === id);
    for (const run of own)
      expect([run.observed, Date.parse(run.scheduled_for) < observe.until]).not.toContain(undefined);
    expect(own.every((run) => run.observed === Date.parse(run.scheduled_for) < observe.until)).toBe(true);
    expect(own.filter((run) => run.observed)).toHaveLength((observe.until - began) / MINUTE);
    for (const run of own.filter(({ observed }) => observed))
      expect(run).toMatchObject({
        status: 'pending',
        lane: 'observed',
        claimed_by: null,
        attempts: 0,
        overlap_guarded: false,
      });
    // A minute may have ended meanwhile: then one more is sent.
    await until(async () => {
      const ended = (await runs()).filter((run) => run.schedule_id === id && run.status === 'succeeded');
      const sent = receiver.arrivals.filter(({ body }) => body.scheduleId === id).map(({ body }) => body.runId);
      return (
        sent.toSorted().join() ===
          ended
            .map((run) => run.id)
            .toSorted()
            .join() || null
      );
    });
  }
  expect((await runs()).filter((run) => run.schedule_id === 'none' && run.observed)).toEqual([]);
  await expectSound();
});

test('an edit records what was due as the tick does', async () => {
  const definition = {
    observe: { until: null },
    expect: { startWithinSeconds: 60, finishWithinSeconds: 90, atLeastSeconds: null, result: null },
    expiresAfterSeconds: 60,
  };
  await put('by-edit', { ...definition, overlap: 'skip' });
  await put('by-tick', { ...definition, overlap: 'skip' });
  await rewind(3);
  await put('by-edit', { ...definition, overlap: 'skip', cron: '0 0 1 1 *' });
  await instance.start();
  const all = await until(async () => {
    const found = await runs();
    return found.filter((run) => run.schedule_id === 'by-tick').length >= 4 ? found : null;
  });
  const of = (schedule: string) =>
    all
      .filter((run) => run.schedule_id === schedule)
      .slice(0, 3)
      .map(({ id: _id, schedule_uid: _uid, schedule_id: _own, created_at: _at, updated_at: _then, ...rest }) => rest);
  expect(of('by-edit')).toEqual(of('by-tick'));
  expect(of('by-tick')).toMatchObject(
    new Array(3).fill({ observed: true, status: 'pending', begin_by: null, limit_id: null }),
  );
});

test('a run of another schedule is followed by an observed one', async () => {
  await put('parent', { cron: '0 0 1 1 *' });
  await put('follower', {
    cron: null,
    after: { scheduleId: 'parent', on: ['succeeded'] },
    observe: { until: null },
    target: { type: 'none' },
  });
  await instance.start();
  await instance.fire('parent');
  const followed = await until(async () => (await runs()).find((run) => run.schedule_id === 'follower') ?? null);
  expect(followed).toMatchObject({ observed: true, status: 'pending', trigger: 'after', lane: 'observed' });
  expect(receiver.arrivals).toHaveLength(1);
});

test('what is observed does not count for overlap: a fire by hand starts at once', async () => {
  await put('a', { observe: { until: null }, overlap: 'skip' });
  await rewind(1);
  await instance.start();
  await until(async () => ((await runs()).length >= 2 ? true : null));
  await instance.fire('a');
  await receiver.arrived(1);
});

test('what nobody reports in time ends failed, expired, and is not tried again', async () => {
  await put('a', { observe: { until: null }, completionTimeoutSeconds: 30 });
  await rewind(3);
  await instance.start();
  const events: FirelockEvent[] = [];
  const bus = createEventBus();
  bus.subscribe((event) => void events.push(event));
  const { database } = store;
  const expiry = createExpiry({
    database,
    clock: systemClock,
    events: bus,
    targets: instance.targets,
    graceSeconds: 0,
    wake: NO_WAKE,
  });
  void expiry.start();
  onTestFinished(() => expiry.stop());
  const ended = await until(async () => {
    const failed = (await runs()).filter((run) => run.status === 'failed');
    return failed.length >= 3 ? failed : null;
  });
  for (const run of ended)
    expect(run).toMatchObject({
      error: { kind: 'expired' },
      attempts: 0,
      attempt_log: null,
    });
  expect(events.filter(({ type }) => type === 'runsExpired')).not.toEqual([]);
  expect(receiver.arrivals).toEqual([]);
  await expectSound();
});
