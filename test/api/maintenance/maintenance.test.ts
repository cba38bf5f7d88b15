import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest';
import { releaseHeldRuns } from '../../../src/store/runs/runs-of-edits.ts';
import { type Database, openDatabase } from '../../../src/postgres/database.ts';
import { type Json, TARGET, faultPaths, sharedApi } from '../api.ts';

const api = sharedApi();
let database: Database;
beforeAll(() => {
  database = openDatabase(api.databaseUrl, 1);
});
afterAll(() => database.close());
afterEach(async () => {
  await api.call('POST', '/api/v1/maintenance', { on: false });
});

const OFF = { on: false, reason: null, until: null, dispatch: 'continue', since: null };
const set = (body: object) => api.call('POST', '/api/v1/maintenance', body);
const get = async () => (await api.call('GET', '/api/v1/maintenance')).body;
const iso = (inMs: number) => new Date(Date.now() + inMs).toISOString();

describe('/maintenance', () => {
  it('is off, begins, changes and ends; its answer can be sent back', async () => {
    expect(await get()).toEqual(OFF);
    const begun = await set({ on: true });
    const since = begun.body['since'];
    expect([begun.status, begun.body]).toEqual([
      200,
      { ...OFF, on: true, since: expect.stringMatching(/Z$/) as string },
    ]);
    const until = iso(3_600_000);
    const more = { on: true, reason: 'the disks are replaced', until, dispatch: 'hold' };
    expect((await set(more)).body).toEqual({ ...more, since });
    expect(await get()).toEqual({ ...more, since });
    expect((await set(await get())).body).toEqual({ ...more, since });
    expect((await set({ on: false })).body).toEqual(OFF);
    expect((await set(await get())).body).toEqual(OFF);
    // What has ended by itself is over, also for its `since`.
    await set({ on: true, until: iso(3_600_000) });
    await api.sql`UPDATE installation SET until = clock_timestamp(), mode_since = '2020-01-01'`;
    expect(await get()).toEqual(OFF);
    expect((await set({ on: true })).body['since']).not.toMatch(/^2020/);
  });

  it('names every fault, and changes nothing then', async () => {
    const faulty = await set({ on: 'yes', until: 'tomorrow', dispatch: 'stop', reason: 7, who: 'me' });
    expect([faulty.status, faultPaths(faulty)]).toEqual([400, ['/dispatch', '/on', '/reason', '/until', '/who']]);
    expect(faultPaths(await set({}))).toEqual(['/on']);
    const off = await set({ on: false, reason: 'no', until: iso(1000), dispatch: 'hold' });
    expect([off.status, faultPaths(off)]).toEqual([400, ['/dispatch', '/reason', '/until']]);
    const past = await set({ on: true, until: iso(-1000) });
    expect([past.status, faultPaths(past)]).toEqual([422, ['/until']]);
    expect(await get()).toEqual(OFF);
    // A refused change leaves what is in force.
    await set({ on: true, reason: 'first' });
    await set({ on: true, reason: 'second', until: iso(-1000) });
    expect(await get()).toMatchObject({ on: true, reason: 'first' });
    expect(faultPaths(await api.call('GET', '/api/v1/maintenance?x=1'))).toEqual(['x']);
  });
});

const HOUR = 3_600_000;
/** Three hours are due, the last of them half an hour ago; the next one is half an hour off. */
const put = async (id: string, given: object = {}) => {
  const startAt = new Date(Date.now() - 2.5 * HOUR).toISOString();
  const schedule = { everySeconds: 3600, startAt, target: TARGET, ...given };
  expect((await api.call('PUT', `/api/v1/schedules/${id}`, schedule)).status).toBe(201);
  await api.sql`UPDATE schedules SET next_occurrence_at = ${startAt}, next_fire_at = ${startAt} WHERE id = ${id}`;
  await api.sql`UPDATE schedule_versions SET at = ${iso(-3 * HOUR)} WHERE schedule_id = ${id}`;
};
const runsOf = async (id: string) =>
  (await api.call('GET', `/api/v1/schedules/${id}/runs`)).body['items'] as unknown as Json[];
const occurrencesOf = async (id: string) => {
  const { body } = await api.call('GET', `/api/v1/schedules/${id}/occurrences?from=${iso(-4 * HOUR)}`);
  return (body['items'] as unknown as Json[]).map(({ state }) => state);
};
const patch = async (id: string, body: object) =>
  expect((await api.call('PATCH', `/api/v1/schedules/${id}`, body)).status).toBe(200);

describe('an edit during maintenance', () => {
  it('that leaves the fire times leaves due fires to the tick after it', async () => {
    await set({ on: true });
    await put('stays');
    expect(await occurrencesOf('stays')).toEqual(['upcoming', 'upcoming', 'upcoming']);
    await patch('stays', { description: 'edited', catchUp: 'all' });
    expect(await runsOf('stays')).toEqual([]);
    expect(await occurrencesOf('stays')).toEqual(['upcoming', 'upcoming', 'upcoming']);
    const [row] = await api.sql<{ due: boolean }[]>`
      SELECT next_fire_at < clock_timestamp() - interval '2 hours' AS due FROM schedules WHERE id = 'stays'`;
    expect(row).toEqual({ due: true });
  });

  it('that moves them, or pauses, records due fires by catchUp, to wait until it is over', async () => {
    await set({ on: true });
    for (const catchUp of ['skip', 'latest', 'all']) await put(`moved-${catchUp}`, { catchUp });
    await put('paused', { graceSeconds: 86_400 });
    for (const catchUp of ['skip', 'latest', 'all']) await patch(`moved-${catchUp}`, { everySeconds: 7200 });
    await patch('paused', { enabled: false });
    const waiting = { status: 'waiting', trigger: 'catchUp' };
    expect(await runsOf('moved-skip')).toMatchObject([{ status: 'skipped', reason: 'missed', coalesced: 2 }]);
    expect(await runsOf('moved-latest')).toMatchObject([{ ...waiting, coalesced: 2, scheduleVersion: 1 }]);
    expect(await runsOf('moved-all')).toMatchObject([waiting, waiting, waiting]);
    expect(await runsOf('paused')).toMatchObject([{ ...waiting, coalesced: 2 }]);
    expect(await occurrencesOf('moved-latest')).toEqual(['missed', 'missed', 'fired']);

    // Nothing but its end lets them go.
    const release = () => database.transaction((tx) => releaseHeldRuns(tx, 100));
    expect(await release()).toMatchObject({ released: 0 });
    const cancelled = (await runsOf('moved-all'))[2]?.['id'] as unknown as string;
    expect((await api.call('POST', `/api/v1/runs/${cancelled}/cancel`)).status).toBe(200);
    await set({ on: false });
    expect(await release()).toMatchObject({ released: 4 });
    expect(await api.sql`SELECT FROM held_runs`).toHaveLength(0);
    expect((await runsOf('moved-all')).map(({ status }) => status)).toEqual(['pending', 'pending', 'cancelled']);
    expect(await runsOf('paused')).toMatchObject([{ status: 'pending' }]);
  });

  it('of a schedule whose runs must not overlap starts them one after the other', async () => {
    await set({ on: true });
    await put('queued', { catchUp: 'all', overlap: 'queue' });
    await put('newly', { catchUp: 'latest' });
    await patch('queued', { everySeconds: 7200 });
    await patch('newly', { everySeconds: 7200 });
    // An edit that makes it judge its open runs does not count what is held.
    await patch('newly', { overlap: 'skip' });
    const statuses = async (id: string) => (await runsOf(id)).map(({ status }) => status).sort();
    expect(await statuses('queued')).toEqual(['waiting', 'waiting', 'waiting']);
    expect(await statuses('newly')).toEqual(['waiting']);
    await set({ on: false });
    await database.transaction((tx) => releaseHeldRuns(tx, 100));
    await api.applyEffects();
    expect(await statuses('queued')).toEqual(['pending', 'skipped', 'waiting']);
    expect(await statuses('newly')).toEqual(['pending']);
  });

  it('that deletes a schedule accounts for its due fires', async () => {
    await set({ on: true });
    await put('deleted');
    expect((await api.call('DELETE', '/api/v1/schedules/deleted')).status).toBe(204);
    expect(await runsOf('deleted')).toMatchObject([
      { status: 'abandoned', reason: 'deleted', trigger: 'catchUp', coalesced: 2 },
    ]);
    await set({ on: false });
    await database.transaction((tx) => releaseHeldRuns(tx, 100));
    expect(await api.sql`SELECT FROM held_runs`).toHaveLength(0);
  });
});
