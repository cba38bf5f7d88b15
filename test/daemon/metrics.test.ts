// @module-tag long
import { expect, it } from 'vitest';
import { eachTest, databaseOfTest, receiverOfTest, sqlOfTest } from '../support/of-test.ts';
import { type Daemon, readyDaemon } from '../support/daemon.ts';
import { until } from '../support/until.ts';

/** Those of the contract, and some that alerts and readers rely on. */
const NAMES = (
  'firelock_runs_succeeded_total firelock_runs_failed_total firelock_runs_unknown_total ' +
  'firelock_runs_lost_total firelock_runs_recovered_total firelock_runs_abandoned_total ' +
  'firelock_runs_skipped_total firelock_runs_cancelled_total firelock_cursors_moved_total ' +
  'firelock_handoffs_total firelock_handoff_duration_seconds firelock_run_duration_seconds ' +
  'firelock_fire_lateness_seconds firelock_tick_duration_seconds firelock_fire_locks_total ' +
  'firelock_schedules firelock_runs_open firelock_oldest_pending_seconds ' +
  'firelock_oldest_effect_seconds firelock_schedules_ahead firelock_schedules_late ' +
  'firelock_schedules_overdue firelock_oldest_snapshot_seconds firelock_instances_alive ' +
  'firelock_lease_valid firelock_in_flight_handoffs firelock_zone_data_info ' +
  'firelock_zone_data_versions process_cpu_seconds_total nodejs_eventloop_lag_seconds'
).split(' ');

const database = eachTest(databaseOfTest);
const receiver = eachTest(() =>
  receiverOfTest(({ path, body }, response) => {
    response.statusCode = path === '/bad' ? 400 : path === '/slow-one' && body.attempt === 1 ? 503 : 200;
    response.end('{}');
  }),
);
const sql = eachTest(() => sqlOfTest(database.url));

it('/metrics has what the contract names, counted as the history has it, and fires leave no line in the log', async () => {
  const daemon = await readyDaemon(database.url, { FIRELOCK_HEARTBEAT_INTERVAL_SECONDS: '1' });
  await put(daemon, 'bad', '0 0 1 1 *');
  await put(daemon, 'slow-one', '0 0 1 1 *');
  await put(daemon, 'good', '* * * * * *');
  for (const id of ['bad', 'bad', 'slow-one', 'good']) await daemon.call('POST', `/api/v1/schedules/${id}/fire`);
  await until(() => receiver.arrivals.length >= 10 || null);
  await daemon.call('PATCH', '/api/v1/schedules/good', { enabled: false });

  const [row] = await until(async () => {
    const rows = await sql<Record<'succeeded' | 'failed' | 'open' | 'planned', number>[]>`
      SELECT count(*) FILTER (WHERE status = 'succeeded')::int AS succeeded,
        count(*) FILTER (WHERE status = 'failed')::int AS failed,
        count(*) FILTER (WHERE status = 'pending')::int AS open,
        count(*) FILTER (WHERE trigger = 'schedule')::int AS planned
      FROM all_runs`;
    return rows[0]?.open === 0 ? rows : null;
  });
  const { succeeded, failed, planned } = row ?? { succeeded: NaN, failed: NaN, planned: NaN };
  expect(failed).toBe(2);
  const metrics = await metricsOf(daemon);
  for (const name of NAMES) expect([...metrics.types.keys()]).toContain(name);
  const handoffs = (outcome: string) => `firelock_handoffs_total{target="http",outcome="${outcome}"}`;
  expect(metrics.of('firelock_runs_succeeded_total')).toBe(succeeded);
  expect(metrics.of('firelock_runs_failed_total')).toBe(failed);
  expect(metrics.of(handoffs('accepted'))).toBe(succeeded);
  expect(metrics.of(handoffs('rejected'))).toBe(failed);
  expect(metrics.of(handoffs('transient'))).toBe(1);
  expect(metrics.of('firelock_handoff_duration_seconds_count{target="http"}')).toBe(receiver.arrivals.length);
  expect(metrics.of('firelock_run_duration_seconds_count')).toBe(succeeded + failed);
  expect(metrics.of('firelock_fire_lateness_seconds_count')).toBe(succeeded + failed);
  expect(metrics.of('firelock_fire_locks_total{outcome="acquired"}')).toBeLessThanOrEqual(planned);
  expect(metrics.of('firelock_fire_locks_total{outcome="expired"}')).toBe(0);
  expect(metrics.of('firelock_in_flight_handoffs')).toBe(0);
  expect(metrics.of('firelock_lease_valid')).toBe(1);
  expect(metrics.of(`firelock_zone_data_info{version="${process.versions['tz'] ?? ''}"}`)).toBe(1);
  expect(metrics.text).not.toMatch(/"(bad|slow-one|good)"/);
  await until(async () => ((await metricsOf(daemon)).of('firelock_schedules{status="paused"}') === 1 ? true : null));
  const sampled = await metricsOf(daemon);
  expect(sampled.of('firelock_schedules{status="active"}')).toBe(2);
  expect(sampled.of('firelock_instances_alive')).toBe(1);
  expect(sampled.of('firelock_zone_data_versions')).toBe(1);
  expect(sampled.of('firelock_runs_open{status="waiting"}')).toBe(0);
  expect(sampled.of('firelock_runs_open{status="pending"}')).toBe(0);

  daemon.signal('SIGTERM');
  expect(await daemon.exited).toBe(0);
  expect(daemon.log()).toHaveLength(daemon.lines.length);
  const ofRuns = daemon.log().filter((line) => 'runId' in line);
  expect(ofRuns.map(({ level, msg, scheduleId }) => ({ level, msg, scheduleId }))).toEqual(
    expect.arrayContaining([
      { level: 40, msg: 'run failed', scheduleId: 'bad' },
      { level: 30, msg: 'an attempt failed; another one follows', scheduleId: 'slow-one' },
    ]),
  );
  expect(ofRuns).toHaveLength(3);
});

async function put(daemon: Daemon, id: string, cron: string): Promise<void> {
  const answer = await daemon.call('PUT', `/api/v1/schedules/${id}`, {
    cron,
    target: { type: 'http', url: `${receiver.url}/${id}` },
    retry: { minBackoffSeconds: 1 },
  });
  expect(answer.status).toBe(201);
}

async function metricsOf(daemon: Daemon) {
  const { status, headers, body } = await daemon.call('GET', '/metrics');
  expect(status).toBe(200);
  expect(headers.get('content-type')).toMatch(/^text\/plain; version=0\.0\.4/);
  const text = String(body);
  const types = new Map([...text.matchAll(/^# TYPE (\S+) (\S+)$/gm)].map(([, name, type]) => [name, type]));
  const values = new Map([...text.matchAll(/^([^#\s]\S*) (\S+)$/gm)].map(([, name, value]) => [name, value]));
  return { text, types, of: (name: string) => Number(values.get(name) ?? NaN) };
}
