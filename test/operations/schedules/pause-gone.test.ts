import { sql } from 'drizzle-orm';
import { beforeEach, describe, expect, it, onTestFinished } from 'vitest';
import type { FirelockEvent } from '../../../src/core/events.ts';
import type { Definition, Schedule } from '../../../src/core/schedules/schedule.ts';
import { createHandoffDefinitions } from '../../../src/flow/handoff/handoff-definitions.ts';
import { type Pauser, createPauser } from '../../../src/operations/schedules/pauser.ts';
import { systemClock } from '../../../src/runtime/clock.ts';
import { createEventBus } from '../../../src/runtime/event-bus.ts';
import { type Database, openDatabase } from '../../../src/postgres/database.ts';
import { rowsOf } from '../../../src/postgres/sql/rows.ts';
import { type Effect, lockEffectsAgain } from '../../../src/store/effects/effect-rows.ts';
import { findSchedule } from '../../../src/store/schedules/search/find-schedules.ts';
import { createHttpTarget } from '../../../src/targets/http.ts';
import { createTargetRegistry } from '../../../src/targets/target.ts';
import { instanceOfTest, receiverOfTest, storeOfTest } from '../../support/of-test.ts';
import { type Store, type TestInstance, createInstance } from '../../support/pipeline.ts';
import { notingAll } from '../../support/postgres/noting.ts';
import { startPostgresProxy } from '../../support/postgres/postgres-proxy.ts';
import type { Receiver } from '../../support/receiver.ts';
import { SECRETS } from '../../support/secrets.ts';
import { until } from '../../support/until.ts';
import { targetAt } from '../../support/targets.ts';

let store: Store;
let instance: TestInstance;
let receiver: Receiver;
let events: FirelockEvent[];

beforeEach(async () => {
  store = await storeOfTest();
  instance = await instanceOfTest(store);
  receiver = await receiverOfTest((_, response) => {
    response.statusCode = 410;
    response.end('gone for good');
  });
  events = [];
});

const RUN = '0192f0c4-1c00-7abc-8def-0123456789ab';
const put = (id: string, more: Partial<Definition> = {}, path = id) =>
  instance.put(id, { url: `${receiver.url}/${path}`, ...more });
const find = (id: string) => store.database.run((db) => findSchedule(db, id));
/** The effect of a run that its target answered 410, written as the end of that run writes it. */
async function goneOf({ id, uid, version }: Schedule, runId = RUN): Promise<Effect> {
  // In one transaction: a loop that runs beside would hold the row for a moment.
  const [effect] = await store.database.transaction(async (tx) => {
    const [row] = await rowsOf<{ id: number }>(tx)(sql`INSERT INTO effects
      (kind, run_id, schedule_uid, schedule_version, schedule_id, trigger, status, finished_at, attempt)
      VALUES ('gone', ${runId}, ${uid}, ${version}, ${id}, 'schedule', 'failed', clock_timestamp(), 1)
      RETURNING id::int`);
    return lockEffectsAgain(tx, [row?.id ?? 0]);
  });
  if (!effect) throw new Error('it was not written');
  return effect;
}
const effects = () =>
  store.rows<{ schedule_id: string; failures: number; error: string | null }>(
    sql`SELECT schedule_id, failures, error FROM effects WHERE kind IN ('gone', 'failing')`,
  );
const eventsOf = (type: FirelockEvent['type']) => events.filter((event) => event.type === type);
const seenTo = () => until(async () => (await effects()).every(({ failures }) => failures > 0) || null);

/** A pauser of its own, beside the instance. */
function startPauser(database: Database = store.database): Pauser {
  const bus = createEventBus();
  bus.subscribe((event) => void events.push(event));
  const targets = createTargetRegistry([
    createHttpTarget({ clock: systemClock, version: 'test', connectionsPerOrigin: 1 }),
  ]);
  const pauser = createPauser({
    database,
    clock: systemClock,
    events: bus,
    targets,
    secrets: SECRETS,
    definitions: createHandoffDefinitions(database, SECRETS),
    wake: instance.pipeline.wake,
    retentionDays: 30,
  });
  void pauser.start();
  onTestFinished(() => pauser.stop());
  return pauser;
}

describe('a schedule whose target answered 410 Gone', () => {
  it('is paused, with a reason that names the run, and fires no more', async () => {
    const schedule = await put('gone', { everySeconds: 3600, cron: null, labels: { team: 'a' } });
    await instance.start();
    const { id: runId } = await instance.fire('gone');
    const paused = await until(async () => {
      const found = await find('gone');
      return found?.status === 'paused' ? found : null;
    });
    expect(paused).toMatchObject({ uid: schedule.uid, version: 2, nextFireAt: null });
    expect(paused.definition).toEqual({
      ...schedule.definition,
      enabled: false,
      pauseReason: `the target answered 410 Gone to run ${runId}`,
    });
    const versions = await store.rows(sql`SELECT version, change, by FROM schedule_versions ORDER BY version`);
    expect(versions).toEqual([
      { version: 1, change: 'created', by: null },
      { version: 2, change: 'updated', by: 'firelock' },
    ]);
    const runs = await store.rows(sql`SELECT id, status FROM all_runs`);
    expect(runs).toEqual([{ id: runId, status: 'failed' }]);
    expect(receiver.arrivals).toHaveLength(1);
    await until(async () => ((await effects()).length === 0 ? true : null));
  });

  it('to which a one-off run was sent, pauses nothing', async () => {
    await put('gone');
    await instance.start();
    await instance.accept({ url: `${receiver.url}/gone` });
    await until(() => instance.events.find((event) => event.type === 'runSettled') ?? null);
    const { id: runId } = await instance.fire('gone');
    const paused = await until(() => instance.events.find((event) => event.type === 'schedulePaused') ?? null);
    expect(paused).toHaveProperty('reason', `the target answered 410 Gone to run ${runId}`);
    expect(instance.events.filter((event) => event.type === 'loopFailed')).toEqual([]);
  });

  it('is not paused if a rule of its own says what a 410 means', async () => {
    const outcome = { succeed: [], retry: [], fail: ['4xx'], require: null, otherwise: null };
    await put('ruled', { target: targetAt(`${receiver.url}/ruled`, { outcome }) });
    await instance.start();
    const { id } = await instance.fire('ruled');
    const ended = await until(async () => {
      const [run] = await store.rows(sql`SELECT status, error->>'message' AS error FROM history WHERE id = ${id}`);
      return run ?? null;
    });
    const error = 'the target answered 410, which is in outcome.fail';
    expect(ended).toEqual({ status: 'failed', error });
    expect(await effects()).toEqual([]);
    expect(await find('ruled')).toMatchObject({ status: 'active' });
  });

  it('is paused once, for the first of its runs, and reported', async () => {
    const schedule = await put('gone');
    const pauser = startPauser();
    const others = ['0192f0c4-1c00-7abc-8def-0123456789ac', '0192f0c4-1c00-7abc-8def-0123456789ad'];
    const gone = await Promise.all([RUN, ...others].map((runId) => goneOf(schedule, runId)));
    pauser.add(gone);
    await seenTo();
    pauser.add([await goneOf(schedule, others[0])]);
    await seenTo();
    const reason = `the target answered 410 Gone to run ${RUN}`;
    expect(await find('gone')).toMatchObject({ version: 2, definition: { pauseReason: reason } });
    expect(eventsOf('schedulePaused')).toEqual([{ type: 'schedulePaused', scheduleId: 'gone', reason }]);
    expect(await effects()).toEqual([]);
  });

  it('is paused by a run of an older version too, as long as the target is the same', async () => {
    const older = await put('gone');
    await put('gone', { description: 'edited since', payload: '1' });
    startPauser().add([await goneOf(older)]);
    await seenTo();
    expect(await find('gone')).toMatchObject({
      version: 3,
      status: 'paused',
      definition: { description: 'edited since', payload: '1', enabled: false },
    });
  });

  it('gets its due fires recorded first', async () => {
    const schedule = await put('gone', { everySeconds: 3600, cron: null });
    await store.rows(sql`UPDATE schedules SET next_fire_at = next_fire_at - interval '1 hour',
      next_occurrence_at = next_occurrence_at - interval '1 hour', created_at = created_at - interval '1 hour'`);
    startPauser().add([await goneOf(schedule)]);
    await seenTo();
    const runs = await store.rows(sql`SELECT schedule_version, status FROM all_runs`);
    expect(runs).toEqual([{ schedule_version: 1, status: 'pending' }]);
  });
});

describe('a schedule is left alone if by then it', () => {
  it.each<[what: string, meanwhile: () => Promise<unknown>]>([
    ['has another target', () => put('gone', {}, 'moved')],
    ['is pulled from', () => put('gone', { target: { type: 'pull', queue: 'q' } })],
    ['is paused, for a reason of its own', () => put('gone', { enabled: false, pauseReason: 'holidays' })],
    ['is another one under the same id', () => instance.remove('gone').then(() => put('gone'))],
    ['is deleted', () => instance.remove('gone')],
    [
      'has lost the version that its run was of',
      async () => {
        await put('gone', { description: 'newer' });
        await store.rows(sql`DELETE FROM schedule_versions WHERE version = 1`);
      },
    ],
  ])('%s', async (_what, meanwhile) => {
    const schedule = await put('gone');
    await meanwhile();
    const before = await find('gone');
    startPauser().add([await goneOf(schedule)]);
    await seenTo();
    expect(await find('gone')).toEqual(before);
    expect(eventsOf('schedulePaused')).toEqual([]);
    expect(eventsOf('loopFailed')).toEqual([]);
    expect(await effects()).toEqual([]);
  });
});

it('many schedules are paused together, and one whose row is locked alone waits', async () => {
  const ids = Array.from({ length: 30 }, (_, index) => `gone-${index}`);
  const schedules = [];
  for (const id of ids) schedules.push(await put(id));
  const [locked, ...others] = schedules;
  const statements: string[] = [];
  const said = await Promise.all(schedules.map((schedule) => goneOf(schedule)));
  await store.database.transaction(async (tx) => {
    await tx.execute(sql`SELECT FROM schedules WHERE uid = ${locked?.uid ?? ''} FOR UPDATE`);
    startPauser(notingAll(store.database, statements)).add(said);
    await until(() => (eventsOf('schedulePaused').length === others.length ? true : null));
    expect(await find(ids[0] ?? '')).toMatchObject({ status: 'active' });
  });
  await seenTo();
  expect(await find(ids[0] ?? '')).toMatchObject({ status: 'paused' });
  expect(statements.filter((name) => name === 'writeSchedules').length).toBeLessThanOrEqual(10);
  expect(eventsOf('loopFailed')).toEqual([]);
});

describe('an obstacle', () => {
  it('in the database only delays the pause', async () => {
    const schedule = await put('gone');
    const proxy = await startPostgresProxy(store.url);
    const database = openDatabase(proxy.url, 1);
    onTestFinished(async () => {
      await database.close();
      await proxy.close();
    });
    await database.run((db) => db.execute(sql`SELECT 1`));
    await proxy.interrupt('refuse');
    startPauser(database).add([await goneOf(schedule)]);
    await until(() => (eventsOf('loopFailed').length > 1 ? true : null));
    expect(await find('gone')).toMatchObject({ status: 'active' });
    await proxy.restore();
    await seenTo();
    expect(await find('gone')).toMatchObject({ status: 'paused', version: 2 });
  });

  it('of one schedule alone does not hold up the others', async () => {
    const broken = await put('broken');
    const fine = await put('gone');
    // Another program wrote it: its next version is there already.
    await store.rows(sql`INSERT INTO schedule_versions SELECT (jsonb_populate_record(v, '{"version": 2}')).*
      FROM schedule_versions v WHERE schedule_id = 'broken'`);
    const pauser = startPauser();
    pauser.add([await goneOf(broken), await goneOf(fine)]);
    await seenTo();
    expect(eventsOf('loopFailed')).toHaveLength(1);
    expect(await find('gone')).toMatchObject({ status: 'paused' });
    const [left, ...others] = await effects();
    expect(others).toEqual([]);
    expect(left).toMatchObject({
      schedule_id: 'broken',
      failures: 1,
      error: expect.stringContaining('23505') as string,
    });
  });

  it('in the process itself, which dies first, leaves the pause to another', async () => {
    const schedule = await put('gone');
    const { settler, effects: loop, pauser } = instance.pipeline;
    // Its pauser has not begun when it dies.
    await settler.start();
    await loop.start();
    await goneOf(schedule);
    await until(() => loop.passes() > 2 || null);
    await loop.stop();
    expect(await effects()).toHaveLength(1);
    const other = await createInstance(store);
    onTestFinished(() => other.stop());
    await other.start();
    await until(async () => ((await effects()).length === 0 ? true : null));
    expect(await find('gone')).toMatchObject({ status: 'paused', version: 2 });
    await pauser.stop();
  });
});
