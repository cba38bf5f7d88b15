import { expect, it } from 'vitest';
import { createLogger } from '../../../src/observability/log/logger.ts';
import { logEvents } from '../../../src/observability/log/log-lines.ts';
import { createEventBus } from '../../../src/runtime/event-bus.ts';
import { passingClock } from '../../support/passing-clocks.ts';

/** As pino numbers them. */
const [INFO, WARN, ERROR] = [30, 40, 50];

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

it('a trouble of the database that somebody has to mend is said with its reason once a minute, whoever meets it', () => {
  const lines: { level: number; reason?: string; msg: string }[] = [];
  const logger = createLogger('info', { write: (line: string) => lines.push(JSON.parse(line) as never) });
  const events = createEventBus();
  const { clock, pass } = passingClock();
  logEvents(events, logger, clock);
  const failure = (code: string) => Object.assign(new Error(`because of ${code}`), { code });
  const said = () => lines.splice(0).filter(({ level }) => level === ERROR);
  const loopFails = (code: string) =>
    events.emit({ type: 'loopFailed', loop: 'migrations', error: failure(code), retryInMs: 1 });

  for (let tries = 0; tries < 100; tries += 1) loopFails('28P01');
  events.emit({ type: 'databaseFailed', error: failure('28P01') });
  expect(said()).toMatchObject([{ reason: 'because of 28P01' }]);
  events.emit({ type: 'databaseFailed', error: failure('53100') });
  expect(said()).toMatchObject([
    { msg: expect.stringMatching(/^the disk of the database is full: /) as string },
  ]);
  pass(60_000);
  for (let tries = 0; tries < 100; tries += 1) loopFails('28P01');
  expect(said()).toHaveLength(1);
  // What passes by itself is told by the loops.
  for (const code of ['ECONNREFUSED', '57P01', '08006']) loopFails(code);
  expect(said()).toEqual([]);
});
