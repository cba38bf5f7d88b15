import { describe, expect, it, test } from 'vitest';
import { cronTimes } from '../../../src/core/cron/cron.ts';
import { normalSpelling } from '../../../src/core/cron/cron-parse.ts';
import { movesTimes } from '../../../src/core/time/definition-change.ts';
import { readTiming, timingText } from '../../../src/core/schedules/stored-definition.ts';
import { dependsOnIdentity, fireTimes } from '../../../src/core/time/fire-times.ts';
import { at, firesAfter, timingOf } from '../time/support.ts';

describe('several expressions', () => {
  it.each([
    {
      what: 'each of them, in order',
      cron: ['0 9 * * MON-FRI', '0 11 * * SAT'],
      zone: 'UTC',
      from: '2026-11-20T00:00:00Z',
      fires: ['2026-11-20T09:00:00Z', '2026-11-21T11:00:00Z', '2026-11-23T09:00:00Z'],
    },
    {
      what: 'once where they coincide',
      cron: ['0 * * * *', '*/30 * * * *', '0 12 * * *'],
      zone: 'UTC',
      from: '2026-11-20T11:30:00Z',
      fires: ['2026-11-20T12:00:00Z', '2026-11-20T12:30:00Z', '2026-11-20T13:00:00Z'],
    },
    {
      what: 'where the clocks jump: swallowed by one, due by another, one fire',
      cron: ['30 2 * * *', '0 3 * * *', '0 * * * *'],
      zone: 'Europe/Berlin',
      from: '2027-03-28T00:00:00Z',
      fires: ['2027-03-28T01:00:00Z', '2027-03-28T02:00:00Z'],
    },
    {
      what: 'in a repeated hour: one by real time, the other on the first pass only',
      cron: ['30 * * * *', '15 2 * * *'],
      zone: 'Europe/Berlin',
      from: '2027-10-31T00:00:00Z',
      fires: ['2027-10-31T00:15:00Z', '2027-10-31T00:30:00Z', '2027-10-31T01:30:00Z', '2027-10-31T02:30:00Z'],
    },
    {
      what: 'whatever years one of them waits',
      cron: ['0 0 29 2 *', '0 0 1 1 *'],
      zone: 'UTC',
      from: '2026-11-20T00:00:00Z',
      fires: ['2027-01-01T00:00:00Z', '2028-01-01T00:00:00Z', '2028-02-29T00:00:00Z', '2029-01-01T00:00:00Z'],
    },
  ])('fire $what', ({ cron, zone, from, fires }) => {
    expect(firesAfter(cron, zone, from, fires.length)).toEqual(fires);
  });

  it('answer the same whatever was asked before', () => {
    const cron = ['0 2 * * 1', '30 2 * * *', '*/7 5 31 * *'];
    const times = cronTimes(cron, 'Europe/Berlin', '');
    const days = ['2027-06-01', '2026-03-28', '2099-12-31', '2026-03-28', '2026-03-27', '2027-06-01'];
    const asked = days.flatMap((day) => [at(`${day}T00:00:00Z`), at(`${day}T01:00:00Z`), at(`${day}T00:30:00Z`)]);
    expect(asked.map((moment) => times.next(moment))).toEqual(
      asked.map((moment) => cronTimes(cron, 'Europe/Berlin', '').next(moment)),
    );
  });

  it('report that the clocks moved a fire if they moved it for any of them', () => {
    const gap = at('2027-03-28T01:00:00Z');
    for (const cron of [
      ['0 * * * *', '30 2 * * *'],
      ['30 2 * * *', '0 * * * *'],
    ])
      expect(cronTimes(cron, 'Europe/Berlin', '').noteOf(gap)).toBe('moved by DST');
    const both = cronTimes(['0 * * * *', '0 3 * * *'], 'Europe/Berlin', '');
    expect(both.noteOf(gap)).toBeNull();
    expect(both.noteOf(at('2027-10-31T01:00:00Z'))).toBe('repeated hour');
  });

  it('choose H by the id of the schedule, the same for each of them', () => {
    const fires = firesAfter(['H 3 * * *', 'H 15 * * *'], 'UTC', '2026-11-20T00:00:00Z', 2, 'nightly');
    const [minute] = firesAfter('H 3 * * *', 'UTC', '2026-11-20T00:00:00Z', 1, 'nightly');
    expect(fires).toEqual([minute, minute?.replace('T03', 'T15')]);
    expect(dependsOnIdentity(timingOf({ cron: ['0 9 * * *', 'H 3 * * *'] }))).toBe(true);
    expect(dependsOnIdentity(timingOf({ cron: ['0 9 * * *', '0 3 * * *'] }))).toBe(false);
  });

  it('are delayed by their jitter to before the next fire of any of them', () => {
    const timing = timingOf({ cron: ['0 * * * *', '1 * * * *'], jitterSeconds: 3600 });
    for (let n = 0; n < 50; n += 1) {
      const times = fireTimes(timing, { id: `job-${n}`, createdAt: 0 });
      const hour = at('2026-11-20T09:00:00Z');
      expect(times.dueAt(hour)).toBeLessThan(hour + 60_000);
    }
  });
});

test('several expressions are read from a row as they were written to it', () => {
  const timing = timingOf({ cron: ['0 9 * * *', 'H 3 * * SUN'], timezone: 'Europe/Berlin' });
  expect(readTiming(timingText(timing))).toEqual(timing);
  for (const cron of [[], ['0 9 * * *', 5], {}])
    expect(() => readTiming(JSON.stringify({ cron }))).toThrow(/cron, which cannot be planned by/);
});

test('another order of the expressions moves no fire time', () => {
  const [a, b, c] = ['0 9 * * *', '0 3 * * *', '0 4 * * *'];
  const one = timingOf({ cron: [a, b] });
  expect(movesTimes(one, timingOf({ cron: [b, a] }))).toBe(false);
  expect(movesTimes(one, timingOf({ cron: [a, c] }))).toBe(true);
  expect(movesTimes(one, timingOf({ cron: a }))).toBe(true);
});

test.each([
  ['0 9 * * MON-FRI', ' 0  9 *\t* mon-fri'],
  ['@daily', '0 0 * * *'],
  ['@Midnight', '0 0 0 * * *'],
])('%j is the same expression as %j', (one, other) => {
  expect(normalSpelling(other)).toBe(normalSpelling(one));
});
