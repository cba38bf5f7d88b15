import { expect, test } from 'vitest';
import { sql } from 'drizzle-orm';
import { readMigrationFiles } from 'drizzle-orm/migrator';
import { randomRunId, scheduledForOf } from '../../src/core/run.ts';
import { createDaysAhead } from '../../src/recovery/days-ahead.ts';
import { systemClock } from '../../src/runtime/clock.ts';
import { createEventBus } from '../../src/runtime/event-bus.ts';
import { openDatabase } from '../../src/store/database.ts';
import { DAY_MS, dayOf } from '../../src/core/history-day.ts';
import { migrate } from '../../src/store/migrate.ts';
import { rowsOf } from '../../src/store/rows.ts';
import { findRun } from '../../src/store/runs.ts';
import { createDatabase } from '../support/cluster.ts';
import { until } from '../support/until.ts';

/** How many migrations there were before history was kept by day. */
const BEFORE = 6;

test('runs of a schema that did not keep them by day are all there afterwards, as they were, and found by their ids', async () => {
  const { url, drop } = await createDatabase();
  const database = openDatabase(url, 2);
  const rows = <Row extends object>(statement: string) =>
    database.run((db) => rowsOf<Row>(db, sql.raw(statement)));
  const migrations = readMigrationFiles({ migrationsFolder: 'drizzle' });
  await rows('CREATE TABLE firelock_migrations (hash text PRIMARY KEY, applied_at timestamptz(3) NOT NULL)');
  for (const { sql: statements, hash } of migrations.slice(0, BEFORE)) {
    for (const statement of statements) await rows(statement);
    await rows(`INSERT INTO firelock_migrations VALUES ('${hash}', clock_timestamp())`);
  }
  const today = dayOf(Date.now());
  const times = [
    Date.UTC(2000, 0, 1),
    today - 400 * DAY_MS,
    today - 1,
    today,
    Date.now(),
    today + DAY_MS - 1,
    today + DAY_MS,
    today + 2 * DAY_MS,
    today + 30 * DAY_MS,
    Date.UTC(2099, 11, 31),
  ];
  const ids = times.map(randomRunId);
  for (const id of ids) {
    const at = `'${new Date(scheduledForOf(id)).toISOString()}'`;
    await rows(`INSERT INTO runs (id, scheduled_for, schedule_uid, schedule_version, schedule_id, trigger, status, lane, priority,
        due_at, attempts, key, own_payload, coalesced, created_at, updated_at)
      VALUES ('${id}', ${at}, gen_random_uuid(), 3, 's', 'schedule', 'pending', 'http http://127.0.0.1', 1, ${at}, 1, 'k', '{"a": 1.0}', 2, ${at}, ${at})`);
    await rows(`INSERT INTO attempts (run_id, scheduled_for, attempt, instance_id, started_at, finished_at, outcome, recovery)
      VALUES ('${id}', ${at}, 1, gen_random_uuid(), ${at}, ${at}, 'transient', false)`);
  }
  const all = async () => [
    await rows('SELECT * FROM runs ORDER BY id'),
    await rows('SELECT * FROM attempts ORDER BY run_id'),
  ];
  const before = await all();
  expect(await migrate(url)).toBe(migrations.length - BEFORE);
  expect(await all()).toEqual(before);

  const events = createEventBus();
  let isMade = false;
  events.subscribe(({ type }) => (isMade ||= type === 'daysMade'));
  const days = createDaysAhead({ database, schemaDatabase: database, clock: systemClock, events });
  await days.start();
  await until(() => isMade || null);
  await days.stop();
  expect(await all()).toEqual(before);
  for (const id of ids) expect((await database.run((db) => findRun(db, id)))?.id).toBe(id);
  const tables = await rows<{ name: string }>(
    'SELECT DISTINCT tableoid::regclass::text AS name FROM runs ORDER BY name',
  );
  const nameOf = (at: number) => `runs_${new Date(at).toISOString().slice(0, 10).replaceAll('-', '')}`;
  expect(tables.map(({ name }) => name)).toEqual([
    nameOf(today + DAY_MS),
    nameOf(today + 2 * DAY_MS),
    'runs_before_days',
    'runs_other',
  ]);
  await database.close();
  await drop();
});
