// @module-tag long
import postgres from 'postgres';
import { expect, it, onTestFinished } from 'vitest';
import { isoInstant } from '../../src/core/instant.ts';
import { randomRunId } from '../../src/core/runs/run.ts';
import type { TestDatabase } from '../support/postgres/cluster.ts';
import { createMigratedDatabase } from '../support/postgres/migrated-database.ts';
import { type DaemonHere, daemonHere } from '../support/daemon-here.ts';
import { type RunRow, expectArrived, expectEverySecondPlanned, pauseAll, putEverySecond } from '../support/fires.ts';
import { type Answer, type Receiver, startReceiver } from '../support/receiver.ts';
import { insertRuns } from '../support/run-rows.ts';
import { until } from '../support/until.ts';

const HEALTHY = 3;
/** No two alike, so that in ASCII it is three times as long, and no compression makes it fit an index row. */
const CJK = Array.from({ length: 2000 }, (_, n) => String.fromCodePoint(0x4e00 + ((n * 7919) % 20_000))).join('');
const HOSTILE_LANE = `http https://${CJK}`;

it('a hostname that no index row can take is refused, and if such a lane is stored all the same, the others go on', async () => {
  const database = await createMigratedDatabase();
  onTestFinished(() => database.drop());
  const sql = connect(database);
  // What hangs fills its share of the slots: then its fires are recorded to be claimed later.
  const [healthy, hostile] = [await receive(), await receive(() => undefined)];
  const daemon = await daemonHere(database.url);
  await putEverySecond(daemon, healthy, HEALTHY);

  const refused = await putHostile(daemon, `https://${CJK}/x`);
  expect(refused.status).toBe(400);
  expect(refused.body).toMatchObject({ errors: [{ path: '/target/url' }] });

  expect((await putHostile(daemon, hostile.url)).status).toBe(201);
  await sql`ALTER TABLE schedules DROP CONSTRAINT IF EXISTS schedules_lane`;
  await sql`UPDATE schedules SET lane = ${HOSTILE_LANE} WHERE id = 'hostile'`;
  await leaveHostileRun(sql);
  await until(async () => {
    const { body } = await daemon.call('GET', '/api/v1/schedules/hostile');
    return (body as { status: string }).status === 'error' || null;
  });

  const later = await oneOffIn(daemon, healthy, 1_000);
  const before = healthy.arrivals.length;
  await healthy.arrived(before + 6 * HEALTHY);
  await pauseAll(daemon, HEALTHY);

  const runs = await until(async () => {
    const all = await sql<RunRow[]>`SELECT * FROM all_runs WHERE schedule_id <> 'hostile' ORDER BY id`;
    return all.every(({ status }) => status !== 'pending') ? all : null;
  });
  expect(runs.map(({ id }) => id)).toContain(later);
  const planned = runs.filter(({ schedule_id: id }) => id.startsWith('s'));
  expect(await expectEverySecondPlanned(sql)).toBe(planned.length);
  expectArrived(healthy, runs);
  expect(new Set(runs.map(({ status, attempts }) => `${status} ${attempts}`))).toEqual(new Set(['succeeded 1']));
  expect(healthy.arrivals).toHaveLength(runs.length);
});

function connect({ url }: TestDatabase): postgres.Sql {
  const sql = postgres(url, { max: 1, onnotice: () => undefined });
  onTestFinished(() => sql.end());
  return sql;
}

async function receive(answer?: Answer): Promise<Receiver> {
  const receiver = await startReceiver(answer);
  onTestFinished(() => receiver.close());
  return receiver;
}

function putHostile(daemon: DaemonHere, url: string) {
  return daemon.call('PUT', '/api/v1/schedules/hostile', { everySeconds: 1, target: { type: 'http', url } });
}

/** Due in a moment, as a retry is: it would enter the index of what can be claimed only then. */
async function leaveHostileRun(sql: postgres.Sql): Promise<void> {
  const [schedule] = await sql<{ uid: string }[]>`SELECT uid FROM schedules WHERE id = 's0'`;
  const at = Date.now() + 1_000;
  const row = {
    id: randomRunId(at),
    schedule_uid: schedule?.uid,
    schedule_version: 1,
    schedule_id: 's0',
    trigger: 'manual',
    status: 'pending',
    priority: 1,
    lane: HOSTILE_LANE,
    scheduled_for: isoInstant(at),
    due_at: isoInstant(at),
    created_at: isoInstant(at),
    updated_at: isoInstant(at),
  };
  // The database refuses it; where it did not, what comes due after it would never be claimed.
  await expect(insertRuns(sql, [row])).rejects.toMatchObject({ constraint_name: 'runs_lane' });
}

async function oneOffIn(daemon: DaemonHere, { url }: Receiver, ms: number): Promise<string> {
  const runAt = new Date(Date.now() + ms).toISOString();
  const { status, body } = await daemon.call('POST', '/api/v1/runs', {
    runAt,
    target: { type: 'http', url },
  });
  expect(status).toBe(201);
  return (body as { id: string }).id;
}
