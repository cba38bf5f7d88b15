import { sql } from 'drizzle-orm';
import { afterAll, beforeAll, expect, test } from 'vitest';
import type { Definition } from '../../../src/core/schedules/schedule.ts';
import { type Database, openDatabase } from '../../../src/postgres/database.ts';
import {
  type ScheduleFilter,
  listSchedules,
  pageOfSchedules,
} from '../../../src/store/schedules/search/find-schedules.ts';
import { type Api, SCHEDULE, startApi } from '../../api/api.ts';
import { type PlanNode, rowsIn } from '../../support/postgres/plans.ts';
import { type MigratedDatabase, createMigratedDatabase } from '../../support/postgres/migrated-database.ts';

let own: MigratedDatabase;
let database: Database;
let api: Api;

const MANY = 20_000;
const limit = 50;

beforeAll(async () => {
  own = await createMigratedDatabase();
  api = await startApi(own.url);
  database = openDatabase(own.url, 1);
  await api.call('PUT', '/api/v1/schedules/one', SCHEDULE);
  const [one] = await api.sql<{ definition: Definition; uid: string }[]>`
    SELECT s.uid, v.definition FROM schedules s JOIN schedule_versions v ON v.schedule_uid = s.uid`;
  await api.sql`CREATE TABLE many AS SELECT gen_random_uuid() AS uid, 'job-' || lpad(n::text, 6, '0') AS id, n
    FROM generate_series(1, ${MANY}::int) AS n`;
  await api.sql`INSERT INTO schedules (uid, id, version, enabled, timing, zoned, overlap, lane, priority, next_occurrence_at, next_fire_at,
      error, created_at, updated_at)
    SELECT m.uid, m.id, 1, n % 200 <> 0, s.timing, s.zoned, s.overlap, s.lane, s.priority, s.next_occurrence_at,
      CASE WHEN n % 200 <> 0 AND n <> ${MANY - 1}::int THEN s.next_fire_at END, CASE WHEN n = ${MANY - 2}::int THEN 'broken' END,
      s.created_at, s.updated_at
    FROM many m, schedules s WHERE s.uid = ${one?.uid ?? ''}`;
  await api.sql`INSERT INTO schedule_versions (schedule_uid, version, schedule_id, change, at, definition)
    SELECT m.uid, 1, m.id, 'created', clock_timestamp(), ${api.sql.json(one?.definition as never)} FROM many m`;
  await api.sql`VACUUM ANALYZE schedules, schedule_versions`;
});
afterAll(async () => {
  await api.stop();
  await database.close();
  await own.drop();
});

test.each<[what: string, filter: ScheduleFilter, found: number]>([
  ['all', { limit }, limit],
  ['active ones', { limit, statuses: ['active'] }, limit],
  ['paused ones', { limit, statuses: ['paused'] }, limit],
  ['the last paused ones', { limit, enabled: false, after: 'job-012000' }, 40],
  ['the one that has ended', { limit, statuses: ['ended'] }, 1],
  ['the one in error', { limit, statuses: ['error'] }, 1],
  ['those that ended or are in error', { limit, statuses: ['ended', 'error'] }, 2],
  ['a small scope far behind', { limit, within: { from: 'job-0198', end: 'job-0199' } }, limit],
  ['the paused ones of it', { limit, statuses: ['paused'], within: { from: 'job-0198', end: 'job-0199' } }, 1],
  ['active ones that are paused: none', { limit, enabled: false, statuses: ['active'] }, 0],
])('a page of %s, among very many, reads no more than some pages', async (_what, filter, found) => {
  const { read, listed } = await readBy(filter);
  expect(listed).toHaveLength(found);
  expect(read).toBeLessThan(40 * limit);
});

test('one schedule, where very many are late, is read without reading these', async () => {
  await api.sql`INSERT INTO alerts (id, schedule_uid, schedule_id, kind, since, broken_at)
    SELECT gen_random_uuid(), uid, id, 'late', now(), now() FROM many`;
  await api.sql`UPDATE schedules SET outcome_watched = true WHERE id LIKE 'job-0007%'`;
  await api.sql`VACUUM ANALYZE schedules, alerts`;
  const filter = { limit: 1, after: 'job-000776', upTo: 'job-000777' };
  const { read, listed } = await readBy(filter);
  expect(listed).toMatchObject([{ id: 'job-000777', late: true }]);
  expect(read).toBeLessThan(limit);
});

async function readBy(filter: ScheduleFilter) {
  return database.run(async (db) => {
    const [row] = await db.execute<{ 'QUERY PLAN': [{ Plan: PlanNode }] }>(
      sql`EXPLAIN (ANALYZE, FORMAT JSON) ${pageOfSchedules(db, filter)}`,
    );
    return { read: rowsIn(row?.['QUERY PLAN'][0].Plan), listed: await listSchedules(db, filter) };
  });
}
