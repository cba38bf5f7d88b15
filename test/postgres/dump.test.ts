// @module-tag long
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { connect, createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { sql } from 'drizzle-orm';
import type postgres from 'postgres';
import { afterEach, beforeEach, describe, expect, onTestFinished, test } from 'vitest';
import { dumpDatabase, restoreDatabase, TABLES } from '../../src/postgres/dump/dump-database.ts';
import { DumpReader, END_OF_ROWS, lineOf } from '../../src/postgres/dump/dump-file.ts';
import { dayAgo, endedRuns, makePartitions } from '../support/history.ts';
import { databaseOfTest, sqlOfTest, storeOfTest } from '../support/of-test.ts';
import { listenOnLoopback } from '../support/loopback.ts';
import { leaveRuns } from '../support/pending-runs.ts';
import type { Store } from '../support/pipeline.ts';
import { until } from '../support/until.ts';

const { signal } = new AbortController();
/** All that a text of COPY has to escape. */
const AWKWARD = 'a\tb\nc\\d\r\n\\.\n"é" \u{1f512} \\N';

let folder: string;
let path: string;

beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'firelock-dump-'));
  path = join(folder, 'firelock.dump');
});
afterEach(() => rmSync(folder, { recursive: true }));

/** Open and ended runs, of days that have a partition and of one that has none; an effect that is not done. */
async function usedStore(): Promise<Store> {
  const store = await storeOfTest();
  await makePartitions(store, [dayAgo(1), dayAgo(3)]);
  await store.rows(sql`INSERT INTO schedules (uid, id, version, enabled, timing, zoned, overlap, lane, priority, after_on, created_at, updated_at)
    VALUES (gen_random_uuid(), 'awkward', 1, true, 'cron', true, 'allow', 'http http://x', 1, ARRAY[${AWKWARD}], now(), 'infinity')`);
  await store.rows(sql`INSERT INTO schedule_versions (schedule_uid, version, schedule_id, change, at, definition, payload)
    SELECT uid, 1, id, 'created', now(), jsonb_build_object('text', ${AWKWARD}::text, 'n', 1.00000000000000000000001), ${AWKWARD} FROM schedules`);
  await store.rows(
    sql`INSERT INTO run_keys VALUES (gen_random_uuid(), ${AWKWARD}, '\\x00ff5c0a09', gen_random_uuid())`,
  );
  await leaveRuns(store, 'awkward', { count: 50 });
  for (const days of [0, 1, 2, 3]) await endedRuns(store, { endedAt: dayAgo(days), key: AWKWARD }, 20);
  await store.rows(sql`INSERT INTO effects (kind, schedule_uid, schedule_version, schedule_id, trigger, status, finished_at, attempt)
    SELECT 'dependents', uid, 1, id, 'schedule', 'succeeded', clock_timestamp(), 1 FROM schedules`);
  return store;
}

const dump = (url: string, to = path) => dumpDatabase(url, { path: to, version: '1.2.3', signal });
const restore = (url: string, from = path) => restoreDatabase(url, { path: from, signal });

async function contentOf(db: postgres.Sql): Promise<Record<string, string[]>> {
  const all = TABLES.map(async ({ table }) => {
    const rows = await db.unsafe<{ row: string }[]>(`SELECT t::text AS row FROM "${table}" t ORDER BY 1`);
    return [table, rows.map(({ row }) => row)] as const;
  });
  return Object.fromEntries(await Promise.all(all));
}

/** A migrated database that nobody has used, and what it has as such. */
async function unused() {
  const { url } = await databaseOfTest();
  const db = sqlOfTest(url);
  return { url, db, before: await contentOf(db) };
}

test('a dump has every row, and restoring it writes each as it was, with the days of history', async () => {
  const store = await usedStore();
  const from = await contentOf(sqlOfTest(store.url));
  const count = Object.values(from).flat().length;
  expect(count).toBeGreaterThan(130);
  expect(await dump(store.url)).toBe(count);
  const { url, db } = await unused();
  expect(await restore(url)).toBe(count);
  expect(await contentOf(db)).toEqual(from);
  const days = await db<{ day: string }[]>`SELECT inhrelid::regclass::text AS day FROM pg_inherits
    WHERE inhparent = 'history'::regclass ORDER BY 1`;
  const there = await store.rows<{ day: string }>(sql`SELECT inhrelid::regclass::text AS day FROM pg_inherits
    WHERE inhparent = 'history'::regclass ORDER BY 1`);
  expect(days.map(({ day }) => day)).toEqual(expect.arrayContaining(there.map(({ day }) => day)));
  // A new row gets a number that no restored one has.
  const [added] = await db<{ id: string; most: string }[]>`WITH most AS (SELECT max(id) AS most FROM effects)
    INSERT INTO effects (kind, schedule_uid, schedule_version, schedule_id, trigger, status, finished_at, attempt)
    SELECT 'dependents', gen_random_uuid(), 1, '', 'api', 'failed', now(), 1 RETURNING id, (SELECT most FROM most)`;
  expect(BigInt(added?.id ?? 0)).toBe(BigInt(added?.most ?? 0) + 1n);
});

test('a dump is of one moment, whatever is written meanwhile', async () => {
  const store = await usedStore();
  const writer = setInterval(() => void leaveRuns(store, 'awkward').catch(() => undefined), 5);
  const first = await dump(store.url).finally(() => clearInterval(writer));
  const { url, db } = await unused();
  expect(await restore(url)).toBe(first);
  expect(Object.values(await contentOf(db)).flat()).toHaveLength(first);
});

test('no file is overwritten, and none is left where a dump failed', async () => {
  const { url, db } = await unused();
  writeFileSync(path, 'mine');
  await expect(dump(url)).rejects.toThrow(/exists/);
  expect(readFileSync(path, 'utf8')).toBe('mine');
  await db`INSERT INTO firelock_migrations VALUES ('of a later version', now())`;
  onTestFinished(() => db`DELETE FROM firelock_migrations WHERE hash = 'of a later version'`.then(() => undefined));
  // Nor where another fault would come first.
  await expect(dump(url)).rejects.toThrow(/exists/);
  expect(readFileSync(path, 'utf8')).toBe('mine');
  const other = join(folder, 'other');
  await expect(dump(url, other)).rejects.toThrow(/schema of the database is not that of this version/);
  expect(() => readFileSync(other)).toThrow(/ENOENT/);
});

test('where the answer to COMMIT is lost, nobody says that nothing was restored', async () => {
  await dump((await usedStore()).url);
  const { url, db, before } = await unused();
  const [from, to] = [new URL(url), new URL(url)];
  const relay = createServer((client) => {
    const server = connect(Number(from.port), from.hostname).on('error', () => undefined);
    server.pipe(client).on('error', () => undefined);
    client.on('data', (bytes) => {
      server.write(bytes);
      if (bytes.includes('COMMIT\0')) client.destroy();
    });
  });
  onTestFinished(() => void relay.close());
  to.port = String(await listenOnLoopback(relay));
  await expect(restore(to.href)).rejects.toThrow(/did not answer whether it keeps the \d+ rows/);
  await until(async () => JSON.stringify(await contentOf(db)) !== JSON.stringify(before) || null);
});

describe('what cannot be restored leaves the database as it was', () => {
  /** What is wrong with the dump, and what is said of it. */
  const WRONG: [string, (text: string) => string, RegExp][] = [
    ['no dump', () => 'CREATE TABLE x ();\n', /no dump of firelock/],
    ['an empty file', () => '', /cut short/],
    ['one that was cut within its rows', (text) => text.slice(0, text.indexOf(END_OF_ROWS, 2_000) - 5), /cut short/],
    ['one without its last line', (text) => text.slice(0, text.lastIndexOf('{"rows"')), /cut short/],
    [
      'one from which a row was taken',
      (text) => text.replace(/("table":"runs".*\n).*\n/, '$1'),
      /and says that it has/,
    ],
    [
      'a row twice',
      (text) => text.replace(/("table":"schedules".*\n)(.*\n)/, '$1$2$2'),
      /schedules_pkey|duplicate key/,
    ],
    [
      'a table of another version',
      (text) => text.replace('"table":"limits"', '"table":"pg_authid"'),
      /lacks: pg_authid/,
    ],
    ['one of another schema', (text) => text.replace(/"schema":\["/, '"schema":["x'), /those of firelock 1\.2\.3/],
  ];

  test('a file that is wrong, whatever is wrong with it', async () => {
    await dump((await usedStore()).url);
    const text = readFileSync(path, 'utf8');
    const { url, db, before } = await unused();
    for (const [what, change, reason] of WRONG) {
      const changed = change(text);
      expect(changed, what).not.toBe(text);
      writeFileSync(path, changed);
      await expect(restore(url), what).rejects.toThrow(reason);
      expect(await contentOf(db), what).toEqual(before);
    }
    writeFileSync(path, text);
    expect(await restore(url)).toBeGreaterThan(0);
  });

  test('a database that was used', async () => {
    const store = await usedStore();
    await dump(store.url);
    const before = await contentOf(sqlOfTest(store.url));
    await expect(restore(store.url)).rejects.toThrow(/is not empty \(.*effects.*runs.*schedules.*\)/);
    expect(await contentOf(sqlOfTest(store.url))).toEqual(before);
  });
});

test('rows are read whole, wherever the file is cut into pieces', async () => {
  const rows = [0, 1, 2, 3].map((more) => `${'x'.repeat(65_530 + more)}\\\\.\n`);
  for (const table of [rows, [], rows.slice(0, 1), rows.slice(1, 2), rows.slice(2, 3), rows.slice(3), ['\\\\.\n']]) {
    writeFileSync(path, lineOf({ table: 't', columns: [] }) + table.join('') + END_OF_ROWS + lineOf({ rows: 7 }));
    const reader = new DumpReader(path);
    expect(await reader.next()).toEqual({ table: 't', columns: [] });
    let text = '';
    for await (const piece of reader.rows()) text += piece.toString();
    expect(text).toBe(table.join(''));
    expect(await reader.next()).toEqual({ rows: 7 });
    await reader.close();
  }
});
