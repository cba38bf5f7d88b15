import postgres from 'postgres';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { type TestDatabase, createMigrated } from '../support/cluster.ts';
import { until } from '../support/until.ts';
import { type Api, TARGET, faultPaths, startApi } from './api.ts';

/** Some instance keeps less than this one does: 10 days of 30. */
const KEPT_DAYS = 10;
const DAY = 86_400_000;

let created: TestDatabase;
let api: Api;
let watcher: postgres.Sql;
let today: number;
const iso = (daysAgo: number) => new Date(today - daysAgo * DAY).toISOString();
beforeAll(async () => {
  created = await createMigrated();
  api = await startApi(created.url);
  watcher = postgres(created.url, { max: 1 });
  const [row] = await api.sql<{ today: Date }[]>`SELECT date_trunc('day', clock_timestamp(), 'UTC') AS today`;
  today = Number(row?.today);
  await api.sql`INSERT INTO history (dropped_before) VALUES (${iso(KEPT_DAYS)})`;
});
afterAll(async () => {
  await api.stop();
  await watcher.end();
  await created.drop();
});

async function put(id: string) {
  const answer = await api.call('PUT', `/api/v1/schedules/${id}`, { target: TARGET, cron: '0 12 * * *' });
  expect(answer.status).toBe(201);
  await api.sql`UPDATE schedules SET created_at = ${iso(40)} WHERE id = ${id}`;
  await api.sql`UPDATE schedule_versions SET at = ${iso(40)} WHERE schedule_id = ${id}`;
}
const backfill = (id: string, from: number, to: number) =>
  api.call('POST', `/api/v1/schedules/${id}/backfill`, { from: iso(from), to: iso(to) });
const runs = (id: string) => api.sql`SELECT id FROM runs WHERE schedule_id = ${id}`;

test('a backfill reaches back to the days that were dropped, and not into them', async () => {
  await put('kept');
  const answer = await backfill('kept', 12, 8);
  expect([answer.status, faultPaths(answer)]).toEqual([422, ['/from']]);
  expect(answer.text).toContain(`is before ${iso(KEPT_DAYS)}`);
  expect(await runs('kept')).toEqual([]);
  const allowed = await backfill('kept', KEPT_DAYS, 8);
  expect([allowed.status, allowed.body['created']]).toEqual([202, 2]);
});

test('one under way while a day of it is dropped records nothing', async () => {
  await put('racing');
  let release: () => void = () => undefined;
  const released = new Promise<void>((resolve) => (release = resolve));
  let isHeld = false;
  const holding = api.sql.begin(async (sql) => {
    await sql`SELECT FROM schedules WHERE id = 'racing' FOR UPDATE`;
    isHeld = true;
    await released;
    await sql`UPDATE history SET dropped_before = ${iso(KEPT_DAYS - 3)}`;
  });
  await until(() => isHeld || null);
  const answering = backfill('racing', KEPT_DAYS - 1, 2);
  await until(async () => {
    const waiting =
      await watcher`SELECT FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'`;
    return waiting.length > 0 || null;
  });
  release();
  await holding;
  const answer = await answering;
  expect([answer.status, faultPaths(answer)]).toEqual([422, ['/from']]);
  expect(answer.text).toContain(`is before ${iso(KEPT_DAYS - 3)}`);
  expect(await runs('racing')).toEqual([]);
  await api.sql`UPDATE history SET dropped_before = ${iso(KEPT_DAYS)}`;
});

test('occurrences of dropped days were missed for retention, whatever this instance keeps', async () => {
  await put('told');
  const { body } = await api.call('GET', `/api/v1/schedules/told/occurrences?from=${iso(12)}&to=${iso(8)}`);
  const items = body['items'] as unknown as { fireAt: string; state: string; reason?: string }[];
  expect(items.map(({ state, reason }) => [state, reason])).toEqual([
    ['missed', 'retention'],
    ['missed', 'retention'],
    ['missed', 'unknown'],
    ['missed', 'unknown'],
  ]);
});

test('a one-off run is not recorded for a day that was dropped', async () => {
  const post = (daysAgo: number) => api.call('POST', '/api/v1/runs', { target: TARGET, runAt: iso(daysAgo) });
  const [dropped, old, kept] = [await post(12), await post(32), await post(9)];
  expect([dropped.status, faultPaths(dropped)]).toEqual([422, ['/runAt']]);
  expect(dropped.text).toContain(`is before ${iso(KEPT_DAYS)}`);
  expect([old.status, faultPaths(old)]).toEqual([422, ['/runAt']]);
  expect(old.text).toContain('FIRELOCK_RETENTION_DAYS');
  expect(kept.status).toBe(201);
});
