import { expect, test } from 'vitest';
import type { FirelockEvent } from '../../src/core/events.ts';
import { logEvents } from '../../src/observability/log-lines.ts';
import { createLogger } from '../../src/observability/logger.ts';
import { createMetrics } from '../../src/observability/metrics.ts';
import { createEventBus } from '../../src/runtime/event-bus.ts';

test('what is skipped or called off is counted by its reason, and stands at 0 before the first', async () => {
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

test('gauges say what the last sample said', async () => {
  const { metrics, value } = observed();
  const sample = {
    schedules: { active: 3, paused: 0, ended: 1, error: 0 },
    openRuns: { waiting: 2, pending: 5 },
    oldestPendingSeconds: 1.5,
    strandedRuns: 0,
    schedulesOverdue: 0,
    instancesAlive: 2,
    zoneData: ['2025c', '2026c'],
  };
  metrics.sampled(sample);
  expect(await value('firelock_runs_open{status="waiting"}')).toBe(2);
  expect(await value('firelock_schedules{status="ended"}')).toBe(1);
  expect(await value('firelock_zone_data_versions')).toBe(2);
  metrics.sampled({ ...sample, zoneData: ['2026c'] });
  expect(await value('firelock_zone_data_versions')).toBe(1);
});

test('differing zone data is told when it changes, and what no instance says changes nothing', () => {
  const { events, lines } = observed();
  for (const zoneData of [['a'], ['a', 'b'], ['a', 'b'], [], ['a', 'b'], ['a', 'b', 'c'], ['c'], ['c']]) {
    events.emit({ type: 'gaugesSampled', strandedRuns: 0, zoneData });
  }
  expect(lines().map(({ level, zoneData }) => [level, zoneData])).toEqual([
    [40, ['a', 'b']],
    [40, ['a', 'b', 'c']],
    [30, 'c'],
  ]);
});

test('a loop that failed is told to work again by its own sign of life, and by no other', () => {
  const { events, lines } = observed();
  const fail = () =>
    events.emit({ type: 'loopFailed', loop: 'overlap', error: new Error('x'), retryInMs: 1 });
  fail();
  events.emit({ type: 'heartbeat', roundTripMs: 1 });
  fail();
  events.emit({ type: 'overlapsJudged', count: 1 });
  fail();
  expect(lines().map(({ level }) => level)).toEqual([40, 30, 40]);
});

function observed() {
  const events = createEventBus();
  const metrics = createMetrics({
    events,
    version: '0',
    zoneData: 'a',
    inFlight: () => 0,
    leaseValid: () => true,
  });
  const written: string[] = [];
  logEvents(events, createLogger('info', { write: (line: string) => written.push(line) }));
  return {
    events: events satisfies { emit(event: FirelockEvent): void },
    metrics,
    lines: () => written.map((line) => JSON.parse(line) as { level: number; zoneData: unknown }),
    value: async (name: string) => {
      const line = (await metrics.text()).split('\n').find((one) => one.startsWith(`${name} `));
      return Number(line?.slice(name.length));
    },
  };
}
