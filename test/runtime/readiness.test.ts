import { expect, it } from 'vitest';
import { type Clock, systemClock } from '../../src/runtime/clock.ts';
import { WORKS } from '../../src/core/installation.ts';
import { createEventBus } from '../../src/runtime/event-bus.ts';
import { createLease } from '../../src/runtime/instance-lease.ts';
import { createLoop } from '../../src/runtime/loop/loop.ts';
import { createInstanceState } from '../../src/runtime/instance-state.ts';
import { readinessOf } from '../../src/runtime/readiness.ts';
import { passingClock } from '../support/clocks.ts';
import { until } from '../support/until.ts';
import { installationUnseen } from '../support/working.ts';

const QUIET = installationUnseen();

it('an instance that only observes is ready without a lease, as soon as the database answers, and says what it does', () => {
  const state = createInstanceState(createEventBus(), systemClock);
  state.migrated = true;
  const observes = installationUnseen(true);
  const now = () => readinessOf(state, createLease(systemClock, 10), [], observes);
  expect([now().status, Object.keys(now().checks)]).toEqual([
    'unavailable',
    ['migrations', 'database', 'loops', 'shutdown'],
  ]);
  observes.learn({ ...WORKS, tookOver: null }, true);
  expect([now().status, now().warnings]).toEqual([
    'ready',
    [expect.stringMatching(/only observes \(FIRELOCK_OBSERVE is set\).*take-over.*promote it first/)],
  ]);
});

it('late schedules are a warning, which leaves an instance as ready as it was', () => {
  const events = createEventBus();
  const lease = createLease(systemClock, 10);
  lease.renew(lease.moment());
  const state = createInstanceState(events, systemClock);
  state.migrated = true;
  const sample = {
    type: 'gaugesSampled',
    strandedRuns: 0,
    effectsFailing: 0,
    oldestEffectSeconds: 0,
    zoneData: ['2026c'],
  } as const;
  events.emit({ type: 'schedulesAheadCounted', schedules: 3 });
  expect(readinessOf(state, lease, [], QUIET).warnings).toEqual([
    expect.stringMatching(/^3 schedules were planned while the clock of the database was ahead/),
  ]);
  events.emit({ type: 'schedulesAheadCounted', schedules: 0 });
  events.emit({ ...sample, schedulesLate: 2, calendarsEnding: 0 });
  const { status, warnings } = readinessOf(state, lease, [], QUIET);
  expect(status).toBe('ready');
  expect(warnings).toEqual([expect.stringMatching(/^2 schedules are late: .*late=true/)]);
  events.emit({ ...sample, schedulesLate: 0, calendarsEnding: 1 });
  expect(readinessOf(state, lease, [], QUIET).warnings).toEqual([
    expect.stringMatching(/^1 calendars that schedules exclude end within 90 days/),
  ]);
  events.emit({ ...sample, schedulesLate: 0, calendarsEnding: 0 });
  expect(readinessOf(state, lease, [], QUIET).warnings).toEqual([]);
});

it('notifiers that tell nobody are counted and not named: anybody may read this', () => {
  const events = createEventBus();
  const state = createInstanceState(events, systemClock);
  const sampled = (undelivered: string[], waiting: string[]) => {
    events.emit({ type: 'notifiersSampled', notifiers: { undelivered, waiting } });
    return readinessOf(state, createLease(systemClock, 10), [], QUIET).warnings;
  };
  expect(sampled(['mail', 'oncall'], ['slack'])).toEqual([
    expect.stringMatching(/^notifiers whose last message was not delivered; .*: 2$/),
    expect.stringMatching(/^notifiers of which a message has waited for longer than five minutes: 1$/),
  ]);
  expect(sampled([], [])).toEqual([]);
});

it('rows that a loop has set aside are a warning, until none is left', () => {
  const events = createEventBus();
  const state = createInstanceState(events, systemClock);
  const warnings = () => readinessOf(state, createLease(systemClock, 10), [], QUIET).warnings;
  events.emit({ type: 'rowsSetAside', loop: 'recovery', count: 2 });
  expect(warnings()).toEqual([expect.stringMatching(/^the recovery loop could not write 2 rows/)]);
  events.emit({ type: 'rowsSetAside', loop: 'recovery', count: 0 });
  expect(warnings()).toEqual([]);
});

it('what follows from ends late is a warning as well, and what only waits its turn is none', () => {
  const events = createEventBus();
  const lease = createLease(systemClock, 10);
  const state = createInstanceState(events, systemClock);
  const sampled = (oldestEffectSeconds: number) => {
    const sample = {
      strandedRuns: 0,
      effectsFailing: 0,
      schedulesLate: 0,
      calendarsEnding: 0,
      zoneData: [],
    } as const;
    events.emit({ type: 'gaugesSampled', ...sample, oldestEffectSeconds });
    return readinessOf(state, lease, [], QUIET).warnings;
  };
  expect(sampled(61.4)).toEqual([expect.stringMatching(/^effects of ended runs are late: .* 61 s$/)]);
  expect(sampled(59)).toEqual([]);
});

/** An instance with a lease of 10 s, which `beats` renews. */
function migratedInstance(clock: Clock) {
  const events = createEventBus();
  const lease = createLease(clock, 10);
  const state = createInstanceState(events, clock);
  state.migrated = true;
  const beats = () => lease.renew(lease.moment());
  beats();
  return { events, lease, state, beats };
}

const FULL = Object.assign(new Error('could not extend file'), { code: '53100' });

it.each(['tick', 'dispatch'])(
  'an instance whose %s loop fails for longer than two TTLs is not ready, and says why',
  async (name) => {
    const { clock, pass } = passingClock();
    const { events, lease, state, beats } = migratedInstance(clock);
    let fails = true;
    const body = () => (fails ? Promise.reject(FULL) : Promise.resolve(10));
    const loop = createLoop({ name, clock, events, body });
    const other = createLoop({ name: 'gauges', clock, events, body });
    const now = () => readinessOf(state, lease, [loop, other], QUIET);
    await Promise.all([loop.start(), other.start()]);
    await until(() => loop.failingMs() > 0 || null);
    expect(now()).toMatchObject({
      status: 'ready',
      // The disk is full before anything has failed for long.
      warnings: [expect.stringMatching(/^the disk of the database is full: /)],
    });
    pass(20_000);
    // Other loops may fail for longer.
    expect(readinessOf(state, lease, [other], QUIET).checks['loops']).toBe('ok');
    beats();
    expect(now().status).toBe('unavailable');
    expect(now().checks).toMatchObject({
      ...{ database: 'ok', lease: 'ok' },
      loops: expect.stringMatching(
        `^the ${name} loop has failed for 2\\d s, and nothing fires: the disk of the database is full$`,
      ) as string,
    });
    fails = false;
    await until(() => loop.failingMs() + other.failingMs() === 0 || null);
    expect(now().checks['loops']).toBe('ok');
    await Promise.all([loop.stop(), other.stop()]);
    pass(61_000);
    expect(now().warnings).toEqual([]);
  },
);

it('why no heartbeat was answered stands in the check of the database, for as long as it is the reason', () => {
  const { clock, pass } = passingClock();
  const { events, lease, state, beats } = migratedInstance(clock);
  const database = () => readinessOf(state, lease, [], QUIET).checks['database'];
  const fails = (code: string) =>
    events.emit({ type: 'databaseFailed', error: Object.assign(new Error('no'), { code }) });
  fails('28P01');
  expect(database()).toBe('ok');
  pass(10_000);
  fails('ECONNREFUSED');
  expect(database()).toBe('no heartbeat was answered lately: the database is out of reach');
  fails('28P01');
  expect(database()).toMatch(/^no heartbeat was answered lately: the database refuses the login: its role/);
  fails('3D000');
  expect(database()).toBe('no heartbeat was answered lately: the database does not exist');
  pass(61_000);
  expect(database()).toBe('no heartbeat was answered lately: the database is out of reach or slow');
  beats();
  expect(database()).toBe('ok');
});

it('a purpose without a connection for longer than two TTLs makes an instance not ready, and is named', () => {
  const { clock, pass } = passingClock();
  const { events, lease, state, beats } = migratedInstance(clock);
  const opened = (...without: string[]) => {
    beats();
    events.emit({ type: 'connectionsOpened', without });
    return readinessOf(state, lease, [], QUIET).checks['database'];
  };
  expect(opened('the API', 'background work')).toBe('ok');
  pass(12_000);
  expect(opened('the API')).toBe('ok');
  pass(12_000);
  events.emit({ type: 'databaseFailed', error: Object.assign(new Error('no'), { code: '53300' }) });
  expect(opened('the API', 'background work')).toBe(
    'there is no connection for the API: the database has too many connections',
  );
  expect(opened('background work')).toBe('ok');
});
