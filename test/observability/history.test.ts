import { expect, test } from 'vitest';
import { logEvents } from '../../src/observability/log-lines.ts';
import { createLogger } from '../../src/observability/logger.ts';
import { createMetrics } from '../../src/observability/metrics.ts';
import { systemClock } from '../../src/runtime/clock.ts';
import { createEventBus } from '../../src/runtime/event-bus.ts';

const DAY = Date.UTC(2026, 10, 21);
const END = DAY + 86_400_000;

function observed() {
  const events = createEventBus();
  const metrics = createMetrics({
    events,
    clock: systemClock,
    version: '0',
    zoneData: 'a',
    inFlight: () => 0,
    leaseValid: () => true,
  });
  const written: string[] = [];
  logEvents(events, createLogger('info', { write: (line: string) => written.push(line) }));
  return {
    events,
    lines: () => written.map((line) => JSON.parse(line) as { level: number; msg: string }),
    value: async (name: string) => {
      const line = (await metrics.text()).split('\n').find((one) => one.startsWith(`${name} `));
      return line === undefined ? null : Number(line.slice(name.length));
    },
  };
}

test('days that go are told and counted with their runs; rounds that find nothing are not told', async () => {
  const { events, lines, value } = observed();
  events.emit({ type: 'historyDropped', days: [], definitions: 0 });
  events.emit({
    type: 'historyDropped',
    days: [
      { day: END, runs: 300 },
      { day: END + 86_400_000, runs: 21 },
    ],
    definitions: 2,
  });
  expect(await value('firelock_runs_dropped_total')).toBe(321);
  expect(lines()).toMatchObject([
    { level: 30, days: ['2026-11-21', '2026-11-22'], runs: 321, definitions: 2 },
  ]);
});

test('a day that has to stay is told with the runs on whose account, and counted by its reason', async () => {
  const { events, lines, value } = observed();
  const runs = [{ runId: 'r', scheduleId: 's' }];
  events.emit({ type: 'dayKept', day: END, because: 'open', count: 7, runs });
  events.emit({ type: 'dayKept', day: END, because: 'endedLate', count: 0, runs: [] });
  events.emit({ type: 'dayKept', day: END, because: 'needed', count: 1, runs });
  events.emit({ type: 'dayKept', day: END, because: 'locked', count: 0, runs: [] });
  expect(lines()).toMatchObject([
    { level: 40, day: '2026-11-21', because: 'open', count: 7, runs },
    { level: 40, because: 'needed', runs },
    { level: 40, because: 'locked' },
  ]);
  expect(await value('firelock_history_oldest_day_timestamp_seconds')).toBe(null);
  const kept = { open: 2, needed: 0, endedLate: 1, locked: 0 };
  events.emit({ type: 'historySeen', days: 36, oldest: DAY, kept });
  expect(await value('firelock_history_days_kept{reason="open"}')).toBe(2);
  expect(await value('firelock_history_days_kept{reason="needed"}')).toBe(0);
  expect(await value('firelock_history_days')).toBe(36);
  expect(await value('firelock_history_oldest_day_timestamp_seconds')).toBe(DAY / 1000);
});

test('days that cannot be made are told once that lasts, and what is made is a sign of life', async () => {
  const { events, lines, value } = observed();
  const delayed = { type: 'historyDelayed', work: 'make', day: DAY, error: new Error('no lock') } as const;
  events.emit({ ...delayed, forMs: 5_000, lasts: false });
  expect(lines()).toEqual([]);
  events.emit({ ...delayed, forMs: 3_600_000, lasts: true });
  events.emit({ type: 'dayNotMade', day: DAY, runs: 50_000 });
  events.emit({ type: 'loopFailed', loop: 'days', error: new Error('x'), retryInMs: 1 });
  events.emit({ type: 'daysMade', days: [DAY], ahead: 3 });
  expect(lines()).toMatchObject([
    { level: 40, day: '2026-11-21', reason: 'Error: no lock', minutes: 60 },
    { level: 30, day: '2026-11-21', runs: 50_000 },
    { level: 40, loop: 'days' },
    { level: 30, loop: 'days', msg: 'days works again' },
  ]);
  expect(await value('firelock_history_days_ahead')).toBe(3);
});
