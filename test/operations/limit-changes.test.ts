import { afterAll, beforeAll, expect, test } from 'vitest';
import type { FirelockEvent } from '../../src/core/events.ts';
import { logEvents } from '../../src/observability/log/log-lines.ts';
import { createLogger } from '../../src/observability/log/logger.ts';
import { putLimit, removeLimit } from '../../src/operations/limit-changes.ts';
import { type Database, openDatabase } from '../../src/postgres/database.ts';
import { createEventBus } from '../../src/runtime/event-bus.ts';
import { type MigratedDatabase, createMigratedDatabase } from '../support/postgres/migrated-database.ts';

let server: MigratedDatabase;
let database: Database;
beforeAll(async () => {
  server = await createMigratedDatabase();
  database = openDatabase(server.url, 2);
});
afterAll(async () => {
  await database.close();
  await server.drop();
});

test('each change of a limit is an event and a line of the log, and a PUT of what is there is none', async () => {
  const events = createEventBus();
  const seen: FirelockEvent[] = [];
  events.subscribe((event) => seen.push(event));
  const lines: string[] = [];
  logEvents(events, createLogger('info', { write: (line: string) => lines.push(line) }));
  const nothing = () => undefined;
  const wake = { effects: nothing, dispatch: nothing, workers: nothing, admission: nothing, alerts: nothing };
  const deps = { database, events, wake, scope: null };
  const few = { id: 'few', description: null, maxRunning: 3 };
  await putLimit(deps, few);
  await putLimit(deps, few);
  await putLimit(deps, { ...few, maxRunning: 5 });
  await removeLimit(deps, 'few');
  await removeLimit(deps, 'few');
  const type = 'limitWritten';
  expect(seen).toEqual([
    { type, limitId: 'few', change: 'created', maxRunning: 3 },
    { type, limitId: 'few', change: 'updated', maxRunning: 5 },
    { type, limitId: 'few', change: 'deleted', maxRunning: null },
  ]);
  expect(lines.map((line) => JSON.parse(line) as object)).toMatchObject([
    { level: 30, msg: 'limit created', limitId: 'few', maxRunning: 3 },
    { level: 30, msg: 'limit updated', limitId: 'few', maxRunning: 5 },
    { level: 30, msg: 'limit deleted', limitId: 'few' },
  ]);
});
