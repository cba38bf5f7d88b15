// @module-tag long
import { randomBytes } from 'node:crypto';
import postgres from 'postgres';
import { afterEach, beforeEach, expect, inject, test } from 'vitest';
import { migrate } from '../../src/postgres/migrate.ts';
import { startApi } from '../api/api.ts';
import { eachTest, receiverOfTest } from '../support/of-test.ts';
import { type TestDatabase, createDatabase } from '../support/postgres/cluster.ts';
import { type Daemon, readyDaemon, runCommand } from '../support/daemon.ts';
import type { Arrival } from '../support/receiver.ts';
import { until } from '../support/until.ts';

const EVERY_SECOND = '* * * * * *';
const SCHEDULES = ['least', 'most'];

let database: TestDatabase;
let admin: postgres.Sql;
const receiver = eachTest(receiverOfTest);
/** Copies of the database as it was once: a restored backup each. */
let backups: string[];

beforeEach(async () => {
  database = await createDatabase();
  admin = postgres(inject('postgresUrl'), { max: 1, onnotice: () => undefined });
  backups = [];
});

afterEach(async () => {
  for (const url of backups) await admin`DROP DATABASE ${admin(nameOf(url))} WITH (FORCE)`;
  await admin.end();
  await database.drop();
});

const nameOf = (url: string) => new URL(url).pathname.slice(1);

async function backup(): Promise<string> {
  const name = `test_${randomBytes(6).toString('hex')}`;
  await admin`CREATE DATABASE ${admin(name)} TEMPLATE ${admin(nameOf(database.url))}`;
  const url = new URL(database.url);
  url.pathname = `/${name}`;
  backups.push(url.href);
  return url.href;
}

async function stop(daemon: Daemon): Promise<void> {
  daemon.signal('SIGTERM');
  expect(await daemon.exited).toBe(0);
}

/** Two restored backups of a moment at which no run was open, and what was fired after it. */
async function firedAfterBackup(): Promise<{ restored: [string, string]; fired: Arrival[] }> {
  await migrate(database.url);
  const api = await startApi(database.url);
  for (const [id, delivery] of [
    ['least', 'atLeastOnce'],
    ['most', 'atMostOnce'],
  ] as const) {
    const body = { cron: EVERY_SECOND, delivery, target: { type: 'http', url: `${receiver.url}/${id}` } };
    expect((await api.call('PUT', `/api/v1/schedules/${id}`, body)).status).toBe(201);
  }
  // A database with open connections cannot be copied.
  await api.stop();
  const restored: [string, string] = [await backup(), await backup()];
  const daemon = await readyDaemon(database.url);
  await firedOfEach(3, 0);
  await stop(daemon);
  return { restored, fired: [...receiver.arrivals] };
}

/** Resolves when each schedule was fired that often since so many arrivals. */
function firedOfEach(count: number, since: number): Promise<true> {
  return until(() => {
    const later = receiver.arrivals.slice(since);
    return SCHEDULES.every((id) => later.filter(({ path }) => path === `/${id}`).length >= count) || null;
  });
}

const keyOf = ({ headers }: Arrival) => headers['idempotency-key'];
const keysOf = (arrivals: readonly Arrival[], id: string) =>
  new Set(arrivals.filter(({ path }) => path === `/${id}`).map(keyOf));

test('a restored backup plans again the fires made since: under the same ids, with attempts counted anew', async () => {
  const { restored, fired } = await firedAfterBackup();
  const since = receiver.arrivals.length;
  const daemon = await readyDaemon(restored[0]);
  await until(() => {
    const repeated = new Set(receiver.arrivals.slice(since).map(keyOf));
    return fired.every((one) => repeated.has(keyOf(one))) || null;
  });
  await stop(daemon);
  const later = receiver.arrivals.slice(since);
  for (const before of fired) {
    const [after, ...more] = later.filter((one) => keyOf(one) === keyOf(before));
    expect(more).toEqual([]);
    // A receiver that remembers keys knows it; by its attempt, and by all else of its body, it is as it was the first time.
    expect(after?.body).toEqual(before.body);
    expect(after?.body.attempt).toBe(1);
    expect(after?.headers['webhook-id']).toBe(before.headers['webhook-id']);
    expect(after?.path).toBe(before.path);
  }
});

test('after resume --from-now none of them is sent again, and the skipped ones are among the runs', async () => {
  const { restored, fired } = await firedAfterBackup();
  const [, url] = restored;
  const sql = postgres(url, { max: 1 });
  try {
    const cursors = await sql<{ id: string; at: Date }[]>`
      SELECT id, next_occurrence_at AS at FROM schedules ORDER BY id`;
    expect((await runCommand(url, ['resume', '--from-now'])).code).toBe(0);
    const since = receiver.arrivals.length;
    const daemon = await readyDaemon(url);
    await firedOfEach(3, since);
    await stop(daemon);
    const later = receiver.arrivals.slice(since);
    const skipped = await sql<{ id: string; at: Date; coalesced: number; coalescedFrom: Date }[]>`
      SELECT schedule_id AS id, scheduled_for AS at, coalesced, coalesced_from AS "coalescedFrom" FROM all_runs
      WHERE status = 'skipped' AND reason = 'missed' ORDER BY schedule_id`;
    expect(skipped.map(({ id }) => id)).toEqual(SCHEDULES);
    for (const [index, { id, at, coalesced, coalescedFrom }] of skipped.entries()) {
      const known = keysOf(fired, id);
      expect([...keysOf(later, id)].filter((key) => known.has(key))).toEqual([]);
      // From the cursor of the backup to the skipped run's own moment, and the next one was fired.
      expect(coalescedFrom).toEqual(cursors[index]?.at);
      expect(coalesced).toBe((at.getTime() - coalescedFrom.getTime()) / 1000);
      const moments = later.filter(({ path }) => path === `/${id}`).map(({ body }) => Date.parse(body.scheduledFor));
      expect(Math.min(...moments)).toBe(at.getTime() + 1000);
      const [lastFired] = fired.filter(({ path }) => path === `/${id}`).slice(-1);
      expect(at.getTime()).toBeGreaterThanOrEqual(Date.parse(lastFired?.body.scheduledFor ?? ''));
    }
  } finally {
    await sql.end();
  }
});
