import { expect, test } from 'vitest';
import { logEvents } from '../../src/observability/log/log-lines.ts';
import { createLogger } from '../../src/observability/log/logger.ts';
import { createMetrics } from '../../src/observability/metrics/metrics.ts';
import { systemClock } from '../../src/runtime/clock.ts';
import { createEventBus } from '../../src/runtime/event-bus.ts';
import { installationUnseen } from '../support/working.ts';

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
    installation: installationUnseen(),
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
