import { sql } from 'drizzle-orm';
import { afterAll, afterEach, beforeAll, expect, it } from 'vitest';
import { startMaintenance, stopMaintenance } from '../../src/operations/installation-changes.ts';
import { lockDueSchedules } from '../../src/store/schedules/fire-locks.ts';
import { readInstallation } from '../../src/store/instances/installation-row.ts';
import { type Store, type TestInstance, createInstance, createStore } from '../support/pipeline.ts';
import { createPullInstance } from '../support/pulling.ts';
import { type Receiver, startReceiver } from '../support/receiver.ts';
import { until } from '../support/until.ts';

let store: Store;
let receiver: Receiver;
const instances: TestInstance[] = [];

beforeAll(async () => {
  store = await createStore();
});
afterAll(() => store.drop());

afterEach(async () => {
  for (const instance of instances.splice(0)) await instance.stop();
  await receiver.close();
  await stopMaintenance(store.database);
  await store.rows(sql`TRUNCATE schedules, runs, history, effects, held_runs`);
});

async function newInstance(options?: Parameters<typeof createInstance>[1]): Promise<TestInstance> {
  const instance = await createInstance(store, { tickIntervalMs: 20, ...options });
  instances.push(instance);
  return instance;
}

const begin = (mode: 'plansNothing' | 'holds', untilAt: number | null = null) =>
  startMaintenance(store.database, { mode, until: untilAt, reason: null });
/** What its heartbeat would tell it now. */
const tell = async (...told: TestInstance[]) => {
  const found = await store.database.run(readInstallation);
  for (const { installation } of told) installation.learn(found);
};
/** Every hour, the last time half an hour ago: however long a test takes, nothing comes due in it. */
const HOURLY = { cron: null, everySeconds: 3600, startAt: Date.now() - 3.5 * 3_600_000 };
/** As if the schedules had last been looked at before that moment. */
const rewind = (at = HOURLY.startAt) =>
  store.rows(sql`UPDATE schedules SET next_occurrence_at = ${new Date(at).toISOString()}::timestamptz,
    next_fire_at = ${new Date(at).toISOString()}::timestamptz WHERE id <> 'by-hand'`);
const passes = (instance: TestInstance, loop: 'tick' | 'dispatch', count: number) => {
  const seen = () => instance.events.filter((event) => event.type === 'loopPassed' && event.loop === loop).length;
  const wanted = seen() + count;
  return until(() => seen() >= wanted || null);
};
interface Row {
  schedule_id: string;
  status: string;
  trigger: string;
  coalesced: number;
  attempts: number;
}
const runs = () =>
  store.rows<Row>(sql`SELECT schedule_id, status, trigger, coalesced, attempts FROM all_runs
    ORDER BY schedule_id, scheduled_for`);

it('nothing is planned while it is on; afterwards the catchUp of each schedule decides, and the tick needs no hint', async () => {
  receiver = await startReceiver();
  const [one, other] = [await newInstance(), await newInstance()];
  for (const catchUp of ['skip', 'latest', 'all'] as const)
    await one.put(catchUp, { ...HOURLY, catchUp, url: receiver.url });
  await one.put('by-hand', { url: receiver.url });
  await begin('plansNothing');
  await rewind();
  await one.start();
  await other.start();
  for (const instance of [one, other]) await passes(instance, 'tick', 3);
  expect(await runs()).toEqual([]);
  // What a user asks for goes on.
  await one.fire('by-hand');
  await receiver.arrived(1);

  // They get no notification.
  await stopMaintenance(store.database);
  await receiver.arrived(6);
  const found = await until(async () => {
    const all = await runs();
    return all.every(({ status }) => status !== 'pending') ? all : null;
  });
  expect(found.filter((run) => run.schedule_id === 'skip')).toMatchObject([
    { status: 'skipped', trigger: 'catchUp', coalesced: 3 },
  ]);
  expect(found.filter((run) => run.schedule_id === 'latest')).toMatchObject([
    { status: 'succeeded', trigger: 'catchUp', coalesced: 3 },
  ]);
  expect(found.filter((run) => run.schedule_id === 'all').map((run) => run.trigger)).toEqual(
    Array.from({ length: 4 }, () => 'catchUp'),
  );
});

it('a fire to skip that comes due meanwhile is skipped afterwards, also if the schedule is edited in between', async () => {
  receiver = await startReceiver();
  const instance = await newInstance();
  const given = { ...HOURLY, catchUp: 'all', url: receiver.url } as const;
  const { uid } = await instance.put('asked', given);
  await begin('plansNothing');
  await rewind();
  const fireAt = new Date(HOURLY.startAt + 3_600_000).toISOString();
  await store.rows(sql`WITH flagged AS (UPDATE schedules SET has_skips = true WHERE uid = ${uid})
    INSERT INTO skips (schedule_uid, fire_at, asked_at) VALUES (${uid}, ${fireAt}::timestamptz, now())`);
  await instance.put('asked', { ...given, description: 'edited' });
  expect(await runs()).toEqual([]);
  await stopMaintenance(store.database);
  await instance.start();
  await receiver.arrived(3);
  expect((await runs()).map(({ status }) => status === 'skipped')).toEqual([false, true, false, false]);
  expect(receiver.arrivals.map(({ body }) => body.scheduledFor)).not.toContain(fireAt);
  expect(await store.rows(sql`SELECT FROM skips`)).toEqual([]);
});

it('a plan under way when it begins is not recorded, and its lock is free', async () => {
  receiver = await startReceiver();
  const instance = await newInstance();
  // A week of missed seconds takes more than one round.
  await instance.put('walked', { cron: '* * * * * *', catchUp: 'skip', url: receiver.url });
  await rewind(Date.now() - 7 * 86_400_000);
  const { id: instanceId } = instance;
  const lock = () =>
    store.database.run((db) => lockDueSchedules(db, { instanceId, limit: 10, lockTtlSeconds: 120, walking: [] }));
  expect(await lock()).toMatchObject({ locked: [{ id: 'walked' }], inMaintenance: false });
  await begin('plansNothing');
  expect(await lock()).toMatchObject({ locked: [], inMaintenance: true });
  expect(await store.rows(sql`SELECT locked_by FROM schedules`)).toEqual([{ locked_by: null }]);

  await stopMaintenance(store.database);
  await instance.start();
  // A lock that was taken at the very moment: its walk is given up, and begins anew when it is over.
  const lockedAt = async () => {
    const [row] = await store.rows<{ at: string | null }>(sql`SELECT locked_at AS at FROM schedules`);
    return row?.at ?? null;
  };
  const first = await until(lockedAt);
  await store.rows(sql`UPDATE installation SET mode = 'plansNothing', mode_since = now()`);
  await passes(instance, 'tick', 2);
  expect(await lockedAt()).toBe(first);
  await stopMaintenance(store.database);
  const second = await until(async () => ((await lockedAt()) === first ? null : [await lockedAt()]));
  expect(second).toEqual([expect.any(String)]);
  expect(await runs()).toEqual([]);
});

it('while it holds runs, none is claimed, and unsent claims go back; attempts under way are settled', async () => {
  const answering: (() => void)[] = [];
  receiver = await startReceiver((_, response) => void answering.push(() => response.end('{}')));
  const one = await newInstance({ concurrency: 2, concurrencyPerLane: 2 });
  await one.start();
  for (let i = 0; i < 5; i += 1) await one.accept({ url: receiver.url });
  await receiver.arrived(1);
  const { dispatcher } = one.pipeline;
  await until(() => dispatcher.claimed() > dispatcher.inFlight() || null);
  await begin('holds');
  await tell(one);
  await until(() => dispatcher.claimed() === dispatcher.inFlight() || null);
  const underWay = dispatcher.inFlight();
  await receiver.arrived(underWay);
  for (const answer of answering.splice(0)) answer();
  await until(() => dispatcher.claimed() === 0 || null);

  // One that has not been told: the database tells it nothing to claim.
  const untold = await newInstance();
  await untold.start();
  await untold.accept({ url: receiver.url });
  await passes(untold, 'dispatch', 2);
  const open = await store.rows<{ claimed_by: string | null; recoveries: number }>(
    sql`SELECT claimed_by, recoveries FROM runs WHERE status = 'pending'`,
  );
  expect(open).toEqual(Array.from({ length: 6 - underWay }, () => ({ claimed_by: null, recoveries: 0 })));
  expect(receiver.arrivals).toHaveLength(underWay);

  await stopMaintenance(store.database);
  await tell(one);
  await until(() => {
    for (const answer of answering.splice(0)) answer();
    return receiver.arrivals.length === 6 ? true : null;
  });
  expect(new Set(receiver.arrivals.map(({ body }) => body.runId)).size).toBe(6);
});

it('while it holds runs, workers get none, not even those that wait; when it is over, they do', async () => {
  receiver = await startReceiver();
  const pulling = await createPullInstance(store.url);
  await begin('holds');
  const [id] = await pulling.accept({});
  expect(await pulling.claim()).toEqual([]);
  const waiting = pulling.claim({ waitSeconds: 60 });
  const looks = () => pulling.events.filter((event) => event.type === 'loopPassed' && event.loop === 'pull').length;
  const before = looks();
  await until(() => looks() > before || null);
  expect(await store.rows(sql`SELECT FROM runs WHERE status = 'running'`)).toEqual([]);
  await stopMaintenance(store.database);
  expect((await waiting).map(({ run }) => run.id)).toEqual([id]);
  await pulling.stop();
});

it('it ends by itself by the database’s clock', async () => {
  receiver = await startReceiver();
  const instance = await newInstance();
  expect(await begin('holds', Date.now() - 1000)).toBeNull();
  await begin('holds', Date.now() + 3_600_000);
  await tell(instance);
  expect(instance.installation.holdsRuns()).toBe(true);
  await instance.put('due', { ...HOURLY, url: receiver.url });
  await rewind();
  await instance.start();
  await passes(instance, 'tick', 2);
  // Not now: that is stored in whole milliseconds, and may be rounded up.
  await store.rows(sql`UPDATE installation SET until = clock_timestamp() - interval '1 millisecond'`);
  await tell(instance);
  await receiver.arrived(1);
  expect(instance.events.filter(({ type }) => type === 'installationChanged')).toMatchObject([
    { state: { mode: 'holds' } },
    { state: { mode: 'works' } },
  ]);
});
