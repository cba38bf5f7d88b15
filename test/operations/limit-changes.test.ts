import { afterAll, beforeAll, expect, test } from 'vitest';
import type { FirelockEvent } from '../../src/core/events.ts';
import { logEvents } from '../../src/observability/log/log-lines.ts';
import { createLogger } from '../../src/observability/log/logger.ts';
import { LIMIT_KIND } from '../../src/operations/limit-changes.ts';
import { removeNamed } from '../../src/operations/named-changes.ts';
import { type Database, openDatabase } from '../../src/postgres/database.ts';
import { createEventBus } from '../../src/runtime/event-bus.ts';
import { putLimitOf } from '../support/named.ts';
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
  for (const maxRunning of [3, 3, 5]) await putLimitOf(deps, maxRunning, 'few');
  await removeNamed(deps, LIMIT_KIND, 'few');
  await removeNamed(deps, LIMIT_KIND, 'few');
  const about = { type: 'namedWritten', noun: 'limit', id: 'few' };
  expect(seen).toEqual([
    { ...about, change: 'created', version: 1 },
    { ...about, change: 'updated', version: 2 },
    { ...about, change: 'deleted', version: 2 },
  ]);
  expect(lines.map((line) => JSON.parse(line) as object)).toMatchObject([
    { level: 30, msg: 'limit created', limitId: 'few', version: 1 },
    { level: 30, msg: 'limit updated', limitId: 'few', version: 2 },
    { level: 30, msg: 'limit deleted', limitId: 'few' },
  ]);
});
