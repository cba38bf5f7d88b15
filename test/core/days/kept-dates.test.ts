import { describe, expect, it } from 'vitest';
import { type Calendars, daySetOfEntries } from '../../../src/core/exclusions/exclusion.ts';
import { datesAtEdit } from '../../../src/core/time/kept-dates.ts';
import { owedByCalendars } from '../../../src/core/days/decided-dates.ts';
import type { Timing } from '../../../src/core/timing/timing.ts';
import { readTiming, timingText } from '../../../src/core/schedules/stored-definition.ts';
import { fireTimes } from '../../../src/core/time/fire-times.ts';
import { timingOf } from '../time/support.ts';

const at = (text: string) => Date.parse(`${text}Z`);
const identity = { id: 'job', createdAt: at('2026-01-01T00:00') };
/** Fridays, unless another expression is given; holidays are those of the calendar `c`. */
const timing = (given: Partial<Timing> = {}): Timing => {
  const exclude = { dates: [], calendars: ['c'], weekdays: ['sat', 'sun'] as const };
  return timingOf({ cron: '0 9 * * FRI', exclude, ...given });
};
const previous = timing({ onExcluded: 'previous' });
const next = timing({ onExcluded: 'next' });
/** Christmas 2026 is a Friday. */
const said = (...versions: [at: string, ...dates: string[]][]): Calendars => {
  const known = versions.map(([from, ...dates], index) => ({
    ...{ version: index + 1, at: at(from), days: daySetOfEntries(dates) },
  }));
  return new Map([['c', { id: 'c', versions: known }]]);
};
const CHRISTMAS = said(['2026-01-01T00:00', '2026-12-25']);

function fires(of: Timing, from: string, calendars: Calendars, count = 3): string[] {
  const times = fireTimes(of, identity, calendars);
  const found: string[] = [];
  for (let one = times.next(at(from)); one !== null && found.length < count; one = times.next(one)) {
    const note = times.noteOf(one);
    found.push(new Date(one).toISOString().slice(5, 16) + (note === null ? '' : ` ${note}`));
  }
  return found;
}

/** The schedule after an edit, as it is stored. */
function edited(before: Timing, after: Timing, now: string, calendars: Calendars, createdAt = identity.createdAt) {
  const edit = { before, after, identity: { ...identity, createdAt }, now: at(now), calendars };
  const { kept, owed } = datesAtEdit(edit);
  const timing = readTiming(timingText(kept ? { ...after, kept } : after));
  return { timing, owed: owed.map((one) => new Date(one).toISOString().slice(5, 16)) };
}

describe('a date keeps what was decided for it when its calendar is edited', () => {
  it('where its fire was moved ahead of it and made', () => {
    const undone = said(['2026-01-01T00:00', '2026-12-25'], ['2026-12-24T18:00']);
    expect(fires(previous, '2026-12-20T00:00', undone)).toEqual([
      '12-24T09:00 moved from 2026-12-25 (calendar c)',
      '01-01T09:00',
      '01-08T09:00',
    ]);
  });

  it('but not where the edit came before that', () => {
    const undone = said(['2026-01-01T00:00', '2026-12-25'], ['2026-12-24T08:59']);
    expect(fires(previous, '2026-12-20T00:00', undone, 2)).toEqual(['12-25T09:00', '01-01T09:00']);
  });

  it.each([
    ['the date is not excluded after all', []],
    ['the day on which it waits is excluded too', ['2026-12-25', '2026-12-28']],
    ['a day in between is not excluded', ['2026-12-27']],
  ])('where it waits for a later day: %s', (_, dates) => {
    const later = said(['2026-01-01T00:00', '2026-12-25'], ['2026-12-26T10:00', ...dates]);
    expect(fires(next, '2026-12-20T00:00', later, 2)).toEqual([
      '12-28T09:00 moved from 2026-12-25 (calendar c)',
      '01-01T09:00',
    ]);
  });

  it('where it has begun and is excluded only then', () => {
    const later = said(['2026-01-01T00:00'], ['2026-12-25T06:00', '2026-12-25']);
    for (const moving of [next, previous])
      expect(fires(moving, '2026-12-20T00:00', later, 2)).toEqual(['12-25T09:00', '01-01T09:00']);
  });

  it('and what the edit moves to a moment that has passed is owed, once', () => {
    const late = said(['2026-01-01T00:00'], ['2026-12-24T18:00', '2026-12-25']);
    const owed = (editedAt: string) =>
      owedByCalendars(previous, identity, late, { editedAt: at(editedAt), now: at('2026-12-24T19:00') });
    expect(owed('2026-12-24T18:00')).toEqual([at('2026-12-24T09:00')]);
    expect(owed('2026-12-24T18:30')).toEqual([]);
    // On Thursdays as well: what coincides with a fire that was made is that fire.
    const both = { ...previous, cron: '0 9 * * THU,FRI' };
    const edit = { editedAt: at('2026-12-24T18:00'), now: at('2026-12-24T19:00') };
    expect(owedByCalendars(both, identity, late, edit)).toEqual([]);
  });

  it('and a schedule that is new does not ask what was said before it', () => {
    const undone = said(['2026-01-01T00:00', '2026-12-25'], ['2026-12-24T10:00']);
    const young = { id: 'job', createdAt: at('2026-12-24T12:00') };
    expect(fireTimes(previous, young, undone).next(at('2026-12-24T12:00'))).toBe(at('2026-12-25T09:00'));
  });
});

describe('a date keeps what was decided for it when its definition is edited', () => {
  it.each<[string, Partial<Timing>]>([
    ['excludes nothing', { onExcluded: 'skip', exclude: null }],
    ['has another time', { cron: '0 17 * * FRI' }],
    ['moves the other way', { onExcluded: 'next' }],
    ['fires daily', { onExcluded: 'skip', exclude: null, cron: '0 10 * * FRI' }],
  ])('where its fire was moved ahead of it and made, and the new one %s', (_, change) => {
    const after = edited(previous, { ...previous, ...change }, '2026-12-24T18:00', CHRISTMAS);
    expect(after.owed).toEqual([]);
    expect(fires(after.timing, '2026-12-24T18:00', CHRISTMAS, 1)[0]).toMatch(/^01-01/);
  });

  it.each<[string, Partial<Timing>, string?]>([
    ['excludes nothing', { onExcluded: 'skip', exclude: null }],
    ['skips', { onExcluded: 'skip' }],
    ['has another time, at which it is made', { cron: '0 17 * * FRI' }, '17:00'],
    ['has another day and time, at which it is made', { cron: '0 17 1 * *' }, '17:00'],
    ['moves the other way', { onExcluded: 'previous' }],
    ['excludes the day on which it waits', { exclude: { dates: ['2026-12-28'], calendars: ['c'] } }],
    ['is an interval', { cron: null, everySeconds: 366 * 86_400, onExcluded: 'skip', exclude: null }],
    ['fires all day', { cron: '*/15 * * * FRI', onExcluded: 'skip', exclude: null }],
  ])('where it waits for a later day, and the new one %s', (_, change, time = '09:00') => {
    const after = edited(next, { ...next, ...change }, '2026-12-26T10:00', CHRISTMAS);
    expect(after.owed).toEqual([]);
    const [first, second = '01'] = fires(after.timing, '2026-12-26T10:00', CHRISTMAS, 2);
    expect(first).toBe(`12-28T${time} moved from 2026-12-25 (calendar c)`);
    expect(second).toMatch(/^01/);
    // Another edit, of the next day, keeps it still.
    const again = edited(after.timing, { ...timing(), cron: '0 1 * * FRI' }, '2026-12-27T10:00', CHRISTMAS);
    expect(fires(again.timing, '2026-12-27T10:00', CHRISTMAS, 2)).toEqual([
      '12-28T01:00 moved from 2026-12-25 (calendar c)',
      '01-01T01:00',
    ]);
  });

  it('where it has begun: a new rule does not move it, but its times are the new ones', () => {
    const free = said(['2026-01-01T00:00']);
    const moving = { ...next, cron: '0 15 * * FRI', exclude: { dates: ['2026-12-25'], calendars: [] } };
    const before = timing({ cron: '0 14 * * FRI' });
    const after = edited(before, moving, '2026-12-25T10:00', free);
    expect(fires(after.timing, '2026-12-25T10:00', free, 2)).toEqual(['12-25T15:00', '01-01T15:00']);
    const made = edited(timing(), moving, '2026-12-25T10:00', free);
    expect(fires(made.timing, '2026-12-25T10:00', free, 1)).toEqual(['01-01T15:00']);
  });

  it('and is to fire yet: a new rule does not move that to a day that has passed', () => {
    const exclude = { dates: ['2026-12-25'], calendars: [] };
    const moving = { ...previous, cron: '0 15 * * FRI', exclude };
    const before = timing({ cron: '0 14 * * FRI' });
    const after = edited(before, moving, '2026-12-25T10:00', said(['2026-01-01T00:00']));
    expect(after.owed).toEqual([]);
    expect(fires(after.timing, '2026-12-25T10:00', CHRISTMAS, 1)).toEqual(['12-25T15:00']);
  });

  it('and only the fire of another date was to be made on it', () => {
    // Sunday's fire is made on Monday, which gets fires of its own, and is excluded, while it lasts.
    const before = timing({ cron: '0 9 * * SUN', onExcluded: 'next' });
    const excluded = { dates: ['2026-12-28'], calendars: [], weekdays: ['sun'] as const };
    const after = edited(
      before,
      timing({ cron: '0 15 * * MON', onExcluded: 'next', exclude: excluded }),
      '2026-12-28T08:00',
      CHRISTMAS,
    );
    expect(fires(after.timing, '2026-12-28T08:00', CHRISTMAS, 2)).toEqual([
      '12-28T15:00 moved from 2026-12-27 (weekday sun)',
      '01-04T15:00',
    ]);
  });

  it('where it was not selected, and has begun', () => {
    const after = edited({ ...next, cron: '0 9 * * MON' }, next, '2026-12-26T10:00', CHRISTMAS);
    expect(fires(after.timing, '2026-12-26T10:00', CHRISTMAS, 1)).toEqual(['01-01T09:00']);
  });

  it('and what the edit moves to a moment that has passed is owed', () => {
    const after = edited(timing(), previous, '2026-12-24T18:00', CHRISTMAS);
    expect(after.owed).toEqual(['12-24T09:00']);
    expect(fires(after.timing, '2026-12-24T18:00', CHRISTMAS, 1)).toEqual(['01-01T09:00']);
    const again = edited(after.timing, { ...previous, jitterSeconds: 5 }, '2026-12-24T19:00', CHRISTMAS);
    expect(again.owed).toEqual([]);
    const ended = edited(timing(), { ...previous, startAt: at('2026-12-24T10:00') }, '2026-12-24T18:00', CHRISTMAS);
    expect(ended.owed).toEqual([]);
  });

  it('and fires of several dates that the edit moves to one moment are owed once', () => {
    const before = timing({ cron: '0 9 * * FRI,SAT', exclude: null });
    const after = edited(
      before,
      { ...previous, cron: ['0 9 * * FRI', '0 9,10 * * SAT'] },
      '2026-12-24T18:00',
      CHRISTMAS,
    );
    expect(after.owed).toEqual(['12-24T09:00', '12-24T10:00']);
  });

  it('also to a moment of the definition before, at which that was not in force yet', () => {
    const daily = timing({ cron: '0 9 * * THU,FRI' });
    const edit = {
      before: daily,
      after: { ...daily, ...previous, cron: '0 9 * * THU,FRI' },
      calendars: CHRISTMAS,
    };
    const owed = (editedAt: string) =>
      datesAtEdit({ ...edit, identity, editedAt: at(editedAt), now: at('2026-12-24T18:00') }).owed;
    expect(owed('2026-12-01T00:00')).toEqual([]);
    expect(owed('2026-12-24T10:00')).toEqual([at('2026-12-24T09:00')]);
    // The same where the calendar is edited.
    const late = said(['2026-01-01T00:00'], ['2026-12-24T18:00', '2026-12-25']);
    const young = { id: 'job', createdAt: at('2026-12-24T10:00') };
    const span = { editedAt: at('2026-12-24T18:00'), now: at('2026-12-24T19:00') };
    expect(owedByCalendars(edit.after, young, late, span)).toEqual([at('2026-12-24T09:00')]);
  });

  it('and all decisions stay where only the jitter or the window changes', () => {
    const later = said(['2026-01-01T00:00'], ['2026-12-25T08:00', '2026-12-25']);
    const windowed = { ...next, endAt: at('2027-06-01T00:00') };
    const after = edited(next, windowed, '2026-12-25T08:30', later);
    expect(after.timing.kept).toBeUndefined();
    expect(fires(after.timing, '2026-12-25T08:30', later, 2)).toEqual(['12-25T09:00', '01-01T09:00']);
    const waits = edited(next, timing(), '2026-12-26T10:00', CHRISTMAS).timing;
    const again = edited(waits, { ...timing(), jitterSeconds: 9 }, '2026-12-27T10:00', CHRISTMAS).timing;
    expect(again.kept).toEqual(waits.kept);
  });

  it('in little room, however often it fires', () => {
    const often = { ...next, cron: '* * 0-22 * * FRI' };
    const after = edited(often, { ...often, onExcluded: 'skip' }, '2026-12-26T10:00', CHRISTMAS);
    expect(timingText(after.timing).length).toBeLessThan(500);
    expect(fires(after.timing, '2026-12-28T22:59:59', CHRISTMAS, 1)).toEqual(['01-01T00:00']);
    expect(fires(after.timing, '2026-12-28T22:59:58', CHRISTMAS, 1)[0]).toMatch(/^12-28T22:59/);
  });
});

/** The same edit of what is excluded, of the calendar and of the definition: what fires after it, and what it owes. */
const PICKED = { cron: '0 17 * * *', pick: { of: 'month', nth: [-1] } } as const;
const EDITS = {
  calendar: (given: Partial<Timing>, edits: [now: string, ...dates: string[]][]) => {
    const calendars = said(['2026-01-01T00:00'], ...edits);
    const of = timing({ exclude: { dates: [], calendars: ['c'] }, ...PICKED, ...given });
    const [first = ''] = edits[0] ?? [];
    const span = { editedAt: at(edits.at(-1)?.[0] ?? first), now: at('2026-12-31T23:59') };
    const owed = owedByCalendars(of, identity, calendars, span);
    return { fires: fires(of, edits.at(-1)?.[0] ?? first, calendars, 2), owed: inText(owed) };
  },
  definition: (given: Partial<Timing>, edits: [now: string, ...dates: string[]][]) => {
    let of = timing({ exclude: null, ...PICKED, ...given });
    let owed: string[] = [];
    for (const [now, ...dates] of edits) {
      const exclude = { weekdays: of.exclude?.weekdays ?? [], dates, calendars: [] };
      ({ timing: of, owed } = edited(of, { ...of, exclude }, now, CHRISTMAS));
    }
    return { fires: fires(of, edits.at(-1)?.[0] ?? '', CHRISTMAS, 2), owed };
  },
};
const inText = (some: readonly number[]) => some.map((one) => new Date(one).toISOString().slice(5, 16));
const REST = '2026-12-21/2026-12-31';
const NEXT_MONTHS = ['01-31T17:00', '02-28T17:00'];

describe.each(Object.entries(EDITS))('no period is lost to an edit that excludes its rest', (kind, edit) => {
  it(`of the ${kind}: where the day that is picked now is today, and its time lies ahead: it is made then`, () => {
    expect(edit({}, [['2026-12-20T12:00', REST]])).toEqual({
      fires: ['12-20T17:00', '01-31T17:00'],
      owed: [],
    });
  });

  it(`of the ${kind}: where its time has passed, or the day has: it is owed`, () => {
    expect(edit({}, [['2026-12-20T18:00', REST]])).toEqual({ fires: NEXT_MONTHS, owed: ['12-20T17:00'] });
    const working = { pick: { of: 'month', nth: [-1] }, cron: '0 17 * * MON-FRI' } as const;
    expect(edit(working, [['2026-12-20T12:00', REST]]).owed).toEqual(['12-18T17:00']);
    const often = edit({ cron: '0 9,17 * * *' }, [['2026-12-20T12:00', REST]]);
    expect(often).toEqual({ fires: ['12-20T17:00', '01-31T09:00'], owed: ['12-20T09:00'] });
  });

  it(`of the ${kind}: unless the period has had a fire, or has one ahead`, () => {
    const first = edit({ pick: { of: 'month', nth: [1, -1] } }, [['2026-12-20T12:00', REST]]);
    expect(first).toEqual({ fires: ['01-01T17:00', '01-31T17:00'], owed: [] });
    const both = edit({ pick: { of: 'month', nth: [22, -1] } }, [['2026-12-20T12:00', '2026-12-23/2026-12-31']]);
    expect(both).toEqual({ fires: ['12-22T17:00', '01-22T17:00'], owed: [] });
  });

  it(`of the ${kind}: an undo takes it back before it is made, and owes nothing after that`, () => {
    const undone = edit({}, [['2026-12-20T12:00', REST], ['2026-12-20T15:00']]);
    expect(undone).toEqual({ fires: ['12-31T17:00', '01-31T17:00'], owed: [] });
    const again = edit({}, [['2026-12-20T12:00', REST], ['2026-12-20T18:00'], ['2026-12-21T12:00', REST]]);
    expect(again).toEqual({ fires: NEXT_MONTHS, owed: [] });
    const twice = edit({}, [['2026-12-20T12:00', REST], ['2026-12-20T15:00'], ['2026-12-20T16:00', REST]]);
    expect(twice.fires[0]).toBe('12-20T17:00');
  });

  it(`of the ${kind}: it keeps its place when another edit leaves it there`, () => {
    const more = edit({}, [
      ['2026-12-20T12:00', REST],
      ['2026-12-20T13:00', REST, '2027-01-31'],
    ]);
    expect(more).toEqual({ fires: ['12-20T17:00', '01-30T17:00'], owed: [] });
  });
});

describe('a day of a definition with pick', () => {
  const free = said(['2026-01-01T00:00']);
  const last = timing({ exclude: null, ...PICKED });
  const to = (change: Partial<Timing>, now: string, before = last, createdAt?: number) => {
    const after = edited(before, { ...before, ...change }, now, free, createdAt);
    return { fires: fires(after.timing, now, free, 2), owed: after.owed };
  };
  const FIRST = { pick: { of: 'month', nth: [1] } } as const;

  it('that has begun is left by an edit to another pick', () => {
    expect(to(FIRST, '2026-12-31T12:00')).toEqual({ fires: ['12-31T17:00', '01-01T17:00'], owed: [] });
    expect(to(FIRST, '2026-12-31T18:00')).toEqual({ fires: ['01-01T17:00', '02-01T17:00'], owed: [] });
    expect(to({ pick: null }, '2026-12-31T18:00').fires).toEqual(['01-01T17:00', '01-02T17:00']);
    expect(to({ pick: null }, '2026-12-30T12:00').fires).toEqual(['12-31T17:00', '01-01T17:00']);
    expect(to(last, '2026-12-30T12:00', { ...last, pick: null }).fires[0]).toBe('12-30T17:00');
  });

  it('is made by an edit that picks it when it has passed, unless its period has had a fire', () => {
    expect(to(FIRST, '2026-12-20T12:00')).toEqual({
      fires: ['01-01T17:00', '02-01T17:00'],
      owed: ['12-01T17:00'],
    });
    expect(to(FIRST, '2026-12-20T12:00', { ...last, pick: { of: 'month', nth: [3] } }).owed).toEqual([]);
    expect(to(last, '2026-12-20T12:00', { ...last, ...FIRST }).owed).toEqual([]);
  });

  it('has the times of day of the definition in force, and is not made again at another one', () => {
    expect(to({ cron: '0 18 * * *' }, '2026-12-31T12:00').fires).toEqual(['12-31T18:00', '01-31T18:00']);
    expect(to({ cron: '0 20 * * *' }, '2026-12-31T18:00').fires).toEqual(['01-31T20:00', '02-28T20:00']);
    expect(to({ cron: '0 9 * * *' }, '2026-12-31T12:00').fires).toEqual(['01-31T09:00', '02-28T09:00']);
    const nine = { ...last, cron: '0 9 * * *' };
    expect(to({ cron: '0 17 * * *' }, '2026-12-31T12:00', nine).fires[0]).toBe('01-31T17:00');
    // Nothing was made before the schedule was there.
    const young = to({ cron: '0 17 * * *' }, '2026-12-31T12:00', nine, at('2026-12-31T10:00'));
    expect(young.fires[0]).toBe('12-31T17:00');
  });

  it('that was not to fire is not made by the edit after the next one either', () => {
    const nine = { ...last, pick: null, onExcluded: 'next', cron: '0 9 * * *' } as const;
    const { timing: before } = edited(last, nine, '2026-12-30T12:00', free);
    expect(to({ cron: '0 17 * * *' }, '2026-12-30T13:00', before).fires[0]).toBe('12-31T17:00');
  });
});
