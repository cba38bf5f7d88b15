import postgres from 'postgres';
import { expect, onTestFinished, test } from 'vitest';
import { isoInstant } from '../../src/core/instant.ts';
import { startApi } from '../api/api.ts';
import { firelock } from '../cli/cli.ts';
import { readyDaemon } from '../support/daemon.ts';
import { daemonHere } from '../support/daemon-here.ts';
import { eachTest, databaseOfTest, receiverOfTest, sqlOfTest } from '../support/of-test.ts';
import { ownCluster } from '../support/postgres/cluster.ts';
import type { AnyDaemon } from '../support/programs.ts';
import { migrate } from '../../src/postgres/migrate.ts';
import { LONG } from '../support/runner/long.ts';
import { until } from '../support/until.ts';

const SET = { FIRELOCK_OBSERVE: '1' };
const MINUTE_MS = 60_000;

const receiver = eachTest(receiverOfTest);
/**
 * Schedules for each minute that are due since ten minutes ago; `all` fires each of the fires that it has missed. Answers these, in
 * their order.
 */
async function dueFor10Minutes(url: string, ...schedules: string[]): Promise<number[]> {
  const api = await startApi(url);
  for (const id of schedules) {
    const fields = { cron: '* * * * *', catchUp: 'all', catchUpLimit: 100, overlap: 'allow' };
    const target = { type: 'http', url: `${receiver.url}/${id}` };
    expect((await api.call('PUT', `/api/v1/schedules/${id}`, { ...fields, target })).status).toBe(201);
  }
  await api.sql`UPDATE schedules SET created_at = created_at - interval '1 hour', planned_through = NULL,
    next_occurrence_at = date_trunc('minute', clock_timestamp()) - interval '10 minutes',
    next_fire_at = date_trunc('minute', clock_timestamp()) - interval '10 minutes'`;
  const [row] = await api.sql<{ first: Date }[]>`SELECT min(next_fire_at) AS first FROM schedules`;
  await api.stop();
  const first = row?.first.getTime() ?? NaN;
  return Array.from({ length: 10 }, (_, index) => first + index * MINUTE_MS);
}

/** A run that the other installation may have sent since the database was copied. */
async function recordAtMostOnce(url: string): Promise<void> {
  const api = await startApi(url);
  const target = { type: 'http', url: `${receiver.url}/most` };
  await api.call('PUT', '/api/v1/schedules/most', { cron: '0 0 29 2 *', delivery: 'atMostOnce', target });
  expect((await api.call('POST', '/api/v1/schedules/most/fire', {})).status).toBe(202);
  await api.stop();
}

/** The moments that arrived at the target of a schedule, in their order. */
function firedOf(id: string): number[] {
  return receiver.arrivals
    .filter(({ path }) => path === `/${id}`)
    .map(({ text }) => Date.parse((JSON.parse(text) as { scheduledFor: string }).scheduledFor))
    .sort((a, b) => a - b);
}

const takeOver = (daemon: AnyDaemon, since: string) =>
  firelock(['take-over', '--since', since, '--no-json'], { url: daemon.url });

const observe = (databaseUrl: string, ...more: string[]) => firelock(['observe', ...more], { databaseUrl });

const observing = async (daemon: AnyDaemon) => (await daemon.call('GET', '/api/v1/observing')).body;

test('with FIRELOCK_OBSERVE an instance answers reads, and plans, sends and writes nothing that is due', async () => {
  const { url } = await databaseOfTest();
  await dueFor10Minutes(url, 'seen');
  const sql = sqlOfTest(url);
  const before = await sql`SELECT * FROM schedules`;
  const daemon = await daemonHere(url, SET);
  const ready = await daemon.call('GET', '/readyz');
  expect(JSON.stringify(ready.body)).toContain('only observes (FIRELOCK_OBSERVE is set)');
  expect((await daemon.call('GET', '/api/v1/schedules/seen')).status).toBe(200);
  expect(await observing(daemon)).toMatchObject({ observing: true, because: 'setting', readOnly: false });
  expect(String((await daemon.call('GET', '/metrics')).body)).toContain('firelock_observing 1');
  for (const [method, path, body] of [
    ['POST', '/schedules/seen/fire', {}],
    ['DELETE', '/schedules/seen', undefined],
    ['POST', '/queues/q/claim', { workerId: 'w' }],
    ['POST', '/maintenance', { on: true }],
  ] as const) {
    const { status, body: problem } = await daemon.call(method, `/api/v1${path}`, body);
    expect([path, status, JSON.stringify(problem)]).toEqual([
      path,
      503,
      expect.stringMatching(/only observes .*firelock take-over --since TIME.*without FIRELOCK_OBSERVE/),
    ]);
  }
  // A route that only reads, by another method.
  const preview = { cron: '* * * * *', count: 1 };
  expect((await daemon.call('POST', '/api/v1/preview', preview)).status).toBe(200);
  await daemon.stop();
  expect(await sql`SELECT * FROM schedules`).toEqual(before);
  expect(await sql`SELECT FROM all_runs UNION ALL SELECT FROM instances`).toHaveLength(0);
  expect(receiver.arrivals).toEqual([]);
});

test('a take-over is refused as long as the other instance writes heartbeats, and names it', async () => {
  const { url } = await databaseOfTest();
  const working = await daemonHere(url);
  const observer = await daemonHere(url, SET);
  const [instance] = await sqlOfTest(url)<{ id: string }[]>`SELECT id FROM instances`;
  const refused = await takeOver(observer, '2026-01-01T00:00:00Z');
  expect([refused.code, refused.err]).toEqual([1, expect.stringContaining(instance?.id ?? 'none')]);
  expect(refused.err).toMatch(/\(last heartbeat 20\S+Z, counts for another \d+ s\)/);
  const atWorking = await takeOver(working, '2026-01-01T00:00:00Z');
  expect([atWorking.code, atWorking.err]).toEqual([1, expect.stringContaining('does not observe')]);
  // Nor can they be told to observe.
  const told = await observe(url);
  expect([told.code, told.out]).toEqual([1, expect.stringMatching(/still running, and may be firing/)]);
  expect(await observing(working)).toMatchObject({ observing: false, tookOver: null });
});

test('after a take-over an instance with FIRELOCK_OBSERVE still observes; one without fires', async () => {
  const { url } = await databaseOfTest();
  const [first = 0, , third = 0] = await dueFor10Minutes(url, 'handed');
  const observer = await daemonHere(url, SET);
  const taken = await takeOver(observer, isoInstant(third));
  expect([taken.code, taken.out]).toEqual([
    0,
    expect.stringMatching(/skipped: 2, of 1 schedules[^]*nothing fires yet: start the instances without/),
  ]);
  const again = await takeOver(observer, isoInstant(first));
  expect([again.code, again.err]).toEqual([1, expect.stringContaining('took over already')]);
  await observer.said(/still only observes/);
  expect(receiver.arrivals).toEqual([]);
  await daemonHere(url);
  await until(() => (firedOf('handed').length >= 8 ? true : null));
  expect(firedOf('handed')[0]).toBe(third);
});

test(
  'a restored database that observes fires nothing until the take-over, then each fire since once, and repeats no at-most-once run',
  { tags: [LONG] },
  async () => {
    const { url } = await databaseOfTest();
    const sql = sqlOfTest(url);
    const moments = await dueFor10Minutes(url, 'restored');
    const third = moments[2] ?? 0;
    const told = await observe(url, '--reason', 'a drill');
    expect([told.code, told.out]).toEqual([0, expect.stringContaining('only observe, since')]);
    await recordAtMostOnce(url);
    const daemon = await daemonHere(url);
    expect(await observing(daemon)).toMatchObject({
      observing: true,
      because: 'database',
      reason: 'a drill',
    });
    expect((await daemon.call('POST', '/api/v1/schedules/restored/fire', {})).status).toBe(503);
    expect(await sql`SELECT FROM instances`).toHaveLength(0);
    const future = await takeOver(daemon, '2099-01-01T00:00:00Z');
    expect([future.code, future.err]).toEqual([1, expect.stringContaining('in the future')]);
    const taken = await takeOver(daemon, isoInstant(third));
    expect([taken.code, taken.out]).toEqual([
      0,
      expect.stringMatching(/marked unknown: 1[^]*the instances begin to work within seconds/),
    ]);
    await until(() => (firedOf('restored').length >= 8 ? true : null));
    await until(async () => (JSON.stringify(await observing(daemon)).includes('"observing":false') ? true : null));
    expect(firedOf('restored').slice(0, 8)).toEqual(moments.slice(2));
    expect(new Set(firedOf('restored')).size).toBe(firedOf('restored').length);
    expect(await sql`SELECT status FROM all_runs WHERE schedule_id = 'most'`).toEqual([{ status: 'unknown' }]);
    expect(receiver.arrivals.filter(({ path }) => path === '/most')).toEqual([]);
    expect(await sql`SELECT status, coalesced FROM all_runs WHERE status = 'skipped'`).toEqual([
      { status: 'skipped', coalesced: 1 },
    ]);
    const { body } = await daemon.call('GET', '/api/v1/audit?action=installation.take-over');
    expect(JSON.stringify(body).match(/"outcome":"done"/g)).toHaveLength(1);
  },
);

test(
  'an observer of a hot standby answers reads, takes over only once it is promoted, and not from a server that lives',
  { tags: [LONG] },
  async () => {
    const cluster = await ownCluster();
    onTestFinished(() => cluster.stop());
    const url = await cluster.createDatabase();
    await migrate(url);
    const [, second = 0] = await dueFor10Minutes(url, 'afar');
    const sent = postgres(url, { max: 1, onnotice: () => undefined });
    await sent`INSERT INTO instances (id, host, version, zone_data, ttl_seconds, started_at, heartbeat_at)
    VALUES (gen_random_uuid(), 'other-site', '1', '2026a', 3600, now(), now())`;
    await sent.end();
    await cluster.becomeStandby();
    const observer = await daemonHere(url, SET);
    expect((await observer.call('GET', '/api/v1/schedules/afar')).status).toBe(200);
    expect((await observer.call('GET', '/api/v1/stats')).status).toBe(200);
    expect(await observing(observer)).toMatchObject({ observing: true, readOnly: true });
    const changed = await observer.call('DELETE', '/api/v1/schedules/afar');
    expect([changed.status, JSON.stringify(changed.body)]).toEqual([
      503,
      expect.stringContaining('promote the database'),
    ]);
    const early = await takeOver(observer, isoInstant(second));
    expect([early.code, early.err]).toEqual([1, expect.stringContaining('promote it first')]);
    await cluster.promote();
    const alive = await takeOver(observer, isoInstant(second));
    expect([alive.code, alive.err]).toEqual([1, expect.stringContaining('other-site')]);
    const promoted = sqlOfTest(url);
    await promoted`UPDATE instances SET heartbeat_at = heartbeat_at - interval '2 hours'`;
    const taken = await takeOver(observer, isoInstant(second));
    expect([taken.code, taken.out]).toEqual([0, expect.stringMatching(/skipped: 1, of 1 schedules/)]);
    expect(receiver.arrivals).toEqual([]);
    await daemonHere(url);
    await until(() => (firedOf('afar').length >= 9 ? true : null));
    expect(firedOf('afar')[0]).toBe(second);
  },
);

test(
  'an instance that was frozen while its database began to observe sends nothing when it thaws, and its process ends',
  { tags: [LONG] },
  async () => {
    const { url } = await databaseOfTest();
    const soon = { FIRELOCK_HEARTBEAT_INTERVAL_SECONDS: '1', FIRELOCK_INSTANCE_TTL_SECONDS: '4' };
    const frozen = await readyDaemon(url, soon);
    const target = { type: 'http', url: `${receiver.url}/each` };
    await frozen.call('PUT', '/api/v1/schedules/each', {
      cron: '* * * * * *',
      delivery: 'atMostOnce',
      target,
    });
    await until(() => (firedOf('each').length >= 2 ? true : null));
    frozen.signal('SIGSTOP');
    // Until its heartbeat is too old.
    await until(async () => ((await observe(url)).code === 0 ? true : null));
    const before = firedOf('each');
    const sql = sqlOfTest(url);
    const planned = await sql`SELECT id FROM all_runs ORDER BY id`;
    frozen.signal('SIGCONT');
    expect(await frozen.exited).not.toBe(0);
    expect(frozen.text.out + frozen.text.err).toContain('observes once it is started again');
    expect(firedOf('each')).toEqual(before);
    expect(await sql`SELECT id FROM all_runs ORDER BY id`).toEqual(planned);
    expect(await sql`SELECT FROM instances WHERE died_at IS NULL`).toEqual([]);
  },
);
