import { expect, it } from 'vitest';
import { createLogger } from '../../../src/observability/log/logger.ts';
import { logEvents } from '../../../src/observability/log/log-lines.ts';
import { createEventBus } from '../../../src/runtime/event-bus.ts';

/** As pino numbers them. */
const [INFO, WARN] = [30, 40];

it('one outage is one warning about handoffs that could not start, and the next heartbeat tells how many there were', () => {
  const lines: { level: number; count?: number }[] = [];
  const logger = createLogger('info', { write: (line: string) => lines.push(JSON.parse(line) as never) });
  const events = createEventBus();
  logEvents(events, logger);
  const error = new Error('connect ECONNREFUSED');
  const notStarted = (count: number) => events.emit({ type: 'handoffsNotStarted', count, error });
  const heartbeat = () => events.emit({ type: 'heartbeat', roundTripMs: 1 });
  const told = () => lines.splice(0).map(({ level, count }) => [level, count]);

  notStarted(64);
  for (let batch = 0; batch < 100; batch += 1) notStarted(64);
  expect(told()).toEqual([[WARN, 64]]);
  heartbeat();
  heartbeat();
  expect(told()).toEqual([[INFO, 101 * 64]]);
  notStarted(1);
  expect(told()).toEqual([[WARN, 1]]);
});
