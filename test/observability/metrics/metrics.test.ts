import { expect, test } from 'vitest';
import { Histogram, Registry } from 'prom-client';
import type { FirelockEvent } from '../../../src/core/events.ts';
import type { RunStatus } from '../../../src/core/runs/run.ts';
import { logEvents } from '../../../src/observability/log/log-lines.ts';
import { createLogger } from '../../../src/observability/log/logger.ts';
import { observeInstance } from '../../../src/observability/metrics/metrics.ts';
import { createEventBus } from '../../../src/runtime/event-bus.ts';
import { metricsOf } from '../../support/working.ts';
import { SecondsHistogram } from '../../../src/observability/metrics/metric-kinds.ts';
import { createDatabaseClock } from '../../../src/runtime/clock.ts';
import type { Turning } from '../../../src/runtime/loop/loop.ts';
import type { Database } from '../../../src/postgres/database.ts';
import { settableClock } from '../../api/access/support.ts';

test('skipped and cancelled runs are counted by reason, and stand at 0 before the first', async () => {
  const { events, value } = observed();
  expect(await value('firelock_runs_skipped_total{reason="overlap"}')).toBe(0);
  expect(await value('firelock_runs_cancelled_total{reason="replaced"}')).toBe(0);
  events.emit({ type: 'runsSkipped', reason: 'overlap', count: 2 });
  events.emit({ type: 'runsSkipped', reason: 'overlap', count: 1 });
  events.emit({ type: 'runsSkipped', reason: 'limit', count: 1 });
  events.emit({ type: 'runsCancelled', reason: 'replaced', count: 4 });
  expect(await value('firelock_runs_skipped_total{reason="overlap"}')).toBe(3);
  expect(await value('firelock_runs_skipped_total{reason="limit"}')).toBe(1);
  expect(await value('firelock_runs_skipped_total{reason="missed"}')).toBe(0);
  expect(await value('firelock_runs_cancelled_total{reason="replaced"}')).toBe(4);
});

test('schedules that are paused, and targets that are called, are counted and logged', async () => {
  const { events, value, lines } = observed();
  const event = { type: 'targetCancelled', runId: 'r', scheduleId: 's' } as const;
  expect(await value('firelock_cancel_calls_total{outcome="failed"}')).toBe(0);
  expect(await value('firelock_schedules_paused_total')).toBe(0);
  events.emit({ ...event, accepted: true, error: null });
  events.emit({ ...event, accepted: false, error: 'the target answered 409' });
  events.emit({ type: 'schedulePaused', scheduleId: 's', reason: 'gone' });
  expect(await value('firelock_cancel_calls_total{outcome="accepted"}')).toBe(1);
  expect(await value('firelock_cancel_calls_total{outcome="failed"}')).toBe(1);
  expect(await value('firelock_schedules_paused_total')).toBe(1);
  // A call that was taken is told at debug.
  expect(lines()).toMatchObject([
    { level: 40, runId: 'r', scheduleId: 's', error: 'the target answered 409' },
    { level: 40, scheduleId: 's', reason: 'gone' },
  ]);
});

test('rows that loops have set aside are shown as many as there are now', async () => {
  const { events, value } = observed();
  events.emit({ type: 'rowsSetAside', loop: 'recovery', count: 2 });
  events.emit({ type: 'rowsSetAside', loop: 'expiry', count: 1 });
  events.emit({ type: 'rowsSetAside', loop: 'recovery', count: 0 });
  expect(await value('firelock_rows_set_aside{loop="recovery"}')).toBe(0);
  expect(await value('firelock_rows_set_aside{loop="expiry"}')).toBe(1);
});

test('gauges show the last sample of their kind, and its time', async () => {
  const { metrics, value } = observed();
  const work = {
    oldestPendingSeconds: 1.5,
    strandedRuns: 0,
    schedulesOverdue: 0,
    effectsPending: 7,
    effectsFailing: 1,
    oldestEffectSeconds: 7,
    alertsOpen: { failed: 3 },
    schedulesLate: 0,
    calendarsEnding: 0,
    instancesAlive: 2,
    oldestSnapshotSeconds: 0,
    zoneData: ['2025c', '2026c'],
  };
  metrics.workSampled(work);
  metrics.openRunsCounted({ byStatus: { waiting: 2, pending: 5, running: 0 }, waitingForLimit: 3 });
  metrics.schedulesCounted({ active: 3, paused: 0, ended: 1, error: 0 });
  expect(await value('firelock_runs_open{status="waiting"}')).toBe(2);
  expect(await value('firelock_runs_waiting_for_limit')).toBe(3);
  expect(await value('firelock_schedules{status="ended"}')).toBe(1);
  expect(await value('firelock_effects_pending')).toBe(7);
  expect(await value('firelock_effects_failing')).toBe(1);
  expect(await value('firelock_zone_data_versions')).toBe(2);
  metrics.workSampled({ ...work, zoneData: ['2026c'] });
  expect(await value('firelock_zone_data_versions')).toBe(1);
  for (const kind of ['work', 'runs_open', 'schedules'])
    expect(await value(`firelock_sampled_timestamp_seconds{gauges="${kind}"}`)).toBeGreaterThan(1.7e9);
});

test('differing zone data is logged when it changes, and a sample without instances changes nothing', () => {
  const { events, lines } = observed();
  for (const zoneData of [['a'], ['a', 'b'], ['a', 'b'], [], ['a', 'b'], ['a', 'b', 'c'], ['c'], ['c']]) {
    events.emit({
      type: 'gaugesSampled',
      strandedRuns: 0,
      effectsFailing: 0,
      oldestEffectSeconds: 0,
      schedulesLate: 0,
      calendarsEnding: 0,
      zoneData,
    });
  }
  expect(lines().map(({ level, zoneData }) => [level, zoneData])).toEqual([
    [40, ['a', 'b']],
    [40, ['a', 'b', 'c']],
    [30, 'c'],
  ]);
});

test('a failed loop is logged as working again after a whole pass of its own, and after nothing else', () => {
  const { events, lines } = observed();
  const fail = () => events.emit({ type: 'loopFailed', loop: 'effects', error: new Error('x'), retryInMs: 1 });
  fail();
  // In a pass that then fails.
  events.emit({ type: 'overlapsJudged', count: 1 });
  events.emit({ type: 'loopPassed', loop: 'heartbeat' });
  fail();
  events.emit({ type: 'loopPassed', loop: 'effects' });
  fail();
  expect(lines().map(({ level }) => level)).toEqual([40, 30, 40]);
});

test('an effect that fails is counted and logged each time', async () => {
  const { events, value, lines } = observed();
  const put = { type: 'effectPutOff', kind: 'followers', runId: 'r', scheduleId: 's', error: 'no' } as const;
  expect(await value('firelock_effects_failed_total')).toBe(0);
  events.emit({ ...put, failures: 1, seconds: 5 });
  events.emit({ ...put, failures: 2, seconds: 10 });
  expect(await value('firelock_effects_failed_total')).toBe(2);
  expect(lines()).toMatchObject([
    {
      level: 50,
      kind: 'followers',
      runId: 'r',
      scheduleId: 's',
      error: 'no',
      failures: 1,
      retryInSeconds: 5,
    },
    { level: 50, failures: 2, retryInSeconds: 10 },
  ]);
});

test('runs without a report in time are counted, as ended if they are, and logged in one warning', async () => {
  const { events, value, lines } = observed();
  const runs = (['pending', 'failed', 'unknown'] as const).map((status, index) => ({
    runId: status,
    scheduleId: null,
    attempt: 1,
    workerId: index < 2 ? 'w1' : null,
    settlement: {
      status,
      error: 'nothing was heard of it',
      durationMs: status === 'pending' ? null : 5,
      retryAt: status === 'pending' ? Date.UTC(2026, 10, 20) : null,
      recovered: false,
      inDoubt: false,
    },
  }));
  events.emit({ type: 'runsExpired', runs });
  expect(await value('firelock_completions_expired_total')).toBe(3);
  expect(await value('firelock_runs_failed_total')).toBe(1);
  expect(await value('firelock_runs_unknown_total')).toBe(1);
  expect(await value('firelock_run_duration_seconds_count')).toBe(2);
  expect(lines()).toMatchObject([
    { level: 40, runs: 3, again: 1, failed: 1, unknown: 1, workers: ['w1'] },
    { level: 30, runId: 'pending', workerId: 'w1', retryAt: '2026-11-20T00:00:00.000Z' },
    { level: 40, runId: 'failed' },
    { level: 40, runId: 'unknown', error: 'nothing was heard of it' },
  ]);
  events.emit({ type: 'runsExpired', runs: runs.slice(0, 1) });
  expect(lines().slice(4)).toMatchObject([{ level: 40, runId: 'pending', workerId: 'w1' }]);
});

test('an action that a caller asked for is logged and counted, and no sign of life of a loop', async () => {
  const { events, value, lines } = observed();
  events.emit({ type: 'loopFailed', loop: 'settle', error: new Error('x'), retryInMs: 1 });
  const run = { runId: 'one', scheduleId: 's' };
  events.emit({ type: 'runsCancelled', reason: 'request', count: 1, runId: 'one' });
  events.emit({ type: 'runRetried', ...run, was: 'cancelled' });
  const settlement = { error: null, durationMs: 5, retryAt: null, recovered: true, inDoubt: false };
  const reported = { type: 'runCompleted', ...run, notifierId: null, attempt: 1 } as const;
  events.emit({ ...reported, settlement: { ...settlement, status: 'succeeded' } });
  events.emit({ ...reported, settlement: { ...settlement, status: 'failed' } });
  expect(await value('firelock_runs_cancelled_total{reason="request"}')).toBe(1);
  expect(await value('firelock_runs_retried_total')).toBe(1);
  expect(await value('firelock_runs_succeeded_total')).toBe(1);
  expect(await value('firelock_runs_failed_total')).toBe(1);
  expect(await value('firelock_runs_recovered_total')).toBe(2);
  expect(lines().map(({ level, msg }) => [level, msg])).toEqual([
    [40, 'the settle loop failed; it is retried until it works'],
    [30, 'run cancelled on request'],
    [30, 'run opened again on request'],
    [40, 'run reported as failed'],
  ]);
});

test('messages of notifiers are counted and logged as such, and as no runs', async () => {
  const { events, value, lines } = observed();
  const settled = (status: RunStatus) =>
    events.emit({
      type: 'runSettled',
      ...{ runId: 'm', scheduleId: null, notifierId: 'oncall', attempt: 1 },
      settlement: { status, error: 'no', durationMs: 5, retryAt: null, recovered: false, inDoubt: false },
    });
  for (const status of ['pending', 'succeeded', 'failed'] as const) settled(status);
  const lost = { runId: 'l', scheduleId: null, notifierId: 'oncall', instanceId: 'i' };
  const runs = [
    { ...lost, verdict: 'again' },
    { ...lost, verdict: 'age' },
  ] as const;
  events.emit({ type: 'runsTakenOver', found: 'orphaned', runs });
  expect(await value('firelock_notifications_sent_total')).toBe(1);
  expect(await value('firelock_notifications_failed_total')).toBe(2);
  for (const name of ['succeeded', 'failed', 'lost', 'abandoned'])
    expect(await value(`firelock_runs_${name}_total`)).toBe(0);
  expect(lines().map(({ level, notifierId }) => [level, notifierId])).toEqual([
    [40, 'oncall'],
    [30, 'oncall'],
    [50, 'oncall'],
    [40, undefined],
    [50, 'oncall'],
  ]);
});

test('messages that wait are logged when that changes', () => {
  const { events, lines } = observed();
  for (const waiting of [[], ['a'], ['a'], ['a', 'b'], [], []])
    events.emit({ type: 'notifiersSampled', notifiers: { undelivered: ['c'], waiting } });
  expect(lines().map(({ level, notifierIds }) => [level, notifierIds])).toEqual([
    [40, ['a']],
    [40, ['a', 'b']],
    [30, undefined],
  ]);
});

test('two scrapes in a row give numbers that Prometheus reads, and nothing where nothing was measured', async () => {
  const { metrics } = observed();
  await metrics.text();
  const samples = (await metrics.text()).split('\n').filter((line) => line !== '' && !line.startsWith('#'));
  const values = samples.map((line) => line.slice(line.lastIndexOf(' ') + 1));
  expect(values.filter((value) => !/^(?:-?[\d.]+(?:e[+-]\d+)?|[+-]Inf|NaN)$/.test(value))).toEqual([]);
  expect(samples.filter((line) => line.startsWith('nodejs_eventloop_lag_mean_seconds'))).toEqual([]);
  expect(samples.filter((line) => line.startsWith('nodejs_eventloop_lag_min_seconds'))).toEqual([]);
});

function observed() {
  const events = createEventBus();
  const metrics = metricsOf(events);
  const written: string[] = [];
  logEvents(events, createLogger('info', { write: (line: string) => written.push(line) }));
  return {
    events: events satisfies { emit(event: FirelockEvent): void },
    metrics,
    lines: () => written.map((line) => JSON.parse(line) as Line),
    value: async (name: string) => {
      const line = (await metrics.text()).split('\n').find((one) => one.startsWith(`${name} `));
      return line === undefined ? null : Number(line.slice(name.length));
    },
  };
}

interface Line {
  level: number;
  msg: string;
  zoneData?: unknown;
  notifierId?: string;
  notifierIds?: string[];
}

const NAME = 'a_seconds';
const HELP = 'For a test.';
const BUCKETS = [0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 300, 1800];
// Below all bounds, on one, between two, above all.
const VALUES = [0, 0.004, 0.005, 0.02, 1, 1.5, 299, 1800, 1801, 0.25];

test('a histogram of seconds is scraped as the one of prom-client is', async () => {
  const [ours, theirs] = [new Registry(), new Registry()];
  const own = new SecondsHistogram(ours, NAME, HELP);
  const other = new Histogram({ name: NAME, help: HELP, buckets: BUCKETS, registers: [theirs] });
  expect(await ours.metrics()).toBe(await theirs.metrics());
  for (const value of VALUES) {
    own.observe(value);
    other.observe(value);
  }
  expect(await ours.metrics()).toBe(await theirs.metrics());
});

test('and so is one with a label, which has no series before its first value', async () => {
  const [ours, theirs] = [new Registry(), new Registry()];
  const own = new SecondsHistogram(ours, NAME, HELP, 'target');
  const labelNames = ['target'];
  const other = new Histogram({ name: NAME, help: HELP, labelNames, buckets: BUCKETS, registers: [theirs] });
  expect(await ours.metrics()).toBe(await theirs.metrics());
  for (const [index, value] of VALUES.entries()) {
    const target = index % 3 === 0 ? 'pull' : 'http';
    own.observe(value, target);
    other.observe({ target }, value);
  }
  expect(await ours.metrics()).toBe(await theirs.metrics());
});

test('a scrape says how far the clock is off, how its loops fare, and how many wait for a connection', async () => {
  const { clock, value, databaseClock } = observedInstance({ zoneData: '2025c' });
  expect(await value('firelock_clock_ahead_seconds')).toBe(0);
  databaseClock.sample(clock.now() - 1500, clock.monotonic());
  expect(await value('firelock_clock_ahead_seconds')).toBe(1.5);
  expect(await value('firelock_loop_pass_seconds{loop="tick"}')).toBe(31);
  expect(await value('firelock_loop_failing_seconds{loop="tick"}')).toBe(2);
  expect(await value('firelock_database_connections{pool="main"}')).toBe(5);
  expect(await value('firelock_database_connections_busy{pool="main"}')).toBe(4);
  expect(await value('firelock_database_waiting{pool="main"}')).toBe(3);
  expect(await value('firelock_database_waiting{pool="background"}')).toBeUndefined();
  expect(await value('firelock_database_waiting{pool="foreign"}')).toBeUndefined();
  expect(await value('firelock_zone_data_year')).toBe(2025);
});

test('zone data whose version names no year have none', async () => {
  expect(await observedInstance({ zoneData: 'unknown' }).value('firelock_zone_data_year')).toBeUndefined();
});

function observedInstance({ zoneData }: { zoneData: string }) {
  const clock = settableClock();
  const databaseClock = createDatabaseClock(clock);
  const registry = new Registry();
  const idle = () => Promise.reject(new Error('not asked'));
  const foreign: Database = { run: idle, transaction: idle, close: idle };
  const main: Database = { ...foreign, usage: () => ({ size: 5, busy: 4, waiting: 3 }) };
  const tick: Turning = {
    name: 'tick',
    start: () => undefined,
    stop: () => undefined,
    passes: () => 1,
    inPassMs: () => 31_000,
    failingMs: () => 2_000,
  };
  observeInstance(registry, {
    clock,
    databaseClock,
    pools: { main, background: main, foreign },
    loops: [tick],
    zoneData,
  });
  const value = async (name: string): Promise<number | undefined> => {
    const line = (await registry.metrics()).split('\n').find((one) => one.startsWith(`${name} `));
    return line === undefined ? undefined : Number(line.slice(name.length));
  };
  return { clock, databaseClock, value };
}

const DAY = Date.UTC(2026, 10, 21);
const END = DAY + 86_400_000;

test('dropped days are logged and counted; rounds that find nothing are not logged', async () => {
  const { events, lines, value } = observed();
  events.emit({ type: 'historyDropped', days: [], definitions: 0 });
  expect(await value('firelock_history_days_dropped_total')).toBe(0);
  events.emit({ type: 'historyDropped', days: [DAY, END], definitions: 2 });
  expect(await value('firelock_history_days_dropped_total')).toBe(2);
  expect(lines()).toMatchObject([{ level: 30, days: ['2026-11-21', '2026-11-22'], definitions: 2 }]);
});

test('how far history reaches back is a gauge, once it is known; and so are days that should be gone', async () => {
  const { events, lines, value } = observed();
  expect(await value('firelock_history_oldest_day_timestamp_seconds')).toBe(null);
  const delayed = { type: 'historyDelayed', work: 'drop', day: DAY, error: new Error('no lock') } as const;
  events.emit({ ...delayed, forMs: 0, lasts: false });
  events.emit({ type: 'historySeen', days: 36, oldest: DAY, late: 2 });
  expect(await value('firelock_history_days_late')).toBe(2);
  expect(await value('firelock_history_days')).toBe(36);
  expect(await value('firelock_history_oldest_day_timestamp_seconds')).toBe(DAY / 1000);
  events.emit({ type: 'historySeen', days: 34, oldest: END, late: 0 });
  expect(await value('firelock_history_days_late')).toBe(0);
  expect(await value('firelock_history_oldest_day_timestamp_seconds')).toBe(END / 1000);
  // It goes with the next round.
  expect(lines()).toEqual([]);
});

test('partitions that cannot be created are logged once that lasts, and only a whole pass is a sign of life', async () => {
  const { events, lines, value } = observed();
  const delayed = { type: 'historyDelayed', work: 'create', day: DAY, error: new Error('no lock') } as const;
  events.emit({ ...delayed, forMs: 5_000, lasts: false });
  expect(lines()).toEqual([]);
  events.emit({ ...delayed, forMs: 3_600_000, lasts: true });
  events.emit({ type: 'loopFailed', loop: 'partitions', error: new Error('x'), retryInMs: 1 });
  events.emit({ type: 'partitionsCounted', ahead: 1 });
  expect(await value('firelock_history_days_ahead')).toBe(1);
  events.emit({ type: 'partitionsCounted', ahead: 3 });
  events.emit({ type: 'partitionsCreated', days: [] });
  expect(lines()).toHaveLength(2);
  events.emit({ type: 'loopPassed', loop: 'partitions' });
  expect(lines()).toMatchObject([
    { level: 40, day: '2026-11-21', reason: 'Error: no lock', minutes: 60 },
    { level: 40, loop: 'partitions' },
    { level: 30, loop: 'partitions', msg: 'the partitions loop works again' },
  ]);
  expect(await value('firelock_history_days_ahead')).toBe(3);
});
