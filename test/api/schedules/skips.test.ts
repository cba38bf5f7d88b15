import { randomUUID } from 'node:crypto';
import { describe, expect, test } from 'vitest';
import { type Answer, TARGET, sharedApi } from '../api.ts';

const api = sharedApi();

const put = (id: string, body: object) => api.call('PUT', `/api/v1/schedules/${id}`, { target: TARGET, ...body });
const patch = (id: string, body: object) => api.call('PATCH', `/api/v1/schedules/${id}`, body);
const get = (path: string) => api.call('GET', `/api/v1${path}`);
const skip = (id: string, fireAt: unknown, more: object = {}) =>
  api.call('POST', `/api/v1/schedules/${id}/skip`, { fireAt, ...more });
const unskip = (id: string, fireAt: unknown) => api.call('POST', `/api/v1/schedules/${id}/unskip`, { fireAt });
const faults = ({ status, body }: Answer) => ({ status, errors: body['errors'] });
const items = (answer: Answer) => answer.body['items'] as unknown as Record<string, unknown>[];
const nextOf = async (id: string) => (await get(`/schedules/${id}`)).body['nextFireAt'];
const stored = () => api.sql<{ fire_at: Date; reason: string | null }[]>`
  SELECT fire_at, reason FROM skips JOIN schedules ON uid = schedule_uid ORDER BY fire_at`;
const flagOf = async (id: string) =>
  (await api.sql<{ has_skips: boolean }[]>`SELECT has_skips FROM schedules WHERE id = ${id}`)[0]?.has_skips;

/** Far from every test: New Year's Days. */
const YEARLY = '0 0 1 1 *';
const START = '2090-01-01T00:00:00.000Z';
const newYear = (year: number) => `${year}-01-01T00:00:00.000Z`;

describe('a fire that is skipped', () => {
  test('is left out of nextFireAt, marked in upcoming and occurrences, and not counted by the load', async () => {
    const created = await put('yearly', { cron: YEARLY, startAt: START });
    expect(created.body['nextFireAt']).toBe(newYear(2090));
    const answer = await skip('yearly', '2090-01-01T01:00:00+01:00', { reason: 'closed' });
    expect([answer.status, answer.body]).toEqual([200, { fireAt: newYear(2090), skipped: true }]);
    expect((await skip('yearly', newYear(2091))).status).toBe(200);
    expect((await skip('yearly', newYear(2093))).status).toBe(200);

    const shown = await get('/schedules/yearly');
    expect(shown.body).toMatchObject({ nextFireAt: newYear(2092), version: 1, status: 'active' });
    expect(shown.headers.get('etag')).toBe(created.headers.get('etag'));
    expect(items(await get('/schedules?q=yearly'))).toEqual([shown.body]);
    expect(items(await get('/schedules/yearly/versions'))).toHaveLength(1);
    const upcoming = await get('/schedules/yearly/upcoming?count=4');
    expect(items(upcoming).map(({ fireAt, skipped, skipReason }) => ({ fireAt, skipped, skipReason }))).toEqual([
      { fireAt: newYear(2090), skipped: true, skipReason: 'closed' },
      { fireAt: newYear(2091), skipped: true, skipReason: undefined },
      { fireAt: newYear(2092), skipped: undefined, skipReason: undefined },
      { fireAt: newYear(2093), skipped: true, skipReason: undefined },
    ]);
    const occurrences = await get('/schedules/yearly/occurrences?from=2090-01-01T00:00:00Z&to=2093-01-01T00:00:00Z');
    expect(items(occurrences)).toEqual([
      { fireAt: newYear(2090), state: 'skipped', reason: 'request', version: 1 },
      { fireAt: newYear(2091), state: 'skipped', reason: 'request', version: 1 },
      { fireAt: newYear(2092), state: 'upcoming', version: 1 },
    ]);
    const fires = async (year: number) =>
      items(await get(`/load?from=${newYear(year)}&to=${year}-01-01T00:01:00Z`)).length;
    expect([await fires(2091), await fires(2092)]).toEqual([0, 1]);
  });

  test('is skipped once, however often a caller asks, and made after all when a caller asks for that', async () => {
    const again = await skip('yearly', newYear(2091), { reason: 'another one' });
    expect([again.status, again.body]).toEqual([200, { fireAt: newYear(2091), skipped: true }]);
    expect(await stored()).toHaveLength(3);
    for (let time = 0; time < 2; time += 1) {
      const answer = await unskip('yearly', newYear(2091));
      expect([answer.status, answer.body]).toEqual([200, { fireAt: newYear(2091), skipped: false }]);
    }
    expect(await nextOf('yearly')).toBe(newYear(2091));
    await unskip('yearly', newYear(2093));
    expect(await flagOf('yearly')).toBe(true);
    await unskip('yearly', newYear(2090));
    expect([await nextOf('yearly'), await flagOf('yearly'), await stored()]).toEqual([newYear(2090), false, []]);
  });

  test('is planned again if another instance is making a plan: the skip takes its lock', async () => {
    await api.sql`UPDATE schedules SET locked_by = ${randomUUID()}, locked_at = clock_timestamp() WHERE id = 'yearly'`;
    const locked = async () => typeof (await get('/schedules/yearly')).body['lockedBy'] === 'string';
    await unskip('yearly', newYear(2090));
    expect(await locked()).toBe(true);
    await skip('yearly', newYear(2090));
    expect(await locked()).toBe(false);
    await api.sql`UPDATE schedules SET locked_by = ${randomUUID()}, locked_at = clock_timestamp() WHERE id = 'yearly'`;
    await unskip('yearly', newYear(2090));
    expect(await locked()).toBe(false);
  });

  test('leaves no coming fire if it was the last one, until its moment', async () => {
    await put('once', { at: START });
    await skip('once', START);
    expect((await get('/schedules/once')).body).toMatchObject({ status: 'active', nextFireAt: null });
    await unskip('once', START);
    expect(await nextOf('once')).toBe(START);
  });

  test('may be waiting for its jitter', async () => {
    await put('delayed', { cron: '* * * * *', jitterSeconds: 50 });
    const nextMinute = async () => items(await get('/schedules/delayed/upcoming?count=1&from=2090-01-01T00:00:00Z'))[0];
    const { fireAt, dueAt } = (await nextMinute()) ?? {};
    expect(dueAt).not.toBe(fireAt);
    await api.sql`UPDATE schedules SET next_occurrence_at = ${fireAt as string}, next_fire_at = ${dueAt as string} WHERE id = 'delayed'`;
    await skip('delayed', fireAt);
    const after = items(await get(`/schedules/delayed/upcoming?count=1&from=${fireAt as string}`))[0];
    expect(await nextOf('delayed')).toBe(after?.['dueAt']);
    await api.call('DELETE', '/api/v1/schedules/delayed');
  });
});

describe('a skip is refused', () => {
  test('with every fault at once', async () => {
    const answer = await skip('yearly', 'tomorrow', { reason: 5, until: 1 });
    expect([
      answer.status,
      (answer.body['errors'] as unknown as { path: string }[]).map(({ path }) => path).sort(),
    ]).toEqual([400, ['/fireAt', '/reason', '/until']]);
    expect((await api.call('POST', '/api/v1/schedules/yearly/unskip', {})).status).toBe(400);
  });

  test('for a schedule that is unknown, or that follows others', async () => {
    await put('follower', { after: { scheduleId: 'yearly' } });
    for (const call of [skip, unskip]) {
      expect((await call('nobody', START)).status).toBe(404);
      expect((await call('follower', START)).status).toBe(409);
    }
  });

  test('for a moment that is no fire, with the next one', async () => {
    for (const call of [skip, unskip])
      expect(faults(await call('yearly', '2091-01-01T00:00:00.001Z'))).toEqual({
        status: 422,
        errors: [
          {
            path: '/fireAt',
            message: `is not a fire time of this schedule; the next one is at ${newYear(2092)}`,
          },
        ],
      });
  });

  test('for a fire that is planned, or whose moment has come', async () => {
    await put('past', { cron: YEARLY });
    for (const call of [skip, unskip]) expect((await call('past', newYear(2020))).status).toBe(409);
    await api.sql`UPDATE schedules SET planned_through = ${newYear(2095)} WHERE id = 'yearly'`;
    for (const call of [skip, unskip]) {
      const answer = await call('yearly', newYear(2095));
      expect([answer.status, answer.body['detail']]).toEqual([
        409,
        `the fire of schedule yearly at ${newYear(2095)} is not upcoming any more`,
      ]);
    }
    await api.sql`UPDATE schedules SET planned_through = NULL, next_occurrence_at = ${newYear(2097)} WHERE id = 'yearly'`;
    expect((await skip('yearly', newYear(2096))).status).toBe(409);
    expect((await skip('yearly', newYear(2097))).status).toBe(200);
    expect(await stored()).toMatchObject([{ fire_at: new Date(newYear(2097)) }]);
  });

  test('beyond a thousand for one schedule', async () => {
    await put('hourly', { cron: '0 * * * *', startAt: START });
    await api.sql`INSERT INTO skips (schedule_uid, fire_at, asked_at)
      SELECT uid, ${START}::timestamptz + make_interval(hours => n), now() FROM schedules, generate_series(1, 1000) n
      WHERE id = 'hourly'`;
    await api.sql`UPDATE schedules SET has_skips = true WHERE id = 'hourly'`;
    expect(faults(await skip('hourly', START))).toMatchObject({
      status: 422,
      errors: [{ path: '/fireAt', message: expect.stringMatching(/1000 upcoming fires/) as string }],
    });
    expect((await skip('hourly', '2090-01-01T05:00:00Z')).status).toBe(200);
    expect((await unskip('hourly', '2090-01-01T05:00:00Z')).status).toBe(200);
    expect((await skip('hourly', START)).status).toBe(200);
    expect(await nextOf('hourly')).toBe('2090-01-01T05:00:00.000Z');
    const day = 'from=2090-01-01T00:00:00Z&to=2090-01-02T00:00:00Z&bucketSeconds=3600';
    const load = items(await get(`/load?${day}`)).map(({ at }) => at);
    expect(load).toContain('2090-01-01T05:00:00.000Z');
    expect(load).not.toContain('2090-01-01T06:00:00.000Z');
  });
});

describe('an edit', () => {
  test('keeps skips whose moment is still a fire, and deletes the others', async () => {
    await put('edited', { cron: YEARLY, startAt: START });
    for (const year of [2090, 2091]) await skip('edited', newYear(year));
    const times = async () =>
      (
        await api.sql<{ fire_at: Date }[]>`SELECT fire_at FROM skips JOIN schedules ON uid = schedule_uid
        WHERE id = 'edited' ORDER BY fire_at`
      ).map(({ fire_at }) => fire_at.toISOString());
    const labelled = await patch('edited', { labels: { a: 'b' } });
    expect([labelled.body['nextFireAt'], await times()]).toEqual([newYear(2092), [newYear(2090), newYear(2091)]]);
    expect((await patch('edited', { enabled: false })).body['nextFireAt']).toBeNull();
    expect((await skip('edited', newYear(2094))).status).toBe(200);
    expect((await patch('edited', { enabled: true })).body['nextFireAt']).toBe(newYear(2092));
    const moved = await patch('edited', { cron: [YEARLY, '0 0 1 7 *'], startAt: newYear(2091) });
    expect([moved.body['nextFireAt'], await times()]).toEqual([
      '2091-07-01T00:00:00.000Z',
      [newYear(2091), newYear(2094)],
    ]);
    const other = await patch('edited', { everySeconds: 3600, startAt: '2090-01-01T00:00:01Z' });
    expect([other.body['nextFireAt'], await times(), await flagOf('edited')]).toEqual([
      '2090-01-01T00:00:01.000Z',
      [],
      false,
    ]);
  });

  test('records a skipped fire that is already due as skipped, and only that one', async () => {
    await put('late', { cron: '0 * * * *', catchUp: 'all', graceSeconds: 0 });
    const [row] = await api.sql<
      { at: Date }[]
    >`SELECT date_trunc('hour', clock_timestamp()) - interval '2 hours' AS at`;
    const first = row?.at.getTime() ?? NaN;
    const hour = (n: number) => new Date(first + n * 3_600_000).toISOString();
    await api.sql`UPDATE schedules SET next_occurrence_at = ${hour(0)}, next_fire_at = ${hour(0)}, has_skips = true,
      created_at = ${hour(-1)} WHERE id = 'late'`;
    await api.sql`UPDATE schedule_versions SET at = ${hour(-1)} WHERE schedule_id = 'late'`;
    await api.sql`INSERT INTO skips (schedule_uid, fire_at, reason, asked_at)
      SELECT uid, ${hour(1)}, 'closed', now() FROM schedules WHERE id = 'late'`;
    expect((await patch('late', { cron: '30 * * * *' })).status).toBe(200);
    const runs = items(await get('/schedules/late/runs')).map(({ scheduledFor, status, reason }) => ({
      scheduledFor,
      status,
      reason,
    }));
    expect(runs.toReversed().slice(0, 3)).toEqual([
      { scheduledFor: hour(0), status: 'pending', reason: null },
      { scheduledFor: hour(1), status: 'skipped', reason: 'request' },
      { scheduledFor: hour(2), status: 'pending', reason: null },
    ]);
    const skipped = items(await get('/schedules/late/runs?status=skipped'))[0]?.['id'] as string;
    expect((await get(`/runs/${skipped}`)).body['error']).toEqual({ kind: 'reported', message: 'closed' });
    const occurrences = items(await get(`/schedules/late/occurrences?from=${hour(1)}&to=${hour(2)}`));
    expect(occurrences).toMatchObject([{ fireAt: hour(1), state: 'skipped', reason: 'request', runId: skipped }]);
    expect(await flagOf('late')).toBe(false);
    // As any skipped run, it goes on when it is asked for.
    expect((await api.call('POST', `/api/v1/runs/${skipped}/retry`)).body).toMatchObject({
      status: 'pending',
      error: null,
    });
    expect(items(await get(`/schedules/late/occurrences?from=${hour(1)}&to=${hour(2)}`))[0]?.['state']).toBe('fired');
  });

  test('that deletes the schedule deletes them', async () => {
    await put('deleted', { cron: YEARLY });
    await skip('deleted', newYear(2090));
    await api.call('DELETE', '/api/v1/schedules/deleted');
    const left = await api.sql`SELECT FROM skips WHERE schedule_uid NOT IN (SELECT uid FROM schedules)`;
    expect(left).toHaveLength(0);
  });
});
