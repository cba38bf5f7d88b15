import type { ExplainedDay } from '../../../../clients/typescript/src/generated/types.gen.ts';
import { weekdayOf } from '../../state/local-time.ts';

/** Weeks from Monday to Sunday; null: a day of another month. */
export function weeksOf(days: readonly ExplainedDay[]): (ExplainedDay | null)[][] {
  const [first] = days;
  if (!first) return [];
  const cells = [...Array<null>(weekdayOf(first.date)).fill(null), ...days];
  return Array.from({ length: Math.ceil(cells.length / 7) }, (_, week) =>
    Array.from({ length: 7 }, (__, weekday) => cells[week * 7 + weekday] ?? null),
  );
}

/** A preview knows nothing of the first and the last moment of the schedule that it is for. Empty: there is none. */
export function within(days: readonly ExplainedDay[], startAt: string, endAt: string): ExplainedDay[] {
  const from = startAt === '' ? -Infinity : Date.parse(startAt);
  const end = endAt === '' ? Infinity : Date.parse(endAt);
  return days.map((day) => {
    const fires = day.fires.filter(({ fireAt }) => Date.parse(fireAt) >= from && Date.parse(fireAt) < end);
    const isOutside = day.fires.length > 0 && fires.length === 0 && !day.more;
    return isOutside ? { date: day.date, verdict: 'outside', fires } : { ...day, fires };
  });
}

/** `09:00`; `09:00:30`, if there are seconds to tell. */
export const timesOf = ({ fires }: ExplainedDay): string[] =>
  fires.map(({ local }) => local.slice(11, local.slice(17, 19) === '00' ? 16 : 19));

const IN_A_WORD: Record<ExplainedDay['verdict'], string> = {
  ...{ fires: '', notSelected: 'not selected', notItsTurn: 'not its turn', excluded: 'excluded' },
  ...{ moved: '', notPicked: 'not picked', outside: 'outside', clocks: 'clocks', noSuchDate: 'no such day' },
};

/** Of a day without fires, why; and from where its fires come, or where they go. */
export function wordsOf({ date, verdict, movedTo, movedFrom = [] }: ExplainedDay): string[] {
  const seenFrom = (other: string) => (other.slice(0, 7) === date.slice(0, 7) ? dayOf(other) : other.slice(5));
  return [
    IN_A_WORD[verdict],
    ...(movedTo === undefined ? [] : [`moved to ${seenFrom(movedTo)}`]),
    ...(movedFrom.length === 0 ? [] : [`from ${movedFrom.map(seenFrom).join(', ')}`]),
  ].filter((word) => word !== '');
}

/** What the words in the cells leave open, each said once for all of its days. */
export function notesOf(days: readonly ExplainedDay[]): string[] {
  const notes = new Map<string, string[]>();
  const add = (note: string, date: string) => notes.set(note, [...(notes.get(note) ?? []), dayOf(date)]);
  for (const { date, verdict, reason, movedTo } of days) {
    if (movedTo !== undefined) add(`Excluded by ${reason ?? 'an edit'}, and moved to ${movedTo}`, date);
    else if (reason !== undefined) add(`Excluded by ${reason}`, date);
    if (verdict === 'clocks') add('Clocks skip its hour: it fires as the next day begins', date);
    if (verdict === 'outside') add('Before the first moment of the schedule, or after its last one', date);
  }
  return [...notes].map(([note, dates]) => `${dates.join(', ')}: ${note}.`);
}

/** `December 2026` */
export function monthName(date: string): string {
  const format = new Intl.DateTimeFormat('en-GB', { month: 'long', year: 'numeric', timeZone: 'UTC' });
  return format.format(Date.parse(date));
}

/** A moment that lies in the month of a day wherever clocks show it. */
export const withinMonth = (day: string): string => `${day.slice(0, 7)}-15T12:00:00Z`;

const dayOf = (date: string): string => String(Number(date.slice(8)));
