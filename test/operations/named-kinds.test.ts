import { sql } from 'drizzle-orm';
import { afterAll, beforeAll, expect, test } from 'vitest';
import type { FirelockEvent } from '../../src/core/events.ts';
import { logEvents } from '../../src/observability/log/log-lines.ts';
import { createLogger } from '../../src/observability/log/logger.ts';
import { type ConnectionContent, CONNECTION_KIND, LIMIT_KIND } from '../../src/operations/named-kinds.ts';
import { putNamed, removeNamed } from '../../src/operations/named-changes.ts';
import { unknownNamesOf } from '../../src/operations/references.ts';
import { type Database, openDatabase } from '../../src/postgres/database.ts';
import { rowsOf } from '../../src/postgres/sql/rows.ts';
import { type EventBus, createEventBus } from '../../src/runtime/event-bus.ts';
import type { Wake } from '../../src/runtime/loop/wake.ts';
import { type KnownConnection, findChangedConnections } from '../../src/store/connections/find-connections.ts';
import { putLimitOf } from '../support/named.ts';
import { type MigratedDatabase, createMigratedDatabase } from '../support/postgres/migrated-database.ts';
import { SECRETS } from '../support/secrets.ts';
import type { HttpTarget } from '../../src/core/schedules/schedule.ts';
import { ATTACK } from '../support/runner/attack.ts';
import { targetAt } from '../support/targets.ts';
import { until } from '../support/until.ts';

let server: MigratedDatabase;
let database: Database;
beforeAll(async () => {
  server = await createMigratedDatabase();
  database = openDatabase(server.url, 4);
});
afterAll(async () => {
  await database.close();
  await server.drop();
});

const content = (url: string): ConnectionContent => ({
  ...{ description: null, url, urlSeal: null, headers: {}, auth: null, tls: null },
});
const deps = () => ({ database, events: createEventBus(), secrets: SECRETS, scope: null });
const put = (id: string, url = 'https://a.example') =>
  putNamed(deps(), CONNECTION_KIND, id, () => ({ content: content(url) }));
const remove = (id: string) => removeNamed(deps(), CONNECTION_KIND, id);

const noWake = () => undefined;
const WAKE: Wake = { effects: noWake, dispatch: noWake, workers: noWake, admission: noWake, alerts: noWake };

test.each([
  [
    'connection',
    async (to: EventBus, index: number) =>
      putNamed({ ...deps(), events: to }, CONNECTION_KIND, 'logged', () => ({
        content: content(`https://${index}.example`),
      })),
    (to: EventBus) => removeNamed({ ...deps(), events: to }, CONNECTION_KIND, 'logged'),
  ],
  [
    'limit',
    async (to: EventBus, index: number) => putLimitOf({ database, events: to, wake: WAKE }, index, 'logged'),
    (to: EventBus) => removeNamed({ ...deps(), events: to, wake: WAKE }, LIMIT_KIND, 'logged'),
  ],
] as const)(
  'each change of a %s is an event and a line of the log, and a PUT of what is there is none',
  async (noun, write, erase) => {
    const bus = createEventBus();
    const seen: FirelockEvent[] = [];
    bus.subscribe((event) => seen.push(event));
    const lines: string[] = [];
    logEvents(bus, createLogger('info', { write: (line: string) => lines.push(line) }));
    for (const index of [3, 3, 5]) await write(bus, index);
    await erase(bus);
    await erase(bus);
    const changes = [
      { change: 'created', version: 1 },
      { change: 'updated', version: 2 },
      { change: 'deleted', version: 2 },
    ];
    expect(seen).toEqual(changes.map((one) => ({ type: 'namedWritten', noun, id: 'logged', ...one })));
    expect(lines.map((line) => JSON.parse(line) as object)).toMatchObject(
      changes.map(({ change, version }) => ({
        ...{ level: 30, msg: `${noun} ${change}`, [`${noun}Id`]: 'logged', version },
      })),
    );
  },
);

test('a reader learns in one look what has changed, and what is gone', async () => {
  const [kept, edited, gone, again] = await Promise.all(['kept', 'edited', 'gone', 'again'].map((id) => put(id)));
  const known: KnownConnection[] = [kept, edited, gone, again].map(
    (one) => one?.thing ?? { id: '', uid: null, version: null, edition: null },
  );
  const look = () => database.run((db) => findChangedConnections(db, known));
  expect(await look()).toEqual({ changed: [], missing: [] });
  await put('edited', 'https://b.example');
  await remove('gone');
  await remove('again');
  await put('again');
  const { changed, missing } = await look();
  expect(missing).toEqual(['gone']);
  expect(changed.map(({ id, version }) => [id, version]).sort()).toEqual([
    ['again', 1],
    ['edited', 2],
  ]);
  const fresh = { id: 'kept', uid: null, version: null, edition: null };
  const first = await database.run((db) => findChangedConnections(db, [fresh]));
  expect(first).toEqual({ changed: [kept?.thing], missing: [] });
  expect(await database.run((db) => findChangedConnections(db, []))).toEqual({ changed: [], missing: [] });
});

test('what names a connection keeps it until its transaction ends: it may be changed, and is not deleted', async () => {
  await put('named');
  let deletion: Promise<boolean> | undefined;
  await database.transaction(async (tx) => {
    const naming = (connection: string) => ({ limit: null, target: targetAt('/x', { connection }) });
    expect(await unknownNamesOf(tx, ['named', 'missing'], naming, null)).toEqual([
      {
        namer: 'missing',
        path: '/target/connection',
        message: 'names a connection that does not exist: missing',
      },
    ]);
    expect((await put('named', 'https://a.example/v2')).change).toBe('updated');
    deletion = remove('named');
    deletion.catch(() => undefined);
    await until(async () => ((await waiting()) > 0 ? true : null));
    await tx.execute(sql`INSERT INTO schedules (uid, id, version, enabled, timing, zoned, overlap, lane, priority, created_at, updated_at)
      VALUES (gen_random_uuid(), 'namer', 1, false, '{}', false, 'allow', 'http connection named', 1, now(), now())`);
  });
  await expect(deletion).rejects.toThrow('named by schedules namer');
});

/** Statements that wait for a lock of another transaction. */
async function waiting(): Promise<number> {
  const [row] = await database.run((db) =>
    rowsOf<{ count: number }>(db)(sql`SELECT count(*)::int AS count FROM pg_stat_activity
      WHERE datname = current_database() AND wait_event_type = 'Lock'`),
  );
  return row?.count ?? 0;
}

test('the answer names at most a hundred of those that name it', async () => {
  await put('busy');
  await database.run((db) =>
    db.execute(sql`INSERT INTO schedules (uid, id, version, enabled, timing, zoned, overlap, lane, priority, created_at, updated_at)
      SELECT gen_random_uuid(), 'busy-' || lpad(n::text, 3, '0'), 1, false, '{}', false, 'allow', 'http connection busy', 1, now(), now()
      FROM generate_series(1, 101) AS n`),
  );
  const error = (await remove('busy').catch((thrown: unknown) => thrown)) as Error;
  expect(error.message).toMatch(/^the connection is named by schedules busy-001, .*busy-100 and more$/);
});

test(
  'a connection does not move to another origin while a target has values of its own that would go there',
  { tags: [ATTACK] },
  async () => {
    await put('moving');
    const names = async (id: string, target: Partial<HttpTarget<string>>) => {
      const definition = { target: targetAt('/x', { connection: 'moving', ...target }) };
      await database.run((db) =>
        db.execute(sql`WITH s AS (
        INSERT INTO schedules (uid, id, version, enabled, timing, zoned, overlap, lane, priority, created_at, updated_at)
        VALUES (gen_random_uuid(), ${id}, 1, false, '{}', false, 'allow', 'http connection moving', 1, now(), now()) RETURNING uid, id)
        INSERT INTO schedule_versions (schedule_uid, version, schedule_id, change, at, definition)
        SELECT uid, 1, id, 'created', now(), ${JSON.stringify(definition)}::jsonb FROM s`),
      );
    };
    const call = { url: '/y', method: 'GET', headers: {} } as const;
    await names('bare', { lookup: call });
    expect((await put('moving', 'https://b.example')).change).toBe('updated');
    await names('signing', { secret: 'sealed' });
    await names('sending', { headers: { 'X-Key': 'sealed' } });
    await names('asking', { lookup: { ...call, headers: { 'X-Key': 'sealed' } } });
    await names('telling', { cancel: { ...call, headers: { 'X-Key': 'sealed' } } });
    await expect(put('moving', 'https://a.example')).rejects.toThrow(
      'named by schedules asking, sending, signing, telling, whose own header values or signing secret would go to the other origin',
    );
    expect((await put('moving', 'https://b.example/v2')).change).toBe('updated');
  },
);
