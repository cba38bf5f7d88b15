import { expect, it } from 'vitest';
import type { ExplainedDay } from '../../clients/typescript/src/generated/types.gen.ts';
import {
  monthName,
  notesOf,
  timesOf,
  weeksOf,
  within,
  withinMonth,
  wordsOf,
} from '../../web/src/parts/month/month-days.ts';

const day = (date: string, given: Partial<ExplainedDay> = {}): ExplainedDay => ({
  ...{ date, verdict: 'notSelected', fires: [] },
  ...given,
});
const fire = (fireAt: string, local = fireAt.replace('Z', '+00:00')) => ({ fireAt, local });
const monthOf = (first: string, length: number) =>
  Array.from({ length }, (_, index) => day(`${first}-${String(index + 1).padStart(2, '0')}`));
const shape = (days: ExplainedDay[]) =>
  weeksOf(days).map((week) => week.map((one) => (one === null ? '  ' : one.date.slice(8))).join(' '));

it('a month is weeks from Monday to Sunday, and days of other months are left empty', () => {
  expect(shape(monthOf('2026-12', 31))).toEqual([
    ...['   01 02 03 04 05 06', '07 08 09 10 11 12 13', '14 15 16 17 18 19 20', '21 22 23 24 25 26 27'],
    '28 29 30 31         ',
  ]);
  // It begins on a Monday and ends on a Sunday.
  expect(shape(monthOf('2027-02', 28))).toHaveLength(4);
  expect(shape(monthOf('2026-03', 31))[5]).toBe('30 31               ');
  expect(weeksOf([])).toEqual([]);
});

it('a cell says when its day fires, in the zone of the schedule', () => {
  const fires = [
    fire('2026-12-28T03:30:00.000Z', '2026-12-28T09:00:00.000+05:30'),
    fire('2026-12-28T03:30:30.000Z', '2026-12-28T09:00:30.000+05:30'),
  ];
  expect(timesOf(day('2026-12-28', { verdict: 'fires', fires }))).toEqual(['09:00', '09:00:30']);
  expect(wordsOf(day('2026-12-28', { verdict: 'fires', fires }))).toEqual([]);
});

it('a cell says why its day does not fire, where its fires go, and where they come from', () => {
  expect(wordsOf(day('2026-12-28', { verdict: 'fires', movedFrom: ['2026-12-25', '2026-12-26'] }))).toEqual([
    'from 25, 26',
  ]);
  expect(wordsOf(day('2026-12-25', { verdict: 'moved', movedTo: '2026-12-28' }))).toEqual(['moved to 28']);
  expect(wordsOf(day('2026-12-31', { verdict: 'moved', movedTo: '2027-01-04' }))).toEqual(['moved to 01-04']);
  expect(wordsOf(day('2026-12-01', { verdict: 'notPicked' }))).toEqual(['not picked']);
});

it('what excludes days is said once for all of them', () => {
  const [weekend, holiday] = [{ reason: 'weekday sat' }, { reason: 'calendar bank' }];
  const days = [
    day('2026-12-05', { verdict: 'excluded', ...weekend }),
    day('2026-12-12', { verdict: 'excluded', ...weekend }),
    day('2026-12-25', { verdict: 'moved', ...holiday, movedTo: '2026-12-28' }),
    day('2026-12-26', { verdict: 'notPicked' }),
  ];
  expect(notesOf(days)).toEqual([
    '5, 12: Excluded by weekday sat.',
    '25: Excluded by calendar bank, and moved to 2026-12-28.',
  ]);
});

it('fires before the first moment of the schedule, and from its last one on, are left out', () => {
  const fires = [fire('2026-12-10T08:00:00.000Z'), fire('2026-12-10T20:00:00.000Z')];
  const ofDay = day('2026-12-10', { verdict: 'fires', fires });
  const left = (from: string, end: string) =>
    within([ofDay], from, end).map((one) => [one.verdict, one.fires.length]);
  expect(left('', '')).toEqual([['fires', 2]]);
  expect(left('2026-12-10T08:00:00.000Z', '2026-12-10T20:00:00.000Z')).toEqual([['fires', 1]]);
  expect(left('2026-12-11T00:00:00.000Z', '')).toEqual([['outside', 0]]);
  // Of its later fires, which are not listed, some may lie within.
  expect(within([{ ...ofDay, more: true }], '2026-12-10T21:00:00.000Z', '')[0]?.verdict).toBe('fires');
});

it('a month has a name, and is asked for by a moment that lies in it in every zone', () => {
  expect([monthName('2026-12-01'), withinMonth('2026-12-01')]).toEqual([
    'December 2026',
    '2026-12-15T12:00:00Z',
  ]);
});
