import { sql } from 'drizzle-orm';
import { beforeEach, describe, expect, it } from 'vitest';
import type { FirelockEvent } from '../../src/core/events.ts';
import { retryRun } from '../../src/operations/runs/act-on-runs.ts';
import { backfill } from '../../src/operations/runs/backfill.ts';
import { systemClock } from '../../src/runtime/clock.ts';
import { type EventBus, createEventBus } from '../../src/runtime/event-bus.ts';
import { createWaitingWatch } from '../../src/recovery/watches.ts';
import { admitUnderLock, limitsToAdmit } from '../../src/store/limits/limits.ts';
import { claimDueRuns } from '../../src/store/runs/claims/claim-due-runs.ts';
import { claimIfReady } from '../../src/store/runs/claims/claim-if-ready.ts';
import { claimReadyRuns } from '../../src/store/runs/claims/claims.ts';
import { applyAll } from '../support/effects.ts';
import { eachTest, instanceOfTest, receiverOfTest, storeOfTest } from '../support/of-test.ts';
import { endedRunsOf, lockRuns, runsOf } from '../support/pending-runs.ts';
import { createPullInstance } from '../support/pulling.ts';
import { until } from '../support/until.ts';

const HOUR = { expiresAfterSeconds: 3600 };

const store = eachTest(storeOfTest);
const instance = eachTest(() => instanceOfTest(store));
let bus: EventBus;
let events: FirelockEvent[];

beforeEach(() => {
  events = [];
  bus = createEventBus();
  bus.subscribe((event) => void events.push(event));
});

/** All that may expire waits for two hours more. */
const passTime = () =>
  store.rows(
    sql`UPDATE runs SET begin_by = begin_by - interval '2 hours' WHERE status <> 'running' AND claimed_by IS NULL`,
  );

/** Until each of two watches has looked, in a look that began after this call; then they stop. */
async function look(): Promise<void> {
  const { lease, pipeline } = instance;
  const deps = { database: store.database, clock: systemClock, events: bus, lease, wake: pipeline.wake };
  const watches = [createWaitingWatch(deps), createWaitingWatch(deps)];
  for (const watch of watches) await watch.start();
  await until(() => watches.every((watch) => watch.passes() > 0) || null);
  for (const watch of watches) await watch.stop();
}

const stateOf = async (id: string) =>
  (
    await store.rows<Record<string, unknown>>(
      sql`SELECT status, reason, error->>'kind' AS kind FROM all_runs WHERE id = ${id}`,
    )
  )[0];
const EXPIRED = { status: 'skipped', reason: 'expired', kind: null };

const request = () => ({
  instanceId: instance.id,
  limit: 10,
  freeByLane: new Map<string, number>(),
  freePerLane: 10,
  targetTypes: ['http'],
});

describe('no claim takes a run that has expired, also before any watch has seen it', () => {
  it('neither one that is ready, nor one that comes due, nor one that is named', async () => {
    const [old = { id: '' }, retried = { id: '' }] = await instance.accept(
      { url: 'http://127.0.0.1:1', ...HOUR },
      { url: 'http://127.0.0.1:2', ...HOUR },
    );
    await passTime();
    const [fresh] = await instance.accept({ url: 'http://127.0.0.1:1', ...HOUR });
    await store.rows(sql`UPDATE runs SET ready = false WHERE id = ${retried.id}`);
    const { database } = store;
    expect(await database.run((db) => claimIfReady(db, [old.id], request()))).toEqual([]);
    const due = await database.run((db) => claimDueRuns(db, { ...request(), atMost: 10 }));
    expect([due.claimed, due.count]).toEqual([[], 0]);
    const claimed = await database.run((db) => claimReadyRuns(db, request()));
    expect(claimed.map(({ id }) => id)).toEqual([fresh?.id]);
    await look();
    expect([await stateOf(old.id), await stateOf(retried.id)]).toEqual([EXPIRED, EXPIRED]);
    expect(events.filter(({ type }) => type === 'runsSkipped')).toEqual([
      { type: 'runsSkipped', reason: 'expired', count: 2 },
    ]);
  });

  it('a worker that comes back gets fresh work, and no stale work', async () => {
    const pulling = await createPullInstance(store.url);
    const [stale = ''] = await pulling.accept({ ...HOUR });
    await passTime();
    const [fresh, plain] = await pulling.accept({ ...HOUR }, {});
    const given = await pulling.claim({ max: 10 });
    expect(given.map(({ run }) => run.id).sort()).toEqual([fresh, plain].sort());
    await look();
    expect(await stateOf(stale)).toEqual(EXPIRED);
    await pulling.stop();
  });

  it('it gets no place of its limit, which stays free for a fresh one', async () => {
    await store.rows(sql`INSERT INTO limits (id, max_running, updated_at) VALUES ('one', 1, now())`);
    const url = 'http://127.0.0.1:1';
    const [old] = await instance.accept({ url, ...HOUR, limit: 'one' });
    await passTime();
    const found = await store.database.run((db) => limitsToAdmit(db, 10));
    expect(found.ids).toEqual([]);
    const [fresh] = await instance.accept({ url, ...HOUR, limit: 'one' });
    const admitted = await store.database.transaction((tx) => admitUnderLock(tx, ['one']));
    expect(admitted).toEqual({ toClaim: 1, toPull: 0 });
    const places = await store.rows(sql`SELECT id FROM runs WHERE admitted_at IS NOT NULL`);
    expect(places).toEqual([{ id: fresh?.id }]);
    await look();
    expect(await stateOf(old?.id ?? '')).toEqual(EXPIRED);
  });
});

it('a fire that had waited too long when it was planned is skipped at once, and one that comes later does not give way to it', async () => {
  const receiver = await receiverOfTest();
  await instance.put('often', {
    url: receiver.url,
    cron: null,
    everySeconds: 60,
    graceSeconds: 86_400,
    overlap: 'skip',
    expiresAfterSeconds: 90,
  });
  await store.rows(sql`UPDATE schedules SET next_occurrence_at = next_occurrence_at - interval '5 minutes',
    next_fire_at = next_fire_at - interval '5 minutes', created_at = created_at - interval '5 minutes'`);
  for (const service of [instance.pipeline.settler, instance.pipeline.dispatcher, instance.pipeline.tick])
    await service.start();
  const runs = await until(async () => {
    const all = await runsOf(store, 'often');
    return all.length > 0 && all.every(({ status }) => status !== 'pending') ? all : null;
  });
  const states = runs.map(({ status, reason }) => `${status} ${reason ?? ''}`.trim());
  // The two of the last ninety seconds begin in their order; the second one finds the first.
  expect(states.reverse()).toEqual([
    'skipped expired',
    'skipped expired',
    'skipped expired',
    'succeeded',
    expect.stringMatching(/^(?:succeeded|skipped overlap)$/),
  ]);
});

it('a run that waits to be tried again ends failed, which its followers and dependents hear of', async () => {
  const receiver = await receiverOfTest((_, response) => void response.writeHead(503).end('busy'));
  await instance.put('flaky', { url: receiver.url, ...HOUR });
  await instance.put('follower', {
    url: receiver.url,
    cron: null,
    after: { scheduleId: 'flaky', on: ['failed'] },
  });
  await instance.put('skips', {
    url: receiver.url,
    cron: null,
    after: { scheduleId: 'flaky', on: ['skipped'] },
  });
  const { settler, dispatcher } = instance.pipeline;
  for (const service of [settler, dispatcher]) await service.start();
  const { id } = await instance.fire('flaky');
  await until(async () => ((await runsOf(store, 'flaky'))[0]?.failures === 1 ? true : null));
  await dispatcher.stop();
  const never = await instance.fire('flaky');
  const [dependent] = await instance.accept({ url: receiver.url, dependsOn: [never.id] });
  await passTime();
  await look();
  await applyAll(store);
  expect(await stateOf(id)).toEqual({ status: 'failed', reason: null, kind: 'expired' });
  expect(await stateOf(never.id)).toEqual(EXPIRED);
  expect(events.filter(({ type }) => type === 'waitingExpired')).toEqual([
    { type: 'waitingExpired', failed: 1, unknown: 0, runIds: [id] },
  ]);
  const parents = await store.rows(
    sql`SELECT schedule_id AS id, parent_run_id AS parent FROM all_runs WHERE trigger = 'after' ORDER BY schedule_id`,
  );
  expect(parents).toEqual([
    { id: 'follower', parent: id },
    { id: 'skips', parent: never.id },
  ]);
  expect(await stateOf(dependent?.id ?? '')).toMatchObject({ status: 'failed', kind: 'dependency' });
});

it('what waits for an active run, or for a dependency, expires too; what runs goes on', async () => {
  await instance.put('queued', { url: 'http://127.0.0.1:1', overlap: 'queue', ...HOUR });
  const first = await instance.fire('queued');
  await store.database.run((db) => claimIfReady(db, [first.id], request()));
  const second = await instance.fire('queued');
  const [held = { id: '' }] = await instance.accept({
    url: 'http://127.0.0.1:1',
    dependsOn: [first.id],
    ...HOUR,
  });
  await passTime();
  await look();
  expect([await stateOf(second.id), await stateOf(held.id)]).toEqual([EXPIRED, EXPIRED]);
  expect(await stateOf(first.id)).toMatchObject({ status: 'pending' });
});

it('a follower, and a run that is opened again, have all of their time; a backfill counts from when it is asked for', async () => {
  await instance.put('first', { url: 'http://127.0.0.1:1', ...HOUR });
  await instance.put('second', {
    url: 'http://127.0.0.1:1',
    cron: null,
    after: { scheduleId: 'first', on: ['skipped'] },
    ...HOUR,
  });
  const { id } = await instance.fire('first');
  const [once = { id: '' }] = await instance.accept({ url: 'http://127.0.0.1:1', ...HOUR });
  await passTime();
  await look();
  await applyAll(store);
  for (const one of [id, once.id]) expect(await retryRun(instance.deps, one)).toMatchObject({ kind: 'done' });
  await instance.put('daily', { url: 'http://127.0.0.1:1', cron: '0 0 * * *', ...HOUR });
  const at = Date.now();
  await backfill(instance.deps, {
    scheduleId: 'daily',
    from: at - 86_400_000,
    to: at - 1_000,
    limit: 10,
    as: 'now',
  });
  const left = await store.rows<{ trigger: string; seconds: number }>(
    sql`SELECT trigger, round(extract(epoch FROM begin_by - clock_timestamp()) / 60)::int AS minutes FROM runs ORDER BY trigger`,
  );
  expect(left).toEqual(['after', 'api', 'backfill', 'manual'].map((trigger) => ({ trigger, minutes: 60 })));
});

it('a run whose row is refused, or is locked by others, holds up no other', async () => {
  for (const id of ['bad', 'locked', 'good']) await instance.put(id, { url: 'http://127.0.0.1:1', ...HOUR });
  const bad = await instance.fire('bad');
  const locked = await instance.fire('locked');
  const good = await instance.fire('good');
  await store.rows(
    sql`ALTER TABLE history ADD CONSTRAINT refused CHECK (schedule_id <> 'bad' OR reason IS NULL) NOT VALID`,
  );
  await passTime();
  const unlock = await lockRuns(store, 'locked');
  await look();
  expect(await stateOf(good.id)).toEqual(EXPIRED);
  expect(await stateOf(bad.id)).toMatchObject({ status: 'pending' });
  expect(await stateOf(locked.id)).toMatchObject({ status: 'pending' });
  expect(events).toContainEqual(expect.objectContaining({ type: 'expiryRefused', runId: bad.id }));
  await unlock();
  await look();
  expect(await endedRunsOf(store, 'locked')).toMatchObject([EXPIRED_ROW]);
});

const EXPIRED_ROW = { status: 'skipped', reason: 'expired' };
