import { sql } from 'drizzle-orm';
import { describe, expect, it } from 'vitest';
import { plannedRunId } from '../../src/core/runs/run.ts';
import { eachTest, instanceOfTest, receiverOfTest, storeOfTest } from '../support/of-test.ts';
import { createInstance } from '../support/pipeline.ts';
import { refuseRunsOf } from '../support/refused.ts';
import { until } from '../support/until.ts';

/** More than a batch. */
const HERD = 600;

const store = eachTest(storeOfTest);
const receiver = eachTest(receiverOfTest);
const instance = eachTest(() => instanceOfTest(store));

/** As if the schedule had last been looked at that long ago: no test waits for a clock. */
async function rewind(id: string, seconds: number): Promise<void> {
  await store.rows(sql`UPDATE schedules SET next_occurrence_at = date_trunc('minute', clock_timestamp()) - make_interval(secs => ${seconds}),
    next_fire_at = date_trunc('minute', clock_timestamp()) - make_interval(secs => ${seconds}) WHERE id = ${id}`);
}

interface RunRow {
  id: string;
  schedule_id: string;
  schedule_uid: string;
  scheduled_for: string;
  trigger: string;
  status: string;
  coalesced: number;
  coalesced_from: string | null;
  attempts: number;
  failures: number;
  lateness_ms: number | null;
  handed_off_at: string | null;
  attempt_log: unknown;
}

const runs = () => store.rows<RunRow>(sql`SELECT * FROM all_runs ORDER BY scheduled_for`);

async function settledRuns(count: number): Promise<RunRow[]> {
  return until(async () => {
    const all = await runs();
    return all.length >= count && all.every((run) => run.status !== 'pending') ? all : null;
  });
}

describe('a schedule that is due', () => {
  it('fires once for each occurrence, under an id that can be computed, and is advanced', async () => {
    await instance.put('every-second', { cron: '* * * * * *', url: receiver.url });
    await instance.start();
    await receiver.arrived(3);
    await instance.pipeline.tick.stop();
    const settled = await settledRuns(3);
    for (const run of settled) {
      expect(run.id).toBe(plannedRunId(run.schedule_uid, Date.parse(run.scheduled_for)));
      expect(run).toMatchObject({ status: 'succeeded', trigger: 'schedule', attempts: 1, failures: 0 });
    }
    const delivered = receiver.arrivals.map((arrival) => arrival.body.runId);
    expect([...delivered].sort()).toEqual(settled.map((run) => run.id).sort());
    const [row] = await store.rows<{ next: string; last: string; locked_by: string | null }>(
      sql`SELECT next_fire_at AS next, last_fire_at AS last, locked_by FROM schedules`,
    );
    expect(Date.parse(row?.next ?? '')).toBeGreaterThan(Date.parse(settled.at(-1)?.scheduled_for ?? ''));
    expect(Date.parse(row?.last ?? '')).toBe(Date.parse(settled.at(-1)?.scheduled_for ?? ''));
    expect(row?.locked_by).toBeNull();
  });

  it('plans nothing again up to what it has planned, wherever its cursor stands', async () => {
    await instance.put('old', { cron: '* * * * *', catchUp: 'all', graceSeconds: 0, url: receiver.url });
    await rewind('old', 300);
    // What it has planned may be gone from history: no run of that time says so any more.
    await store.rows(
      sql`UPDATE schedules SET planned_through = date_trunc('minute', clock_timestamp()) - interval '150 seconds'`,
    );
    const planned = () =>
      store.rows<{ at: string; next: string }>(sql`SELECT planned_through AS at, next_fire_at AS next FROM schedules`);
    const [before] = await planned();
    await instance.start();
    await receiver.arrived(3);
    const settled = await settledRuns(3);
    expect(Date.parse(settled[0]?.scheduled_for ?? '')).toBe(Date.parse(before?.at ?? '') + 30_000);
    await instance.pipeline.tick.stop();
    const [row] = await planned();
    expect(row?.at).toBe((await runs()).at(-1)?.scheduled_for);
    expect(Date.parse(row?.next ?? '')).toBe(Date.parse(row?.at ?? '') + 60_000);
  });

  it('leaves no entry in the attempt log for a plain first-attempt success', async () => {
    await instance.put('a', { cron: '* * * * * *', url: receiver.url });
    await instance.start();
    await receiver.arrived(1);
    await instance.pipeline.tick.stop();
    const settled = await settledRuns(1);
    expect(settled.map((run) => run.attempt_log)).toEqual(settled.map(() => null));
  });

  it('makes each fire that was missed within the grace, and folds older ones into the oldest of these', async () => {
    await instance.put('minutely', { cron: '* * * * *', url: receiver.url });
    await rewind('minutely', 5 * 60);
    await instance.start();
    const settled = await settledRuns(1);
    await instance.pipeline.tick.stop();
    const [first] = settled;
    // Five or six minutes back to now: one or two of them are within the minute of grace.
    expect(first?.trigger).toBe('schedule');
    expect(first?.coalesced).toBeGreaterThanOrEqual(4);
    expect(settled.reduce((sum, run) => sum + 1 + run.coalesced, 0)).toBe(6);
    expect(Date.parse(first?.coalesced_from ?? '')).toBe(
      Date.parse(first?.scheduled_for ?? '') - (first?.coalesced ?? 0) * 60_000,
    );
  });

  it('makes the newest missed fire, late, if none is on time', async () => {
    // Twelve hours away, so that the newest missed one is far from on time.
    const daily = `0 ${(new Date().getUTCHours() + 12) % 24} * * *`;
    await instance.put('daily', { cron: daily, url: receiver.url });
    await store.rows(sql`UPDATE schedules SET next_occurrence_at = next_occurrence_at - interval '3 days',
      next_fire_at = next_fire_at - interval '3 days'`);
    await instance.start();
    const [only, ...others] = await settledRuns(1);
    expect(others).toEqual([]);
    expect(only).toMatchObject({ trigger: 'catchUp', coalesced: 2, status: 'succeeded' });
    expect(Date.now() - Date.parse(only?.scheduled_for ?? '')).toBeLessThan(86_400_000);
  });

  it('is walked in slices over a day of missed seconds, while others fire', async () => {
    await instance.put('day', { cron: '* * * * * *', url: receiver.url });
    await instance.put('other', { cron: '* * * * * *', url: `${receiver.url}/other` });
    await store.rows(sql`UPDATE schedules SET next_occurrence_at = next_occurrence_at - interval '1 day',
      next_fire_at = next_fire_at - interval '1 day' WHERE id = 'day'`);
    await instance.start();
    await until(() => (receiver.arrivals.filter((arrival) => arrival.path === '/other').length >= 3 ? true : null));
    const [first] = await until(async () => {
      const found = await store.rows<RunRow>(
        sql`SELECT * FROM all_runs WHERE schedule_id = 'day' ORDER BY scheduled_for`,
      );
      return found.length > 0 ? found : null;
    });
    const [span] = await store.rows<{ first: string; planned: number }>(
      sql`SELECT min(coalesce(coalesced_from, scheduled_for)) AS first, sum(1 + coalesced)::int AS planned FROM all_runs WHERE schedule_id = 'day'
        AND scheduled_for <= ${new Date(Date.parse(first?.scheduled_for ?? '')).toISOString()}`,
    );
    const from = Date.parse(span?.first ?? '');
    expect(span?.planned).toBe((Date.parse(first?.scheduled_for ?? '') - from) / 1000 + 1);
    expect(span?.planned).toBeGreaterThan(86_400 - 120);
  });

  it('wakes the tick by itself, however long the tick would sleep', async () => {
    const sleepy = await createInstance(store, { tickIntervalMs: 3_600_000 });
    await instance.put('lone', { cron: '* * * * * *', url: receiver.url });
    await sleepy.start();
    await receiver.arrived(4);
    await sleepy.stop();
    const times = (await runs()).map((run) => Date.parse(run.scheduled_for) / 1000);
    expect(times).toEqual(times.map((_, index) => (times[0] ?? 0) + index));
  });

  it('with hundreds of others is planned in batches, and each is sent once at the first attempt', async () => {
    const ids = Array.from({ length: HERD }, (_, index) => `herd-${index}`);
    await instance.putMany(ids, { url: receiver.url });
    await store.rows(sql`UPDATE schedules SET next_occurrence_at = date_trunc('second', clock_timestamp()),
      next_fire_at = date_trunc('second', clock_timestamp())`);
    const herding = await createInstance(store, { concurrency: 100, concurrencyPerLane: 100 });
    await herding.start();
    const settled = await settledRuns(HERD);
    await herding.stop();
    expect(settled.every((run) => run.status === 'succeeded' && run.attempts === 1 && run.failures === 0)).toBe(true);
    expect(new Set(receiver.arrivals.map((arrival) => arrival.body.scheduleId)).size).toBe(HERD);
    expect(receiver.arrivals).toHaveLength(HERD);
  });

  it('is not fired while paused, and does not replay the pause', async () => {
    await instance.put('paused', { cron: '* * * * * *', url: receiver.url, enabled: false });
    await instance.put('probe', { cron: '* * * * * *', url: `${receiver.url}/probe` });
    await instance.start();
    await until(() => (receiver.arrivals.length >= 2 ? true : null));
    expect(receiver.arrivals.every((arrival) => arrival.path === '/probe')).toBe(true);
    const before = Date.now();
    await instance.put('paused', { cron: '* * * * * *', url: receiver.url });
    const [first] = await until(async () => {
      const found = await store.rows<RunRow>(
        sql`SELECT * FROM all_runs WHERE schedule_id = 'paused' ORDER BY scheduled_for`,
      );
      return found.length > 0 ? found : null;
    });
    expect(Date.parse(first?.scheduled_for ?? '')).toBeGreaterThanOrEqual(before - 1000);
  });
});

describe('a schedule that cannot be planned', () => {
  it('is set aside with its reason and its cursor, and delays no other', async () => {
    await instance.put('good', { cron: '* * * * * *', url: receiver.url });
    await instance.put('bad', { cron: '* * * * * *', url: receiver.url });
    await store.rows(sql`UPDATE schedules SET timing = '{"cron":"every full moon"}' WHERE id = 'bad'`);
    const [before] = await store.rows<{ at: string }>(
      sql`SELECT next_occurrence_at AS at FROM schedules WHERE id = 'bad'`,
    );
    await instance.start();
    await receiver.arrived(3);
    const [row] = await store.rows<Record<string, unknown>>(sql`SELECT * FROM schedules WHERE id = 'bad'`);
    expect(row).toMatchObject({
      error: expect.stringContaining('5 fields') as string,
      plan_failures: 1,
      locked_by: null,
    });
    expect(row?.['next_occurrence_at']).toBe(before?.at);
    expect(instance.events.filter((event) => event.type === 'scheduleSetAside')).toHaveLength(1);
    expect(receiver.arrivals.every((arrival) => arrival.body.scheduleId === 'good')).toBe(true);
  });

  it.each([
    ['no next occurrence', sql`NULL`],
    ['one that is infinitely far', sql`'-infinity'`],
    ['one before any calendar', sql`'4000-01-01 BC'`],
  ])('because it has %s is set aside too, and delays no other', async (_, at) => {
    await instance.put('good', { cron: '* * * * * *', url: receiver.url });
    await instance.put('bad', { cron: '* * * * * *', url: receiver.url });
    await store.rows(
      sql`UPDATE schedules SET next_occurrence_at = ${at}, next_fire_at = clock_timestamp() WHERE id = 'bad'`,
    );
    await instance.start();
    await receiver.arrived(2);
    expect(receiver.arrivals.every((arrival) => arrival.body.scheduleId === 'good')).toBe(true);
    const [row] = await store.rows<{ error: string }>(sql`SELECT error FROM schedules WHERE id = 'bad'`);
    expect(row?.error).toContain('no moment to plan from');
  });

  it('fires again, missed fires included, once it is mended', async () => {
    await instance.put('mended', { cron: '* * * * * *', url: receiver.url });
    await store.rows(
      sql`UPDATE schedules SET timing = '{"cron":"* * * * * *","timezone":"Mars/Phobos"}' WHERE id = 'mended'`,
    );
    await instance.start();
    await until(() => (instance.events.some((event) => event.type === 'scheduleSetAside') ? true : null));
    expect(receiver.arrivals).toEqual([]);
    await instance.put('mended', { cron: '* * * * * *', url: receiver.url, description: 'mended' });
    await receiver.arrived(2);
    const times = (await runs()).map((run) => Date.parse(run.scheduled_for));
    for (const [index, time] of times.slice(1).entries()) expect(time - (times[index] ?? 0)).toBe(1000);
  });
});

describe('a schedule whose run the database refuses', () => {
  const EVERY_SECOND = { cron: '* * * * * *', catchUp: 'all' as const };

  async function setAsideOf(id: string): Promise<Record<string, unknown>> {
    return until(async () => {
      const [row] = await store.rows<Record<string, unknown>>(sql`SELECT * FROM schedules WHERE id = ${id}`);
      return row?.['error'] === null ? null : (row ?? null);
    });
  }
  /** Of each schedule there are three more runs, and they have succeeded. */
  async function allFireOn(ids: readonly string[]): Promise<void> {
    const counts = async () => {
      const rows = await store.rows<{ id: string; count: number }>(
        sql`SELECT schedule_id AS id, count(*)::int AS count FROM all_runs WHERE status = 'succeeded' GROUP BY schedule_id`,
      );
      return new Map(rows.map(({ id, count }) => [id, count]));
    };
    const before = await counts();
    await until(async () => {
      const now = await counts();
      return ids.every((id) => (now.get(id) ?? 0) >= (before.get(id) ?? 0) + 3) ? true : null;
    });
  }

  it.each(['allow', 'skip', 'queue', 'replace'] as const)(
    'is set aside with its reason and its cursor, and delays no other of its batch (overlap: %s)',
    async (overlap) => {
      const others = Array.from({ length: 20 }, (_, n) => `good-${n}`);
      await instance.putMany(others, { ...EVERY_SECOND, overlap, url: receiver.url });
      await instance.put('refused', { ...EVERY_SECOND, overlap, url: receiver.url });
      await refuseRunsOf(store, 'refused');
      const [before] = await store.rows<{ at: string }>(
        sql`SELECT next_occurrence_at AS at FROM schedules WHERE id = 'refused'`,
      );
      await instance.start();
      const row = await setAsideOf('refused');
      expect(row).toMatchObject({ plan_failures: 1, locked_by: null, planned_through: null });
      expect(row['error']).toContain('index row');
      expect(row['next_occurrence_at']).toBe(before?.at);
      expect(Date.parse(String(row['next_fire_at']))).toBeGreaterThan(Date.parse(before?.at ?? ''));
      await allFireOn(others);
      expect(await runs()).not.toContainEqual(expect.objectContaining({ schedule_id: 'refused' }));
      const setAside = instance.events.filter((event) => event.type === 'scheduleSetAside');
      expect(setAside[0]).toMatchObject({ scheduleId: 'refused', failures: 1 });
      expect(instance.events.filter(({ type }) => type === 'loopFailed')).toEqual([]);
    },
  );

  it('delays no other either while one cannot be planned, and each is set aside with its own reason', async () => {
    const others = ['good', 'good-too'];
    await instance.putMany([...others, 'refused', 'bad'], { ...EVERY_SECOND, url: receiver.url });
    await instance.put('refused-alone', { ...EVERY_SECOND, overlap: 'skip', url: receiver.url });
    for (const id of ['refused', 'refused-alone']) await refuseRunsOf(store, id);
    await store.rows(sql`UPDATE schedules SET timing = '{"cron":"every full moon"}' WHERE id = 'bad'`);
    await instance.start();
    expect((await setAsideOf('bad'))['error']).toContain('5 fields');
    for (const id of ['refused', 'refused-alone']) expect((await setAsideOf(id))['error']).toContain('index row');
    await allFireOn(others);
    expect(new Set((await runs()).map((run) => run.schedule_id))).toEqual(new Set(others));
    expect(instance.events.filter(({ type }) => type === 'loopFailed')).toEqual([]);
  });

  it('fires again, missed fires included, once it is mended', async () => {
    await instance.put('refused', { ...EVERY_SECOND, url: receiver.url });
    await refuseRunsOf(store, 'refused');
    await instance.start();
    const { next_occurrence_at: first } = await setAsideOf('refused');
    await instance.put('refused', { ...EVERY_SECOND, url: receiver.url, description: 'mended' });
    await allFireOn(['refused']);
    const [row] = await store.rows(sql`SELECT error, plan_failures FROM schedules`);
    expect(row).toEqual({ error: null, plan_failures: 0 });
    const times = (await runs()).map((run) => Date.parse(run.scheduled_for));
    expect(times[0]).toBe(Date.parse(String(first)));
    for (const [index, time] of times.slice(1).entries()) expect(time - (times[index] ?? 0)).toBe(1000);
  });
});
