import { expect, it } from 'vitest';
import { sql } from 'drizzle-orm';
import { createLogger } from '../../../src/observability/log/logger.ts';
import { logEvents } from '../../../src/observability/log/log-lines.ts';
import { createEventBus } from '../../../src/runtime/event-bus.ts';
import { passingClock } from '../../support/clocks.ts';
import { openDatabase } from '../../../src/postgres/database.ts';
import { createDatabase } from '../../support/postgres/cluster.ts';

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
  expect(said()).toMatchObject([{ msg: expect.stringMatching(/^the disk of the database is full: /) as string }]);
  pass(60_000);
  for (let tries = 0; tries < 100; tries += 1) loopFails('28P01');
  expect(said()).toHaveLength(1);
  // What passes by itself is told by the loops.
  for (const code of ['ECONNREFUSED', '57P01', '08006']) loopFails(code);
  expect(said()).toEqual([]);
});

it('a failed query is logged with its reason and its place, without its data', async () => {
  const { url, drop } = await createDatabase();
  const database = openDatabase(url, 1);
  const lines: string[] = [];
  const logger = createLogger('info', { write: (line: string) => lines.push(line) });
  const failing = database.run((db) => db.execute(sql`SELECT ${'Bearer TOPSECRET42'}::text FROM no_such_table`));
  logger.error({ err: await failing.catch((error: unknown) => error) }, 'it failed');
  await database.close();
  await drop();
  const [line = '', ...others] = lines;
  expect(others).toEqual([]);
  expect(line).not.toContain('TOPSECRET42');
  const logged = JSON.parse(line) as { pid: number; err: { reason: string; stack: string } };
  expect(logged.pid).toBe(process.pid);
  expect(logged.err.reason).toContain('no_such_table');
  expect(logged.err.stack).toContain('database.ts');
});
