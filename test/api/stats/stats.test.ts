import { randomUUID } from 'node:crypto';
import { beforeAll, describe, expect, test } from 'vitest';
import { isoInstant } from '../../../src/core/instant.ts';
import { randomRunId } from '../../../src/core/runs/run.ts';
import { insertRuns } from '../../support/run-rows.ts';
import { type Json, SCHEDULE, faultPaths, sharedApi } from '../api.ts';

const api = sharedApi();

const NOTHING = {
  totalRuns: 0,
  succeededRuns: 0,
  failedRuns: 0,
  unknownRuns: 0,
  abandonedRuns: 0,
  skippedRuns: 0,
  cancelledRuns: 0,
  openRuns: 0,
  lostRuns: 0,
  recoveredRuns: 0,
  successRate: null,
  recovery: { attempts: 0, succeeded: 0, failed: 0, abandoned: 0, successRate: null },
  lateness: { p50Ms: null, p95Ms: null, p99Ms: null, maxMs: null },
};

const stats = async (path: string): Promise<Json> => {
  const answer = await api.call('GET', `/api/v1/${path}`);
  expect(answer.status).toBe(200);
  return answer.body;
};

const put = (id: string) => api.call('PUT', `/api/v1/schedules/${id}`, SCHEDULE);

/** Rows as the daemon would have left them; each is its schedule's only run at its moment. */
async function record(scheduleId: string, at: number, rows: Record<string, unknown>[]): Promise<void> {
  const [found] = await api.sql<{ uid: string }[]>`SELECT uid FROM schedules WHERE id = ${scheduleId}`;
  const whole = rows.map((row, index) => ({
    id: randomRunId(at + index),
    scheduled_for: isoInstant(at + index),
    schedule_uid: found?.uid ?? randomUUID(),
    schedule_version: 1,
    schedule_id: scheduleId,
    trigger: 'schedule',
    status: 'succeeded',
    recoveries: 0,
    lateness_ms: null,
    lost_at: null,
    handed_off_at: null,
    lane: 'http https://example.com',
    priority: 1,
    due_at: isoInstant(at + index),
    attempts: 1,
    created_at: isoInstant(at),
    updated_at: isoInstant(at),
    ...row,
  }));
  await insertRuns(api.sql, whole);
}

const AT = Date.UTC(2026, 5, 1);
const DAY = 'from=2026-06-01T00:00:00Z&to=2026-06-02T00:00:00Z';
const lost = { lost_at: isoInstant(AT + 1000) };
const handedOff = { handed_off_at: isoInstant(AT + 2000) };

test('an empty database has no ratios and no lateness', async () => {
  expect(await stats('stats')).toEqual(NOTHING);
  await put('never-fired');
  expect(await stats('schedules/never-fired/stats')).toEqual(NOTHING);
});

describe('a day with runs of every kind', () => {
  beforeAll(async () => {
    await put('kinds');
    const each = (count: number, row: Record<string, unknown>) => Array.from({ length: count }, () => row);
    await record('kinds', AT, [
      ...each(5, { ...handedOff, trigger: 'manual' }),
      ...each(3, { status: 'failed', trigger: 'catchUp' }),
      ...each(2, { status: 'unknown' }),
      ...each(1, { status: 'abandoned' }),
      ...each(4, { status: 'skipped', attempts: 0 }),
      ...each(2, { status: 'cancelled' }),
      ...each(1, { status: 'waiting', attempts: 0 }),
      ...each(2, { status: 'pending' }),
      ...each(3, { status: 'running', ...handedOff }),
      // Lost ones: three handed off since, of which one still runs and one failed after all.
      { ...lost, ...handedOff, recoveries: 1 },
      { ...lost, ...handedOff, recoveries: 2, status: 'running' },
      { ...lost, ...handedOff, recoveries: 1, status: 'failed' },
      { ...lost, recoveries: 1, status: 'failed' },
      { ...lost, recoveries: 0, status: 'unknown' },
      { ...lost, recoveries: 3, status: 'abandoned' },
      { ...lost, recoveries: 1, status: 'pending' },
      { ...lost, recoveries: 1, status: 'cancelled' },
    ]);
  });

  const expected = {
    totalRuns: 31,
    succeededRuns: 6,
    failedRuns: 5,
    unknownRuns: 3,
    abandonedRuns: 2,
    skippedRuns: 4,
    cancelledRuns: 3,
    openRuns: 8,
    lostRuns: 8,
    recoveredRuns: 3,
    successRate: 6 / 16,
    recovery: { attempts: 11, succeeded: 3, failed: 2, abandoned: 1, successRate: 3 / 6 },
  };

  test('is counted by status, and lost runs by what became of them', async () => {
    expect(await stats(`stats?${DAY}`)).toMatchObject(expected);
  });

  test('is the same for its only schedule, planned fires and manual ones together', async () => {
    expect(await stats(`schedules/kinds/stats?${DAY}`)).toEqual(await stats(`stats?${DAY}`));
  });

  test('every run is counted under one status', async () => {
    const all = await stats(`stats?${DAY}`);
    const ended = ['succeeded', 'failed', 'unknown', 'abandoned', 'skipped', 'cancelled', 'open'];
    const sum = ended.reduce((total, name) => total + Number(all[`${name}Runs`]), 0);
    expect(sum).toBe(Number(all['totalRuns']));
  });
});

test('skipped, cancelled and open runs are in no ratio', async () => {
  await put('undivided');
  await record(
    'undivided',
    AT + 3_600_000,
    ['skipped', 'cancelled', 'pending'].map((status) => ({ status, ...lost })),
  );
  expect(await stats('schedules/undivided/stats')).toMatchObject({
    totalRuns: 3,
    lostRuns: 3,
    successRate: null,
    recovery: { successRate: null },
  });
});

test('a period holds its first millisecond and not its last', async () => {
  await put('ends');
  const noon = Date.UTC(2026, 6, 1, 12);
  await record('ends', noon - 1, [{}, {}, {}]);
  const total = async (query: string) => {
    const [all, one] = [await stats(`stats?${query}`), await stats(`schedules/ends/stats?${query}`)];
    expect(one).toEqual(all);
    return Number(all['totalRuns']);
  };
  const day = 'from=2026-07-01T00:00:00Z';
  expect(await total(`${day}&to=2026-07-01T12:00:00.002Z`)).toBe(3);
  expect(await total(`${day}&to=2026-07-01T12:00:00.001Z`)).toBe(2);
  expect(await total(`${day}&to=2026-07-01T12:00:00Z`)).toBe(1);
  expect(await total(`${day}&to=2026-07-01T11:59:59.999Z`)).toBe(0);
  expect(await total('from=2026-07-01T14:00:00%2B02:00')).toBe(2);
  expect(await total('from=2026-07-01T14:00:00.001 02:00')).toBe(1);
});

test('one schedule among others, and among earlier ones with its id', async () => {
  await put('born-again');
  await record('born-again', Date.UTC(2026, 7, 1), [{ lateness_ms: 7 }, { status: 'failed' }]);
  await api.call('DELETE', '/api/v1/schedules/born-again');
  expect(await stats('schedules/born-again/stats')).toMatchObject({ totalRuns: 2, lateness: { maxMs: 7 } });
  await put('born-again');
  await put('neighbour');
  await record('born-again', Date.UTC(2026, 7, 2), [{ lateness_ms: 9 }]);
  await record('neighbour', Date.UTC(2026, 7, 2), [{ lateness_ms: 8000 }, {}]);
  expect(await stats('schedules/born-again/stats')).toMatchObject({ totalRuns: 3, lateness: { maxMs: 9 } });
  expect(await stats('schedules/neighbour/stats')).toMatchObject({ totalRuns: 2 });
  expect(await stats('stats?from=2026-08-01T00:00:00Z&to=2026-08-03T00:00:00Z')).toMatchObject({
    totalRuns: 5,
    lateness: { maxMs: 8000 },
  });
});

test('percentiles are measured values, exact however late runs were; runs that never started do not count', async () => {
  await put('spread');
  // Each magnitude has its share, and neighbours that begin alike; more than 24 days do not fit 32 bits.
  const lateness = [12_340, 123_400, 1_234_000, 123_400_000, 3_000_000_000].flatMap((least) =>
    Array.from({ length: 40 }, (_, index) => least + ((index * 27) % 40)),
  );
  await record('spread', Date.UTC(2026, 8, 3), [
    ...lateness.map((ms) => ({ lateness_ms: ms })),
    ...Array.from({ length: 300 }, () => ({ status: 'skipped' })),
  ]);
  const sorted = lateness.toSorted((a, b) => a - b);
  expect((await stats('schedules/spread/stats'))['lateness']).toEqual({
    ...{ p50Ms: sorted[99], p95Ms: sorted[189], p99Ms: sorted[197], maxMs: sorted[199] },
  });
});

test('a schedule that was never known is 404', async () => {
  expect((await api.call('GET', '/api/v1/schedules/never-was/stats')).status).toBe(404);
});

test.each([
  ['from=yesterday', ['from']],
  ['from=2026-06-01T00:00:00', ['from']],
  ['to=2100-01-01T00:00:00.001Z', ['to']],
  ['from=2026-06-02T00:00:00Z&to=2026-06-01T00:00:00Z', ['to']],
  ['from=2026-06-01T00:00:00Z&to=2026-06-01T02:00:00%2B02:00', ['to']],
  ['from=x&to=y&limit=1&status=failed', ['from', 'limit', 'status', 'to']],
])('every fault of ?%s is named', async (query, paths) => {
  for (const path of ['stats', 'schedules/never-fired/stats']) {
    const answer = await api.call('GET', `/api/v1/${path}?${query}`);
    expect([answer.status, faultPaths(answer)]).toEqual([400, paths]);
  }
});
