import { describe, expect, it } from 'vitest';
import type { Definition } from '../../../src/core/schedules/schedule.ts';
import type { Timing } from '../../../src/core/timing/timing.ts';
import { cursorUnder, movesTimes } from '../../../src/core/time/definition-change.ts';
import {
  MAX_ON_TIME,
  type Plan,
  type PlannedFire,
  type PlanningPeriod,
  type Walk,
  walkDue,
} from '../../../src/core/time/plan-due.ts';
import { dependsOnIdentity, fireTimes } from '../../../src/core/time/fire-times.ts';
import { at, timingOf } from './support.ts';

const created = at('2026-11-20T08:00:00.500Z');
const identity = { id: 'nightly', createdAt: created };
const NOW = at('2026-11-20T12:10:30Z');

/** From an occurrence on, unless told otherwise as of NOW. */
function walkOf(given: Partial<Timing>, from: number, period: Partial<PlanningPeriod> = {}): Walk {
  const whole = timingOf(given);
  const known = { now: NOW, horizon: -Infinity, plannedThrough: null, ...period };
  return walkDue(fireTimes(whole, identity), whole, from, known);
}

/** The whole plan. */
function planned(given: Partial<Timing>, from: string, period: Partial<PlanningPeriod> = {}): Plan {
  const plan = walkOf(given, at(from), period).step(() => true);
  if (!plan) throw new Error('it did not finish');
  return plan;
}

const firesOf = (...given: Parameters<typeof planned>): string[] => planned(...given).fires.map(textOf);

/** In short: the moment, how, and what it stands for. */
function textOf({ scheduledFor, trigger, skipped, coalesced, coalescedFrom }: PlannedFire): string {
  const time = (instant: number) => new Date(instant).toISOString().slice(11, 19);
  const others = coalescedFrom === null ? '' : ` +${coalesced} from ${time(coalescedFrom)}`;
  return `${time(scheduledFor)} ${skipped ?? trigger}${others}`;
}

const ASKED = { reason: null, made: false };

describe('a fire that a caller asked to skip is recorded for itself, and takes no part in the rest:', () => {
  const asked = (given: Partial<Timing>, from: string, ...times: string[]) => {
    const skips = new Map(times.map((time) => [at(`2026-11-20T${time}Z`), ASKED]));
    const plan = planned({ cron: '* * * * *', ...given }, from, { skips });
    return { ...plan, fires: plan.fires.map(textOf) };
  };

  it.each([
    [{ graceSeconds: 200 }, '12:08:00', ['12:08:00 request', '12:09:00 schedule', '12:10:00 schedule']],
    [{ graceSeconds: 200 }, '12:10:00', ['12:08:00 schedule', '12:09:00 schedule', '12:10:00 request']],
    [{ catchUp: 'skip', graceSeconds: 40 }, '12:09:00', ['12:08:00 missed', '12:09:00 request', '12:10:00 schedule']],
    [{ catchUp: 'skip', graceSeconds: 40 }, '12:08:00', ['12:08:00 request', '12:09:00 missed', '12:10:00 schedule']],
    [{ catchUp: 'latest', graceSeconds: 40 }, '12:09:00', ['12:09:00 request', '12:10:00 schedule +1 from 12:08:00']],
    [{ catchUp: 'latest', graceSeconds: 40 }, '12:10:00', ['12:09:00 catchUp +1 from 12:08:00', '12:10:00 request']],
    [{ catchUp: 'all', graceSeconds: 0 }, '12:09:00', ['12:08:00 catchUp', '12:09:00 request', '12:10:00 catchUp']],
    [
      { catchUp: 'all', catchUpLimit: 1, graceSeconds: 0 },
      '12:10:00',
      ['12:08:00 limit', '12:09:00 catchUp', '12:10:00 request'],
    ],
  ] satisfies [Partial<Timing>, string, string[]][])('%j, of 12:08 to 12:10 without %s', (given, time, fires) => {
    expect(asked(given, '2026-11-20T12:08:00Z', time)).toMatchObject({ fires, isPartial: false });
  });

  it('all such fires, and none that is not due yet or that is no fire', () => {
    const all = asked({}, '2026-11-20T12:09:00Z', '12:09:00', '12:10:00', '12:11:00', '12:09:30');
    expect(all).toMatchObject({
      fires: ['12:09:00 request', '12:10:00 request'],
      nextOccurrenceAt: at('2026-11-20T12:11:00Z'),
    });
  });

  it('in the part of a long walk to which it belongs', () => {
    const first = NOW - (MAX_ON_TIME + 10) * 1000;
    const skips = new Map([first + 1000, NOW].map((moment) => [moment, ASKED]));
    const walk = walkOf({ cron: '* * * * * *', graceSeconds: 86_400 }, first, { skips });
    const parts = [walk.step(() => true), walk.step(() => true)];
    expect(parts.map((part) => part?.fires.filter(({ skipped }) => skipped === 'request').map(textOf))).toEqual([
      [`${new Date(first + 1000).toISOString().slice(11, 19)} request`],
      ['12:10:30 request'],
    ]);
  });
});

it('a fire that was made while the clock was ahead is passed over without a record', () => {
  const skips = new Map([[at('2026-11-20T12:09:00Z'), { reason: null, made: true }]]);
  const fires = firesOf({ cron: '* * * * *', graceSeconds: 200 }, '2026-11-20T12:08:00Z', { skips });
  expect(fires).toEqual(['12:08:00 schedule', '12:10:00 schedule']);
});

describe('among the due fires', () => {
  const cron = '* * * * *';

  it('every fire on time is made, whatever becomes of missed ones', () => {
    for (const catchUp of ['skip', 'latest', 'all'] as const) {
      const plan = planned({ cron, catchUp, graceSeconds: 120 }, '2026-11-20T12:09:00Z');
      expect(plan.fires.map(textOf)).toEqual(['12:09:00 schedule', '12:10:00 schedule']);
      expect(plan).toMatchObject({
        nextOccurrenceAt: at('2026-11-20T12:11:00Z'),
        nextFireAt: at('2026-11-20T12:11:00Z'),
        isPartial: false,
      });
    }
  });

  it.each([
    ['a fire late by exactly the grace is on time', { graceSeconds: 60 }, 60_000, 'schedule'],
    ['a fire late by a millisecond more than the grace is missed', { graceSeconds: 60 }, 60_001, 'catchUp'],
    [
      'a fire late by no more than a second is on time, however little grace there is',
      { graceSeconds: 0, catchUp: 'skip' },
      1000,
      'schedule',
    ],
    [
      'a fire later than a second is missed where there is no grace',
      { graceSeconds: 0, catchUp: 'skip' },
      1001,
      'missed',
    ],
  ] satisfies [string, Partial<Timing>, number, string][])('%s', (_, given, lateBy, how) => {
    const due = NOW - lateBy;
    const [fire] = planned({ at: due, ...given }, new Date(due).toISOString()).fires;
    expect(fire?.skipped ?? fire?.trigger).toBe(how);
  });

  it.each([
    [
      '`latest` folds missed fires into the oldest one on time',
      { cron, graceSeconds: 100 },
      '12:00',
      ['12:09:00 schedule +9 from 12:00:00', '12:10:00 schedule'],
    ],
    [
      '`latest` fires the newest missed one if none is on time',
      { cron: '0 * * * *' },
      '09:00',
      ['12:00:00 catchUp +3 from 09:00:00'],
    ],
    ['`latest` fires a single missed one for itself', { cron: '0 * * * *' }, '12:00', ['12:00:00 catchUp']],
    [
      '`skip` records missed fires once, at the newest, and makes those on time',
      { cron, catchUp: 'skip' },
      '12:00',
      ['12:09:00 missed +9 from 12:00:00', '12:10:00 schedule'],
    ],
    [
      '`all` fires each, oldest first',
      { cron, catchUp: 'all' },
      '12:07',
      ['12:07:00 catchUp', '12:08:00 catchUp', '12:09:00 catchUp', '12:10:00 schedule'],
    ],
  ] satisfies [string, Partial<Timing>, string, string[]][])('%s', (_, given, from, fires) => {
    expect(firesOf(given, `2026-11-20T${from}:00Z`)).toEqual(fires);
  });

  it('`all` fires the newest up to its limit, and records the rest once', () => {
    const fires = (catchUpLimit: number) => firesOf({ cron, catchUp: 'all', catchUpLimit }, '2026-11-20T12:00:00Z');
    expect(fires(2)).toEqual([
      '12:07:00 limit +7 from 12:00:00',
      '12:08:00 catchUp',
      '12:09:00 catchUp',
      '12:10:00 schedule',
    ]);
    expect(fires(9)).toEqual([
      '12:00:00 limit',
      ...Array.from({ length: 9 }, (_, index) => `12:0${index + 1}:00 catchUp`),
      '12:10:00 schedule',
    ]);
    expect(fires(0)).toEqual(['12:09:00 limit +9 from 12:00:00', '12:10:00 schedule']);
    expect(fires(10)).toHaveLength(11);
  });

  it('a fire older than the horizon leaves no record', () => {
    const horizon = at('2026-11-20T12:05:30Z');
    const from = '2026-11-01T00:00:00Z';
    expect(firesOf({ cron }, from, { horizon })).toEqual(['12:10:00 schedule +4 from 12:06:00']);
    expect(planned({ at: at(from) }, from, { horizon })).toMatchObject({ fires: [], nextOccurrenceAt: null });
  });

  it('no fire is planned again, wherever the cursor stands', () => {
    const fires = (from: string, plannedThrough: string, horizon = -Infinity) => {
      const period = { horizon, plannedThrough: at(`2026-11-20T${plannedThrough}Z`) };
      return firesOf({ cron, catchUp: 'all' }, `2026-11-20T${from}Z`, period);
    };
    const rest = ['12:08:00 catchUp', '12:09:00 catchUp', '12:10:00 schedule'];
    for (const from of ['12:01:00', '12:07:00', '12:08:00']) expect(fires(from, '12:07:00')).toEqual(rest);
    expect(fires('12:01:00', '12:07:30')).toEqual(rest);
    // The later of the two counts: what is too old, and what has been planned.
    const horizon = at('2026-11-20T12:08:30Z');
    expect(fires('12:01:00', '12:07:00', horizon)).toEqual(rest.slice(1));
    expect(fires('12:01:00', '12:09:00', horizon)).toEqual(rest.slice(2));
  });

  it('a plan in which everything has been planned before says where it goes on', () => {
    const plannedThrough = at('2026-11-20T12:10:00Z');
    const [fires, next] = [[], at('2026-11-20T12:11:00Z')];
    expect(planned({ cron }, '2026-11-20T12:05:00Z', { plannedThrough })).toEqual({
      ...{ fires, nextOccurrenceAt: next, nextFireAt: next, isPartial: false },
    });
    const once = planned({ at: plannedThrough }, '2026-11-20T12:10:00Z', { plannedThrough });
    expect(once).toMatchObject({ fires, nextOccurrenceAt: null });
  });

  it('each stands in one record, whatever the policy, the limit and the grace', () => {
    for (const catchUp of ['skip', 'latest', 'all'] as const) {
      for (const catchUpLimit of [0, 1, 7, 100]) {
        for (const graceSeconds of [0, 45, 60, 3600]) {
          const { fires } = planned({ cron, catchUp, catchUpLimit, graceSeconds }, '2026-11-20T11:33:00Z');
          const stoodFor = fires.reduce((sum, fire) => sum + 1 + fire.coalesced, 0);
          expect(stoodFor, `${catchUp} ${catchUpLimit} ${graceSeconds}`).toBe(38);
          const moments = fires.map((fire) => fire.scheduledFor);
          expect(moments).toEqual(moments.toSorted());
        }
      }
    }
  });
});

describe('a walk', () => {
  const everySecond = { cron: '* * * * * *' };

  it('has the same result in steps as in one go', () => {
    const walk = walkOf(everySecond, NOW - 86_400_000);
    let done: Plan | null = null;
    let rounds = 0;
    while (!done) {
      let steps = 0;
      rounds += 1;
      done = walk.step(() => (steps += 1) <= 1000);
    }
    expect(rounds).toBeGreaterThan(80);
    expect(done).toEqual(planned(everySecond, new Date(NOW - 86_400_000).toISOString()));
    expect(done.fires[0]?.coalesced).toBe(86_400 - 60);
  });

  it('gives out more than a commit may write in parts, as of one moment', () => {
    const from = NOW - 4 * 3_600_000;
    const walk = walkOf({ ...everySecond, graceSeconds: 3 * 3600 }, from);
    const parts: Plan[] = [];
    do {
      const plan = walk.step(() => true);
      if (!plan) throw new Error('it did not go on');
      parts.push(plan);
    } while (parts.at(-1)?.isPartial);
    expect(parts.slice(0, -1).every(({ fires }) => fires.length === MAX_ON_TIME)).toBe(true);
    const fires = parts.flatMap((part) => part.fires);
    expect(fires).toHaveLength(3 * 3600 + 1);
    expect(fires[0]).toMatchObject({ coalesced: 3600, coalescedFrom: from });
    expect(fires.slice(1).every((fire, index) => fire.scheduledFor === (fires[index]?.scheduledFor ?? 0) + 1000)).toBe(
      true,
    );
    expect(parts[0]?.nextOccurrenceAt).toBe((parts[0]?.fires.at(-1)?.scheduledFor ?? 0) + 1000);
  });

  it('ends if no occurrence is left', () => {
    const plan = planned({ cron: '* * * * *', endAt: at('2026-11-20T12:11:00Z') }, '2026-11-20T12:10:00Z');
    expect(plan).toMatchObject({ nextOccurrenceAt: null, nextFireAt: null });
    expect(plan.fires.map(textOf)).toEqual(['12:10:00 schedule']);
  });

  it('refuses a calendar that does not go forward', () => {
    const stuck = { ...fireTimes(timingOf(everySecond), identity), next: (after: number) => after };
    const walk = walkDue(stuck, timingOf(everySecond), NOW, {
      now: NOW,
      horizon: -Infinity,
      plannedThrough: null,
    });
    expect(() => walk.step(() => true)).toThrow('not after it');
  });
});

describe('an interval', () => {
  const next = (given: Partial<Timing>, after: string) => {
    const found = fireTimes(timingOf(given), identity).next(at(after));
    return found === null ? null : new Date(found).toISOString();
  };

  it('is anchored at the creation of its schedule, to the millisecond, and never drifts', () => {
    const every = { everySeconds: 7 };
    expect(next(every, '2026-11-20T07:00:00Z')).toBe('2026-11-20T08:00:07.500Z');
    expect(next(every, '2026-11-20T08:00:00.500Z')).toBe('2026-11-20T08:00:07.500Z');
    expect(next(every, '2027-11-20T08:00:00.000Z')).toBe('2027-11-20T08:00:01.500Z');
    expect((at('2027-11-20T08:00:01.500Z') - created) % 7000).toBe(0);
  });

  it('is anchored at startAt if there is one, which is a fire itself', () => {
    const every = { everySeconds: 3600, startAt: at('2026-12-01T00:30:00Z') };
    expect(next(every, '2026-11-20T08:00:00Z')).toBe('2026-12-01T00:30:00.000Z');
    expect(next(every, '2026-12-01T00:30:00Z')).toBe('2026-12-01T01:30:00.000Z');
  });

  it('and any other kind fires only from startAt, inclusive, to endAt, exclusive', () => {
    const window = { startAt: at('2026-11-20T10:00:00Z'), endAt: at('2026-11-20T10:02:00Z') };
    for (const kind of [{ cron: '* * * * *' }, { everySeconds: 60 }]) {
      expect(next({ ...kind, ...window }, '2026-11-20T08:00:00Z')).toBe('2026-11-20T10:00:00.000Z');
      expect(next({ ...kind, ...window }, '2026-11-20T10:00:00Z')).toBe('2026-11-20T10:01:00.000Z');
      expect(next({ ...kind, ...window }, '2026-11-20T10:01:00Z')).toBeNull();
    }
    expect(next({ at: at('2026-11-20T10:02:00Z'), ...window }, '2026-11-20T08:00:00Z')).toBeNull();
    expect(next({ at: at('2026-11-20T10:00:00Z'), ...window }, '2026-11-20T08:00:00Z')).toBe(
      '2026-11-20T10:00:00.000Z',
    );
  });
});

describe('jitter', () => {
  const minutely = timingOf({ cron: '* * * * *', jitterSeconds: 600 });
  const times = fireTimes(minutely, identity);
  const occurrences = Array.from({ length: 500 }, (_, index) => at('2026-11-20T00:00:00Z') + index * 60_000);

  it('delays each fire by the same amount on every question, and never past the next one', () => {
    const due = occurrences.map((one) => times.dueAt(one));
    expect(due).toEqual(occurrences.map((one) => fireTimes(minutely, identity).dueAt(one)));
    expect(due.every((one, index) => one >= (occurrences[index] ?? 0))).toBe(true);
    expect(due.every((one, index) => index === 499 || one < (occurrences[index + 1] ?? 0))).toBe(true);
    expect(new Set(due.map((one, index) => one - (occurrences[index] ?? 0))).size).toBeGreaterThan(450);
  });

  it('is at most jitterSeconds, reached and included, and differs between schedules', () => {
    const daily = (id: string) => fireTimes(timingOf({ cron: '0 0 * * *', jitterSeconds: 1 }), { id, createdAt: 0 });
    const delays = Array.from(
      { length: 3000 },
      (_, index) => daily(`s${index}`).dueAt(occurrences[0] ?? 0) - (occurrences[0] ?? 0),
    );
    expect(Math.max(...delays)).toBeLessThanOrEqual(1000);
    expect(Math.max(...delays)).toBeGreaterThan(990);
    expect(Math.min(...delays)).toBeLessThan(10);
  });

  it('is part of the due time: a delayed fire is on time', () => {
    const now = times.dueAt(at('2026-11-20T12:09:00Z')) + 1;
    const plan = planned({ ...minutely, graceSeconds: 0 }, '2026-11-20T12:09:00Z', { now: now - 1 });
    expect(plan.fires.map(textOf)).toEqual(['12:09:00 schedule']);
    expect(plan.fires[0]?.dueAt).toBe(now - 1);
    expect(plan.nextFireAt).toBe(times.dueAt(at('2026-11-20T12:10:00Z')));
  });
});

describe('an edit', () => {
  const definition = (given: Partial<Definition>) =>
    ({ ...timingOf({ cron: '0 * * * *' }), enabled: true, ...given }) as Definition;

  it('moves fire times with the fields that decide them, and with no others', () => {
    const before = definition({});
    const [startAt, endAt, jitterSeconds, timezone] = [1, 1, 1, 'UTC'];
    for (const given of [{ cron: '1 * * * *' }, { timezone }, { startAt }, { endAt }, { jitterSeconds }])
      expect(movesTimes(before, definition(given))).toBe(true);
    const [catchUp, overlap] = ['all', 'skip'] as const;
    for (const given of [
      { catchUp, graceSeconds: 1, catchUpLimit: 1 },
      { overlap, enabled: false },
    ])
      expect(movesTimes(before, definition({ ...given, labels: { a: 'b' } }))).toBe(false);
  });

  it('to a new moment fires it if that has just passed, and never twice', () => {
    const past = (ms: number) => definition({ cron: null, at: NOW - ms });
    const fireAt = (of: Definition, before: Parameters<typeof cursorUnder>[1]) =>
      cursorUnder(of, before, identity, NOW).nextFireAt;
    expect(fireAt(past(60_000), null)).toBe(NOW - 60_000);
    expect(fireAt(past(60_000), { definition: past(60_000), nextOccurrenceAt: null })).toBeNull();
    expect(fireAt(past(60_001), null)).toBeNull();
  });

  it('that pauses leaves no fire, and keeps the place', () => {
    const next = at('2026-11-20T13:00:00Z');
    const paused = definition({ enabled: false });
    for (const before of [null, { definition: definition({}), nextOccurrenceAt: next }])
      expect(cursorUnder(paused, before, identity, NOW)).toEqual({
        nextOccurrenceAt: next,
        nextFireAt: null,
      });
  });

  it('that pauses and one that enables leave a fire that jitter delays beyond both where it was', () => {
    const daily = definition({ cron: '0 12 * * *', jitterSeconds: 86_000 });
    const noon = at('2026-11-20T12:00:00Z');
    const dueAt = fireTimes(daily, identity).dueAt(noon);
    expect(dueAt).toBeGreaterThan(NOW + 1000);
    const paused = definition({ ...daily, enabled: false });
    const before = { definition: daily, nextOccurrenceAt: noon };
    const rest = cursorUnder(paused, before, identity, NOW);
    expect(rest).toEqual({ nextOccurrenceAt: noon, nextFireAt: null });
    const again = (now: number) =>
      cursorUnder(daily, { definition: paused, nextOccurrenceAt: rest.nextOccurrenceAt }, identity, now);
    expect(again(dueAt - 1)).toEqual({ nextOccurrenceAt: noon, nextFireAt: dueAt });
    // While it was paused, time passed: nothing is replayed.
    expect(again(dueAt).nextOccurrenceAt).toBe(noon + 86_400_000);
    const nextDay = fireTimes(daily, identity).dueAt(noon + 86_400_000);
    expect(again(nextDay - 1)).toEqual({ nextOccurrenceAt: noon + 86_400_000, nextFireAt: nextDay });
  });

  it('that adds jitter does not bring back earlier occurrences', () => {
    const hourly = definition({ cron: '0 * * * *' });
    const delayed = definition({ cron: '0 * * * *', jitterSeconds: 3600 });
    const thirteen = at('2026-11-20T13:00:00Z');
    const before = { definition: hourly, nextOccurrenceAt: thirteen };
    expect(cursorUnder(delayed, before, identity, NOW).nextOccurrenceAt).toBe(thirteen);
    expect(cursorUnder(delayed, null, identity, NOW).nextOccurrenceAt).toBe(thirteen);
  });
});

it('two schedules of one timing fire together, unless hashing, jitter or their creation distinguishes them', () => {
  const depends = (given: Partial<Timing>) => dependsOnIdentity(timingOf(given));
  const daily = '0 0 * * *';
  for (const given of [{ cron: daily }, { cron: '@daily' }, { everySeconds: 60, startAt: 0 }, { at: 0 }])
    expect(depends(given)).toBe(false);
  expect([{ cron: 'H 0 * * *' }, { cron: '? 0 * * *' }, { everySeconds: 60 }].every(depends)).toBe(true);
  expect(depends({ cron: daily, jitterSeconds: 1 })).toBe(true);
});
