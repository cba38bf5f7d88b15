import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { createAlertWatch } from '../../../src/recovery/alert-watch.ts';
import { systemClock } from '../../../src/runtime/clock.ts';
import { createEventBus } from '../../../src/runtime/event-bus.ts';
import type { Loop } from '../../../src/runtime/loop/loop.ts';
import { sampleWork } from '../../../src/store/reports/gauges.ts';
import type { FirelockEvent } from '../../../src/core/events.ts';
import { type Store, type TestInstance, createInstance, createStore } from '../../support/pipeline.ts';
import { type Receiver, startReceiver } from '../../support/receiver.ts';
import { until } from '../../support/until.ts';
import { type Api, SCHEDULE, faultPaths, startApi } from '../api.ts';

const HOUR = 3_600_000;
/** What a late schedule as a parent lacks. */
const NO_RUN = { runId: null, reason: null, error: null, result: null };

let store: Store;
let api: Api;
let receiver: Receiver;
let instance: TestInstance;
/** What the target answers from now on. */
let status = 200;
let watches: Loop[];
const events: FirelockEvent[] = [];
beforeAll(async () => {
  store = await createStore();
  receiver = await startReceiver((_, response) => {
    response.statusCode = status;
    response.end('{}');
  });
  api = await startApi(store.url);
  instance = await createInstance(store);
  await instance.start();
  const bus = createEventBus();
  bus.subscribe((event) => void events.push(event));
  const { lease, pipeline } = instance;
  const deps = { database: store.database, clock: systemClock, events: bus, lease, wake: pipeline.wake };
  await pipeline.alertWatch.stop();
  watches = [0, 1].map(() => createAlertWatch({ ...deps, retentionDays: 30, publicUrl: null }));
  for (const watch of watches) await watch.start();
});
afterAll(async () => {
  for (const watch of watches) await watch.stop();
  await instance.stop();
  await api.stop();
  await receiver.close();
  await store.drop();
});

interface Item {
  [field: string]: unknown;
  id: string;
}
const iso = (at: number) => new Date(at).toISOString();
const pathOf = (id: string) => `/api/v1/schedules/${id}`;
const get = async (id: string) => (await api.call('GET', pathOf(id))).body as Record<string, unknown>;
const itemsAt = async (path: string) => (await api.call('GET', path)).body['items'] as unknown as Item[];
const patch = (id: string, more: object) => api.call('PATCH', pathOf(id), more);
async function put(id: string, more: object): Promise<void> {
  const target = { type: 'http', url: `${receiver.url}/${id}` };
  const answer = await api.call('PUT', pathOf(id), { ...SCHEDULE, target, ...more });
  expect(answer.status).toBe(201);
}
/** Fires now, and waits until that has ended. */
async function fire(id: string, answered: number): Promise<Item> {
  status = answered;
  const fired = await api.call('POST', `${pathOf(id)}/fire`);
  return until(async () => {
    const run = (await api.call('GET', `/api/v1/runs/${fired.body['id'] as unknown as string}`))
      .body as unknown as Item;
    return run['finishedAt'] === null ? null : run;
  });
}
const effectsDone = () => until(async () => ((await api.sql`SELECT FROM effects`).length === 0 ? true : null));

test('both fields are answered, defaulted, patched and versioned, and each fault is named', async () => {
  await put('fields', { pauseAfterFailures: 3, successWithinSeconds: 60 });
  const given = { pauseAfterFailures: 3, successWithinSeconds: 60, late: false };
  expect(await get('fields')).toMatchObject(given);
  const sentBack = await api.call('PUT', pathOf('fields'), { ...(await get('fields')), late: true });
  expect(sentBack.body).toMatchObject({ version: 1, ...given });
  const reset = await patch('fields', { pauseAfterFailures: null, successWithinSeconds: null });
  expect(reset.body).toMatchObject({ pauseAfterFailures: null, successWithinSeconds: null });
  expect(await api.sql`SELECT * FROM outcome_watches`).toEqual([]);
  const [newest, oldest] = await itemsAt(`${pathOf('fields')}/versions`);
  expect(newest?.['schedule']).toMatchObject({ pauseAfterFailures: null });
  expect(oldest?.['schedule']).toMatchObject({ pauseAfterFailures: 3, successWithinSeconds: 60 });
  for (const [pauseAfterFailures, successWithinSeconds] of [
    [0, 59],
    [1001, 366 * 86_400 + 1],
    [1.5, 'an hour'],
  ]) {
    const refused = await patch('fields', {
      pauseAfterFailures,
      successWithinSeconds,
      after: { on: ['never'] },
    });
    expect([refused.status, faultPaths(refused)]).toEqual([
      400,
      ['/after/on/0', '/pauseAfterFailures', '/successWithinSeconds'],
    ]);
  }
  expect((await api.call('GET', '/api/v1/schedules?late=perhaps')).status).toBe(400);
});

describe('pauseAfterFailures', () => {
  test('pauses after so many failures in a row; a success resets the count, and so does enabling the schedule', async () => {
    await put('failing', { pauseAfterFailures: 3 });
    for (const answered of [400, 400, 200, 400, 400]) await fire('failing', answered);
    await effectsDone();
    expect(await get('failing')).toMatchObject({ enabled: true, version: 1 });
    // Ends of other kinds that count, and of kinds that do not.
    const open = (await api.call('POST', `${pathOf('failing')}/fire`)).body['id'] as unknown as string;
    await api.call('POST', `/api/v1/runs/${open}/cancel`);
    await api.sql`UPDATE history SET status = 'unknown' WHERE finished_at = (SELECT max(finished_at) FROM history
      WHERE status = 'failed' AND schedule_id = 'failing')`;
    const last = await fire('failing', 400);
    const paused = await until(async () => {
      const found = await get('failing');
      return found['enabled'] === true ? null : found;
    });
    expect(paused).toMatchObject({
      status: 'paused',
      version: 2,
      pauseReason: `3 runs in a row did not succeed; the last of them is ${last.id}`,
    });
    const [version] = await itemsAt(`${pathOf('failing')}/versions?limit=1`);
    expect(version).toMatchObject({ version: 2, by: 'firelock', change: 'updated' });
    // Failures of a paused schedule pause nothing, and do not count once it is enabled.
    await fire('failing', 400);
    await patch('failing', { enabled: true });
    await fire('failing', 400);
    await fire('failing', 400);
    await effectsDone();
    expect(await get('failing')).toMatchObject({ enabled: true, version: 3, pauseReason: null });
    await fire('failing', 400);
    await until(async () => ((await get('failing'))['enabled'] === false ? true : null));
    expect(await get('failing')).toMatchObject({ version: 4 });
  });

  test('counts runs that were open when it was set, and gives runs of other schedules no effect', async () => {
    await put('given', {});
    await fire('given', 400);
    expect(await api.sql`SELECT FROM history WHERE schedule_id = 'given' AND outcome_watched`).toEqual([]);
    status = 500;
    const fired = await api.call('POST', `${pathOf('given')}/fire`);
    await until(async () =>
      (await api.sql`SELECT FROM runs WHERE schedule_id = 'given' AND failures > 0 AND claimed_by IS NULL`).length === 1
        ? true
        : null,
    );
    await patch('given', { pauseAfterFailures: 1, retry: { maxAttempts: 1 } });
    await api.sql`UPDATE runs SET due_at = clock_timestamp(), ready = true, schedule_version = 2 WHERE schedule_id = 'given'`;
    const paused = await until(async () => {
      const found = await get('given');
      return found['enabled'] === true ? null : found;
    });
    const id = fired.body['id'] as unknown as string;
    expect(paused['pauseReason']).toBe(`a run did not succeed; the last of them is ${id}`);
  });
});

describe('successWithinSeconds', () => {
  /** As if its time had begun two hours ago; answers when it was up. */
  async function rewind(id: string): Promise<number> {
    const since = Math.floor(Date.now() / 1000) * 1000 - 2 * HOUR;
    await api.sql`UPDATE history SET finished_at = finished_at - interval '3 hours' WHERE schedule_id = ${id}`;
    await api.sql`UPDATE outcome_watches w SET success_since = ${iso(since)}, last_success_at = NULL, look_at = clock_timestamp()
      FROM schedules s WHERE s.uid = w.schedule_uid AND s.id = ${id}`;
    return since + HOUR;
  }
  /** On a slow machine a pass ends after each of its five steps. */
  const PASSES = 6;
  async function look(): Promise<void> {
    const before = watches.map((watch) => watch.passes());
    for (const watch of watches) watch.wake();
    await until(() =>
      watches.every((watch, index) => watch.passes() > (before[index] ?? 0) + PASSES) ? true : wakeAll(),
    );
    await effectsDone();
  }
  function wakeAll(): null {
    for (const watch of watches) watch.wake();
    return null;
  }
  const lookSoon = (id: string) => api.sql`UPDATE outcome_watches w SET look_at = clock_timestamp()
    FROM schedules s WHERE s.uid = w.schedule_uid AND s.id = ${id}`;
  const lateIds = async () => (await itemsAt('/api/v1/schedules?late=true')).map(({ id }) => id);
  const notices = async (id: string) => (await itemsAt(`${pathOf(id)}/runs`)).reverse();

  test('makes a schedule late once for each episode over two instances: field, filter, gauge and one run of each follower', async () => {
    await put('watched', { successWithinSeconds: 3600 });
    await put('notify', { cron: null, after: { scheduleId: 'watched', on: ['late', 'failed'] } });
    await put('notify-all', {
      cron: null,
      after: { scheduleId: '*', on: ['late'] },
      successWithinSeconds: 3600,
    });
    const due = await rewind('watched');
    await rewind('notify-all');
    await look();
    expect(await get('watched')).toMatchObject({ late: true, status: 'active' });
    expect(await lateIds()).toEqual(['notify-all', 'watched']);
    expect((await itemsAt('/api/v1/schedules?late=false')).map(({ id }) => id)).not.toContain('watched');
    const { values } = await store.database.run((db) => sampleWork(db, { overdueSeconds: 3 }));
    expect(values.schedulesLate).toBe(2);
    for (let again = 0; again < 2; again += 1) {
      await lookSoon('watched');
      await look();
    }
    const expected = { trigger: 'after', scheduledFor: iso(due), parentRunId: null };
    expect(await notices('notify')).toMatchObject([expected]);
    // Only what is no after schedule itself is followed by the star.
    expect(await notices('notify-all')).toMatchObject([expected]);
    const arrived = await until(() => receiver.arrivals.find(({ path }) => path === '/notify') ?? null);
    const parent = { ...NO_RUN, scheduleId: 'watched', status: 'late' };
    expect(arrived.body).toMatchObject({ scheduledFor: iso(due), trigger: 'after', parent });
    expect(arrived.body).not.toHaveProperty('dependencies');
    expect(
      events
        .filter(({ type }) => type === 'schedulesLate')
        .flatMap((event) => (event.type === 'schedulesLate' ? event.schedules.map(({ scheduleId }) => scheduleId) : []))
        .sort(),
    ).toEqual(['notify-all', 'watched']);
  });

  test('ends the episode with a success of any run, and the next episode has a run of its own', async () => {
    const looksAt = await api.sql`SELECT look_at > clock_timestamp() + interval '10 s' AS later FROM alerts
      WHERE schedule_id = 'watched' AND until IS NULL`;
    expect(looksAt).toEqual([{ later: true }]);
    await fire('watched', 200);
    await effectsDone();
    await look();
    expect(await get('watched')).toMatchObject({ late: false });
    expect(instance.events.some(({ type }) => type === 'schedulesLateNoMore')).toBe(true);
    const due = await rewind('watched');
    await look();
    expect(await get('watched')).toMatchObject({ late: true });
    expect((await notices('notify')).map(({ scheduledFor }) => scheduledFor)).toContain(iso(due));
    expect(await notices('notify')).toHaveLength(2);
  });

  test('ends it too with a success after failed attempts; neither a failure nor a success in time has it looked at', async () => {
    await put('retried', { successWithinSeconds: 3600 });
    const looksNow = async () =>
      (
        await api.sql`SELECT FROM outcome_watches w JOIN schedules s ON s.uid = w.schedule_uid
        WHERE s.id = 'retried' AND look_at <= clock_timestamp()`
      ).length > 0;
    await fire('retried', 200);
    await effectsDone();
    expect(await looksNow()).toBe(false);
    await rewind('retried');
    await look();
    await fire('retried', 400);
    await effectsDone();
    expect(await looksNow()).toBe(false);
    status = 500;
    const fired = await api.call('POST', `${pathOf('retried')}/fire`);
    await until(async () =>
      (await api.sql`SELECT FROM runs WHERE schedule_id = 'retried' AND failures > 0 AND claimed_by IS NULL`).length > 0
        ? true
        : null,
    );
    expect(await get('retried')).toMatchObject({ late: true });
    status = 200;
    await api.sql`UPDATE runs SET due_at = clock_timestamp(), ready = true WHERE schedule_id = 'retried'`;
    const id = fired.body['id'] as unknown as string;
    await until(async () => ((await api.sql`SELECT FROM history WHERE id = ${id}`).length > 0 ? true : null));
    await effectsDone();
    await look();
    expect(await get('retried')).toMatchObject({ late: false });
    expect((await api.call('DELETE', pathOf('retried'))).status).toBe(204);
  });

  test('never makes a paused or ended schedule late, and counts anew when it is resumed', async () => {
    expect((await patch('watched', { enabled: false })).body).toMatchObject({ late: false });
    await look();
    expect(await lateIds()).not.toContain('watched');
    await patch('watched', { enabled: true });
    await lookSoon('watched');
    await look();
    expect(await get('watched')).toMatchObject({ late: false });
    await rewind('watched');
    await look();
    expect(await get('watched')).toMatchObject({ late: true });
    await api.sql`UPDATE schedules SET next_fire_at = NULL, next_occurrence_at = NULL WHERE id = 'watched'`;
    expect(await get('watched')).toMatchObject({ late: false, status: 'ended' });
    expect((await api.call('DELETE', pathOf('notify'))).status).toBe(204);
    expect((await api.call('DELETE', pathOf('watched'))).status).toBe(204);
    expect(await api.sql`SELECT FROM outcome_watches`).toHaveLength(3);
  });

  test('one row that cannot be read does not stop the check of the others', async () => {
    for (const id of ['bad', 'good']) {
      await put(id, { successWithinSeconds: 3600 });
      await rewind(id);
    }
    await api.sql`UPDATE outcome_watches SET success_since = 'infinity' FROM schedules s
      WHERE s.uid = schedule_uid AND s.id = 'bad'`;
    await look();
    expect(await lateIds()).toContain('good');
    expect(events.some((event) => event.type === 'alertLookRefused')).toBe(true);
  });

  test('tells the target which schedule is late, also where two became late at one moment, in a text, to a worker, and again', async () => {
    const after = { scheduleId: '*', on: ['late'] };
    const template = '["{{parent/scheduleId}} is {{parent/status}}", {{parent/runId}}, {{dependencies}}]';
    await put('say', {
      cron: null,
      after,
      target: { type: 'http', url: `${receiver.url}/say`, body: { template } },
    });
    await put('pulled', { cron: null, after, target: { type: 'pull', queue: 'lates' } });
    for (const id of ['east', 'west']) await put(id, { successWithinSeconds: 3600 });
    const since = iso(Math.floor(Date.now() / 1000) * 1000 - 5 * HOUR);
    await api.sql`UPDATE outcome_watches w SET success_since = ${since}, last_success_at = NULL, look_at = clock_timestamp()
      FROM schedules s WHERE s.uid = w.schedule_uid AND s.id IN ('east', 'west')`;
    await look();
    const said = await until(() => {
      const texts = receiver.arrivals.filter(({ path }) => path === '/say').map(({ text }) => text);
      return texts.length === 2 ? texts.sort() : null;
    });
    expect(said).toEqual(['["east is late", null, []]', '["west is late", null, []]']);

    const claim = { workerId: 'w', leaseSeconds: 60, max: 2 };
    const claimed = await api.call('POST', '/api/v1/queues/lates/claim', claim);
    const items = (claimed.body['items'] as unknown as Item[]).map((item) => [item['parentRunId'], item['parent']]);
    const parentOf = (scheduleId: string) => [null, { ...NO_RUN, scheduleId, status: 'late' }];
    expect(items).toEqual(expect.arrayContaining([parentOf('east'), parentOf('west')]));

    // A run that has ended, and is opened again, still knows; once the schedule is gone, nobody does.
    const [{ id } = { id: '' }] = await notices('say');
    const saidAgain = async (times: number) => {
      await until(async () => {
        await api.sql`UPDATE history SET status = 'failed' WHERE id = ${id}`;
        return (await api.call('POST', `/api/v1/runs/${id}/retry`)).status === 200 ? true : null;
      });
      return until(() => receiver.arrivals.filter(({ path }) => path === '/say')[times - 1]?.text ?? null);
    };
    expect(said).toContain(await saidAgain(3));
    for (const gone of ['east', 'west']) await api.call('DELETE', pathOf(gone));
    expect(await saidAgain(4)).toBe('["null is null", null, []]');
  });
});
