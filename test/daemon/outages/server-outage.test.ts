// @module-tag long
import { setTimeout as sleep } from 'node:timers/promises';
import postgres from 'postgres';
import { afterAll, afterEach, beforeAll, beforeEach, expect, it } from 'vitest';
import { eachTest, receiverOfTest } from '../../support/of-test.ts';
import { ownCluster } from '../../support/postgres/cluster.ts';
import type { Cluster } from '../../support/postgres/server.ts';
import { type Daemon, readyDaemon } from '../../support/daemon.ts';
import { endedRuns, expectArrived, expectEverySecondPlanned, pauseAll, putEverySecond } from '../../support/fires.ts';
import { until } from '../../support/until.ts';

const SCALED = {
  FIRELOCK_HEARTBEAT_INTERVAL_SECONDS: '1',
  FIRELOCK_INSTANCE_TTL_SECONDS: '4',
  FIRELOCK_RECOVERY_INTERVAL_SECONDS: '1',
};
const SCHEDULES = 10;

let cluster: Cluster;
const receiver = eachTest(receiverOfTest);
/** By a superuser, whom no limit stops. */
let admin: postgres.Sql;
/** As the daemons come: an ordinary role that owns its database. */
let url: URL;
let name: string;

beforeAll(async () => {
  cluster = await ownCluster({ survivesCrashes: true });
});

afterAll(() => cluster.stop());

beforeEach(async () => {
  url = new URL(await cluster.createDatabase());
  name = url.pathname.slice(1);
  admin = postgres(url.href, {
    max: 1,
    onnotice: () => undefined,
    connection: { default_transaction_read_only: false },
  });
  await admin.unsafe(`CREATE ROLE ${name} LOGIN PASSWORD 'daemon'; ALTER DATABASE ${name} OWNER TO ${name}`);
  [url.username, url.password] = [name, 'daemon'];
});

afterEach(() => admin.end());

const start = (): Promise<Daemon> => readyDaemon(url.href, SCALED);

const cutConnections = () =>
  admin`SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE usename = ${name} AND datname = ${name}`;

/** It is alive, says that it is not ready, and refuses what it cannot do, with a reason that names no more than it should. */
async function expectUnavailable(daemon: Daemon, detail: string, method = 'GET'): Promise<void> {
  await until(async () => (await daemon.call('GET', '/readyz')).status === 503 || null);
  const body = { cron: '0 0 1 1 *', target: { type: 'http', url: receiver.url } };
  const answer = await daemon.call(method, '/api/v1/schedules/refused', method === 'GET' ? undefined : body);
  expect(answer.status).toBe(503);
  expect(answer.headers.get('content-type')).toMatch(/^application\/problem\+json/);
  expect(Number(answer.headers.get('retry-after'))).toBeGreaterThan(0);
  expect(answer.body).toEqual({
    type: 'about:blank',
    title: 'Service Unavailable',
    status: 503,
    detail,
  });
  expect(await daemon.call('GET', '/healthz')).toMatchObject({ status: 200, body: { status: 'ok' } });
}

/** Both daemons fire through `fault` and what mends it; afterwards every second is accounted for, each once. */
async function throughAnOutage(fault: (daemons: Daemon[]) => Promise<void>, mend: () => Promise<unknown>) {
  const daemons = [await start(), await start()] as const;
  await putEverySecond(daemons[0], receiver, SCHEDULES);
  await receiver.arrived(2 * SCHEDULES);
  await fault([...daemons]);
  await mend();
  for (const daemon of daemons) await daemon.ready();
  await receiver.arrived(receiver.arrivals.length + 3 * SCHEDULES);
  await pauseAll(daemons[0], SCHEDULES);

  const runs = await endedRuns(admin);
  expect(await expectEverySecondPlanned(admin)).toBe(runs.length);
  for (const run of runs) expect(run).toMatchObject({ status: 'succeeded', failures: 0 });
  expectArrived(receiver, runs);
  for (const daemon of daemons) daemon.signal('SIGTERM');
  expect(await Promise.all(daemons.map(({ exited }) => exited))).toEqual([0, 0]);
}

it('a PostgreSQL that crashes, stays away and comes back ends no daemon, and every fire is made up for', () =>
  throughAnOutage(async (daemons) => {
    await cluster.crash();
    for (const daemon of daemons) await expectUnavailable(daemon, 'the database is out of reach');
    await sleep(2_000);
  }, cluster.restart));

it('a PostgreSQL that crashes and restarts at once, again and again, loses no fire', () =>
  throughAnOutage(
    async () => {
      for (let crash = 0; crash < 5; crash += 1) {
        await cluster.crash();
        await cluster.restart();
        await sleep(300 * crash);
      }
    },
    () => Promise.resolve(),
  ));

it('a database that becomes read-only makes daemons not ready, can still be read, and is written again without a restart', () =>
  throughAnOutage(
    async (daemons) => {
      await admin.unsafe(`ALTER DATABASE ${name} SET default_transaction_read_only = on`);
      await cutConnections();
      for (const daemon of daemons) {
        await expectUnavailable(daemon, 'the database may only be read', 'PUT');
        expect((await daemon.call('GET', '/api/v1/schedules')).status).toBe(200);
      }
    },
    // What was connected meanwhile stays read-only for as long as it lives.
    () => admin.unsafe(`ALTER DATABASE ${name} SET default_transaction_read_only = off`),
  ));

it('daemons wait for a database that takes no more connections', () =>
  throughAnOutage(
    async (daemons) => {
      await admin.unsafe(`ALTER ROLE ${name} CONNECTION LIMIT 0`);
      await cutConnections();
      for (const daemon of daemons) await expectUnavailable(daemon, 'the database has too many connections');
    },
    () => admin.unsafe(`ALTER ROLE ${name} CONNECTION LIMIT -1`),
  ));
