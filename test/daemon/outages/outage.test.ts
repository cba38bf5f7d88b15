// @module-tag long
import type { ServerResponse } from 'node:http';
import { setTimeout as sleep } from 'node:timers/promises';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { eachTest, databaseOfTest, receiverOfTest, sqlOfTest } from '../../support/of-test.ts';
import { type Daemon, readyDaemon, startDaemon } from '../../support/daemon.ts';
import { endedRuns, expectArrived, expectEverySecondPlanned, pauseAll, putEverySecond } from '../../support/fires.ts';
import { type PostgresProxy, startPostgresProxy } from '../../support/postgres/postgres-proxy.ts';
import { until } from '../../support/until.ts';

interface RunRow {
  id: string;
  schedule_id: string;
  scheduled_for: Date;
  status: string;
  trigger: string;
  attempts: number;
  failures: number;
  coalesced: number;
}

const database = eachTest(databaseOfTest);
const receiver = eachTest(() =>
  receiverOfTest(({ path }, response) => {
    if (path === '/slow') owed.push(response);
    else response.end('{}');
  }),
);
const sql = eachTest(() => sqlOfTest(database.url));
let proxy: PostgresProxy;
/** Answers that the receiver holds back: those to /slow. */
let owed: ServerResponse[];

beforeEach(() => {
  owed = [];
});

afterEach(async () => {
  await proxy.close();
});

const put = (daemon: Daemon, id: string, cron: string) =>
  daemon.call('PUT', `/api/v1/schedules/${id}`, {
    cron,
    target: { type: 'http', url: `${receiver.url}/${id}` },
  });

async function expectOutOfReach(daemon: Daemon): Promise<void> {
  expect((await daemon.call('GET', '/healthz')).status).toBe(200);
  const answer = await daemon.call('GET', '/api/v1/schedules');
  expect(answer.status).toBe(503);
  expect(answer.headers.get('content-type')).toMatch(/^application\/problem\+json/);
  expect(Number(answer.headers.get('retry-after'))).toBeGreaterThan(0);
  expect(answer.body).toMatchObject({ status: 503, title: 'Service Unavailable' });
}

/** Log lines about what the daemon does by itself; not about requests. */
function warnings(daemon: Daemon) {
  return daemon.log().filter((line) => line.level >= 40 && !('reqId' in line));
}

describe.each(['refuse', 'hang'] as const)('a database that does not answer (%s)', (how) => {
  it('at the start makes the daemon wait, with one line that says so, and it fires once the database is there', async () => {
    proxy = await startPostgresProxy(database.url, { interrupted: how });
    const daemon = await startDaemon({ DATABASE_URL: proxy.url });
    await daemon.logged(/^the migrations loop failed/);
    await sleep(2_000);
    expect(await daemon.call('GET', '/readyz')).toMatchObject({
      status: 503,
      body: { status: 'unavailable', checks: { migrations: expect.stringContaining('database') as string } },
    });
    await expectOutOfReach(daemon);
    expect(warnings(daemon)).toHaveLength(1);

    await proxy.restore();
    await daemon.ready();
    expect((await put(daemon, 'fast', '* * * * * *')).status).toBe(201);
    await receiver.arrived(2);
    daemon.signal('SIGTERM');
    expect(await daemon.exited).toBe(0);
  });

  it('at the start keeps no process from leaving', async () => {
    proxy = await startPostgresProxy(database.url, { interrupted: how });
    const daemon = await startDaemon({ DATABASE_URL: proxy.url });
    await until(() => proxy.connections() > 0 || how === 'refuse' || null);
    daemon.signal('SIGTERM');
    expect(await daemon.exited).toBe(0);
  });

  it('for a while ends no process, loses no outcome and no fire, and repeats none', async () => {
    proxy = await startPostgresProxy(database.url);
    const daemon = await readyDaemon(proxy.url);
    await put(daemon, 'fast', '* * * * * *');
    await put(daemon, 'slow', '0 0 1 1 *');
    await daemon.call('POST', '/api/v1/schedules/slow/fire');
    await receiver.arrived(3);
    await until(() => owed.length === 1 || null);

    await proxy.interrupt(how);
    const interrupted = Date.now();
    await sleep(1_000);
    for (const response of owed) response.end('{}');
    await expectOutOfReach(daemon);
    await until(async () => (await daemon.call('GET', '/readyz')).status === 503 || null);
    await sleep(Math.max(0, interrupted + 9_000 - Date.now()));
    const seen = receiver.arrivals.length;
    await proxy.restore();
    const restored = Date.now();

    await daemon.ready();
    await receiver.arrived(seen + 12);
    await daemon.call('PATCH', '/api/v1/schedules/fast', { enabled: false });
    const runs = await until(async () => {
      const rows = await sql<RunRow[]>`SELECT * FROM all_runs ORDER BY scheduled_for`;
      return rows.every(({ status }) => status !== 'pending') ? rows : null;
    });
    for (const run of runs) {
      expect(run).toMatchObject({ status: 'succeeded', attempts: 1, failures: 0, coalesced: 0 });
    }
    expect(await sql`SELECT id FROM all_runs WHERE attempt_log IS NOT NULL`).toEqual([]);
    expect(receiver.arrivals.map(({ body }) => body.runId).sort()).toEqual(runs.map(({ id }) => id).sort());
    const fires = runs.filter((run) => run.schedule_id === 'fast').map((run) => run.scheduled_for.getTime());
    for (const [index, at] of fires.slice(1).entries()) expect(at - (fires[index] ?? NaN)).toBe(1000);
    expect(fires.filter((at) => at > interrupted && at < restored).length).toBeGreaterThanOrEqual(8);

    const perLoop = Map.groupBy(warnings(daemon), (line) => line['loop']);
    expect([...perLoop.keys()]).toEqual(expect.arrayContaining(['heartbeat', 'tick', 'settle']));
    const repeated = [...perLoop.values()].filter(({ length }) => length > 1);
    expect(repeated).toEqual([]);
    daemon.signal('SIGTERM');
    expect(await daemon.exited).toBe(0);
  });

  it('keeps no daemon from leaving in the time that a container gives it', async () => {
    proxy = await startPostgresProxy(database.url);
    const daemon = await readyDaemon(proxy.url, { FIRELOCK_SHUTDOWN_SECONDS: '1' });
    await put(daemon, 'fast', '* * * * * *');
    await receiver.arrived(1);
    await proxy.interrupt(how);
    daemon.signal('SIGTERM');
    // A container kills it after 11 s, and it takes 9 s at most. A busy machine gets twice that: a wait for the time limit of a
    // transaction would still take longer.
    const kill = setTimeout(() => daemon.signal('SIGKILL'), 20_000);
    expect(await daemon.exited, daemon.lines.join('\n')).toBe(0);
    clearTimeout(kill);
  });
});

it('connections that are cut at any point end no process, lose no fire, and no run is sent twice', async () => {
  proxy = await startPostgresProxy(database.url);
  const daemon = await readyDaemon(database.url, { FIRELOCK_RECOVERY_INTERVAL_SECONDS: '1' });
  await putEverySecond(daemon, receiver, 20);
  for (let cut = 0; cut < 100; cut += 1) {
    await sleep(50);
    await sql`SELECT pg_terminate_backend(pid) FROM pg_stat_activity
      WHERE datname = current_database() AND application_name = 'firelock' AND pid <> pg_backend_pid()`;
  }
  await daemon.ready();
  const seen = receiver.arrivals.length;
  await receiver.arrived(seen + 40);
  await pauseAll(daemon, 20);
  // A statement whose answer was cut off may have claimed what its instance does not know of: recovery finds that.
  const runs = await endedRuns(sql);
  expect(await expectEverySecondPlanned(sql)).toBe(runs.length);
  for (const run of runs) expect(run).toMatchObject({ status: 'succeeded', failures: 0 });
  expectArrived(receiver, runs);
  expect(receiver.arrivals).toHaveLength(runs.length);
  daemon.signal('SIGTERM');
  expect(await daemon.exited).toBe(0);
});
