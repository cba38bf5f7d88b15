// @module-tag long
import { sql } from 'drizzle-orm';
import { beforeEach, describe, expect, it, onTestFinished } from 'vitest';
import { countSchedulesAhead } from '../../../src/store/reports/gauges.ts';
import {
  beatIfListed,
  declareDeadIfSilent,
  livingInstances,
  registerUnlessObserving,
} from '../../../src/store/instances/instances.ts';
import { type Api, startApi } from '../../api/api.ts';
import { firelock } from '../../cli/cli.ts';
import { eachTest, instanceOfTest, receiverOfTest } from '../../support/of-test.ts';
import { type WronglyTimed, wronglyTimedStore } from '../../support/postgres/wrong-clock.ts';
import type { TestInstance } from '../../support/pipeline.ts';
import { until } from '../../support/until.ts';
import { createBackstop } from '../../../src/recovery/backstop.ts';
import { systemClock } from '../../../src/runtime/clock.ts';
import { createEventBus } from '../../../src/runtime/event-bus.ts';
import { createPullInstance } from '../../support/pulling.ts';

const HOUR = 3_600_000;
const iso = (at: number) => new Date(at).toISOString();

let store: WronglyTimed;
let instance: TestInstance;
const receiver = eachTest(receiverOfTest);
let api: Api;
beforeEach(async () => {
  store = await wronglyTimedStore();
  instance = await instanceOfTest(store);
  api = await startApi(store.url);
  onTestFinished(() => api.stop());
});

const get = async (path: string) => (await api.call('GET', `/api/v1${path}`)).body;
const run = (...args: string[]) => firelock(args, { databaseUrl: store.url, url: api.url, terminal: 200 });
const skip = async (fireAt: number) =>
  (await api.call('POST', '/api/v1/schedules/each/skip', { fireAt: iso(fireAt) })).status;
const fired = () => receiver.arrivals.map(({ body }) => Date.parse(body.scheduledFor));
const ahead = async () => (await store.database.run(countSchedulesAhead)).values;
const cursorChecks = async () => {
  const { checks } = (await get('/verify')) as unknown as {
    checks: { name: string; violations: number; examples: string[] }[];
  };
  return checks.filter(({ violations }) => violations > 0).map(({ name }) => name);
};

/** Fires every second, and the last ones of them two hours too early: then the clock is right. */
async function firedAhead(): Promise<number[]> {
  await instance.put('each', { cron: '* * * * * *', catchUp: 'latest', url: receiver.url });
  await instance.start();
  await expect.poll(() => fired().length).toBeGreaterThan(0);
  await store.setAhead(2 * HOUR);
  const now = await store.now();
  const early = () => fired().filter((at) => at > now - HOUR);
  await expect.poll(() => early().length).toBeGreaterThan(3);
  await store.setAhead(0);
  // Says what is left, if something ever is.
  await expect.poll(() => store.rows(sql`SELECT r.*, clock_timestamp() AS now FROM runs r`)).toEqual([]);
  return early().sort((a, b) => a - b);
}

describe('a schedule that fired while the clock of the database was ahead', () => {
  it('is silent, which every list, the checks, the gauge and "why" say', async () => {
    const early = await firedAhead();
    const last = early.at(-1) ?? 0;
    const now = await store.now();
    expect(await ahead()).toBe(1);
    expect(await cursorChecks()).toEqual(['cursorsAreNotAhead']);
    const { items } = (await get('/schedules/each/upcoming?count=1')) as unknown as {
      items: { fireAt: string }[];
    };
    expect(Date.parse(items[0]?.fireAt ?? '')).toBeGreaterThan(last);
    const period = `from=${iso(now + HOUR)}&to=${iso(now + HOUR + 3000)}`;
    expect(await get(`/schedules/each/occurrences?${period}`)).toMatchObject({
      plannedThrough: iso(last),
      items: [{ state: 'missed' }, { state: 'missed' }, { state: 'missed' }],
    });
    expect(await get(`/schedules/each/occurrences?from=${iso(last)}&to=${iso(last + 1500)}`)).toMatchObject({
      items: [{ state: 'fired' }, { state: 'upcoming' }],
    });
    const load = await get(`/load?from=${iso(now)}&to=${iso(last + 60_000)}&bucketSeconds=60`);
    const loaded = load as unknown as { items: { at: string; fires: number }[] };
    expect(loaded.items.reduce((sum, { fires }) => sum + fires, 0)).toBeLessThan(61);
    const why = await run('schedule', 'why', 'each');
    expect(why.out).toMatch(/no fire up to .* is planned any more: the clock of the database was ahead/);
  });

  it('fires again after `firelock resume --from-now`, with instances up; nothing that was fired is repeated', async () => {
    const early = await firedAhead();
    const [first = 0, last = 0] = [early[0], early.at(-1)];
    const before = fired().length;
    expect(await skip(last)).toBe(409);
    const resumed = await run('resume', '--from-now');
    expect(resumed.out).toMatch(/set back to .*: 1\nfires after that .* not made again: [1-9]\d*\n/);
    expect(resumed.out).toContain('instances are running, and fire what is due: nothing was skipped');
    expect(resumed.code).toBe(0);
    expect([await ahead(), await cursorChecks()]).toEqual([0, []]);
    await until(() => (fired().length > before + 2 ? true : null));
    expect(
      fired()
        .slice(before)
        .every((at) => at < first),
    ).toBe(true);

    const { items } = (await get(`/schedules/each/upcoming?from=${iso(first - 1500)}&count=2`)) as unknown as {
      items: { fireAt: string }[];
    };
    const next = items.map(({ fireAt }) => Date.parse(fireAt));
    expect(next[0]).toBe(first - 1000);
    expect(next[1]).not.toBe(first);
    expect(await skip(last)).toBe(409);

    // The wrong time comes again.
    await store.setAhead(2 * HOUR - 3000);
    await until(() => (fired().some((at) => at > last + 1000) ? true : null));
    const all = fired().filter((at) => at >= first);
    expect(all.length).toBe(new Set(all).size);
    await store.database.run((db) => beatIfListed(db, instance.id));
    expect(await cursorChecks()).toEqual([]);
    await until(async () => ((await store.rows(sql`SELECT FROM skips WHERE made`)).length === 0 ? true : null));
  });

  it('says that an instance runs, as ever, where nothing is to be set back', async () => {
    const answer = await run('resume', '--from-now');
    expect(answer.code).toBe(1);
    expect(answer.out + answer.err).toContain('an instance is still running');
  });
});

it('a schedule that was created or edited while the clock was ahead is planned from now on, in its beat', async () => {
  await store.setAhead(2 * HOUR);
  await instance.put('interval', { cron: null, everySeconds: 60, url: receiver.url });
  await instance.put('hourly', { cron: '0 * * * *', url: receiver.url });
  const rows = () =>
    store.rows<{ id: string; next: string; created: string }>(
      sql`SELECT id, next_fire_at AS next, created_at AS created FROM schedules ORDER BY id`,
    );
  const before = await rows();
  await store.setAhead(0);
  expect(await ahead()).toBe(2);
  expect((await run('resume', '--from-now')).code).toBe(0);
  const now = await store.now();
  expect(await ahead()).toBe(0);
  const after = await rows();
  expect(Date.parse(after[0]?.next ?? '')).toBeLessThanOrEqual(now + HOUR);
  expect(Date.parse(after[1]?.next ?? '')).toBeLessThanOrEqual(now + 60_000);
  expect((Date.parse(before[1]?.created ?? '') - Date.parse(after[1]?.created ?? '')) % 60_000).toBe(0);
});

it('an instance whose heartbeat is ahead of the clock counts as silent', async () => {
  const other = '00000000-0000-4000-8000-000000000001';
  const asked = { host: 'gone', version: '1', zoneData: '1', ttlSeconds: 10 };
  await store.setAhead(2 * HOUR);
  await store.database.run((db) => registerUnlessObserving(db, { ...asked, id: other }));
  await store.setAhead(0);
  const beat = await store.database.run((db) => beatIfListed(db, instance.id));
  expect(beat.overdue).toEqual([{ id: other, ttlSeconds: 10 }]);
  const living = await store.database.run(livingInstances);
  expect(living.map(({ id }) => id)).toEqual([instance.id]);
  const dead = await store.database.run((db) => declareDeadIfSilent(db, instance.id, [other]));
  expect(dead).toEqual([other]);
});

describe('a run that was written while the clock was ahead goes on when the clock is right', () => {
  /** One that failed and waits, one that a worker has, one with a moment of its own, and one that waits for a place. */
  async function leftAhead() {
    const pulling = await createPullInstance(store.url);
    onTestFinished(() => pulling.stop());
    await store.rows(sql`INSERT INTO limits (id, max_running, updated_at) VALUES ('l', 1, clock_timestamp())`);
    await store.setAhead(2 * HOUR);
    const runAt = (await store.now()) + HOUR;
    const { url } = receiver;
    const [failed, later, limited] = await instance.accept(
      { url, expiresAfterSeconds: 3600 },
      { url, runAt },
      { url, limit: 'l' },
    );
    const [leased = ''] = await pulling.accept({});
    await pulling.claim({ leaseSeconds: 60 });
    await store.rows(sql`UPDATE runs SET attempts = 1, failures = 1, ready = false, updated_at = clock_timestamp(),
      due_at = clock_timestamp() + interval '10 seconds' WHERE id = ${failed?.id ?? ''}`);
    await store.setAhead(0);
    return { failed: failed?.id, later: later?.id, limited: limited?.id, leased };
  }
  const seconds = async () => {
    const rows = await store.rows<{ id: string; due: number; lease: number | null; begin: number | null }>(
      sql`SELECT id, extract(epoch FROM due_at - clock_timestamp())::float8 AS due,
        extract(epoch FROM expires_at - clock_timestamp())::float8 AS lease,
        extract(epoch FROM begin_by - clock_timestamp())::float8 AS begin FROM runs`,
    );
    return new Map(rows.map(({ id, ...row }) => [id, row]));
  };

  async function expectBroughtBack(left: Awaited<ReturnType<typeof leftAhead>>) {
    const now = await seconds();
    const failed = now.get(left.failed ?? '');
    expect(failed?.due).toBeLessThan(20);
    expect(failed?.begin).toBeLessThan(3_630);
    expect(now.get(left.limited ?? '')?.due).toBeLessThanOrEqual(0);
    expect(now.get(left.leased)?.lease).toBeLessThanOrEqual(60);
    // The caller named that moment.
    expect(now.get(left.later ?? '')?.due).toBeGreaterThan(2.5 * 3_600);
  }

  it('by itself, within minutes', async () => {
    const left = await leftAhead();
    expect((await seconds()).get(left.failed ?? '')?.due).toBeGreaterThan(7_000);
    const { pipeline } = instance;
    const events = createEventBus();
    const told: unknown[] = [];
    events.subscribe((event) => void told.push(event));
    const backstop = createBackstop({
      database: store.database,
      clock: systemClock,
      events,
      intervalSeconds: 5,
      wake: pipeline.wake,
    });
    await backstop.start();
    await until(() => backstop.passes() > 0 || null);
    await backstop.stop();
    await expectBroughtBack(left);
    expect(told).toContainEqual({ type: 'runsBroughtBack', count: 4 });
  });

  it('and at once by `firelock resume --from-now`, with instances up', async () => {
    const left = await leftAhead();
    const resumed = await run('resume', '--from-now');
    expect([resumed.code, resumed.out]).toEqual([0, expect.stringContaining('and go on as of now: 4\n')]);
    await expectBroughtBack(left);
  });
});
