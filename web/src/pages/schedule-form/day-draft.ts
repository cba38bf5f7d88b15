import type { Schedule, VersionedSchedule } from '../../../../clients/typescript/src/generated/types.gen.ts';
import { linesOf } from '../../parts/endpoint/endpoint-draft.ts';
import { numberOf } from './typed.ts';

/** What is typed about days. */
export interface DayDraft {
  /** One a line. */
  excludeDates: string;
  excludeCalendars: readonly string[];
  excludeWeekdays: readonly string[];
  onExcluded: string;
  /** Empty: every day, week and month. */
  everyN: string;
  everyUnit: string;
  everyFrom: string;
  /** Numbers with commas between them; empty: none is picked. */
  pickNth: string;
  pickOf: string;
}

export const WEEKDAYS = ['mon', 'tue', 'wed', 'thu', 'fri', 'sat', 'sun'];

export const EMPTY_DAYS: DayDraft = {
  ...{ excludeDates: '', excludeCalendars: [], excludeWeekdays: [], onExcluded: 'skip' },
  ...{ everyN: '', everyUnit: 'week', everyFrom: '', pickNth: '', pickOf: 'month' },
};

export function dayDraftOf({ exclude, onExcluded, every, pick }: Schedule | VersionedSchedule): DayDraft {
  return {
    excludeDates: (exclude?.dates ?? []).join('\n'),
    excludeCalendars: exclude?.calendars ?? [],
    excludeWeekdays: exclude?.weekdays ?? [],
    onExcluded,
    everyN: every === null ? '' : String(every.n),
    everyUnit: every?.unit ?? EMPTY_DAYS.everyUnit,
    everyFrom: every?.from ?? '',
    pickNth: (pick?.nth ?? []).join(', '),
    pickOf: pick?.of ?? EMPTY_DAYS.pickOf,
  };
}

/** Of another kind than `cron`, a schedule has no days but excluded ones. */
export function daysOf(draft: DayDraft, kind: string): Record<string, unknown> {
  const [dates, calendars] = [linesOf(draft.excludeDates), draft.excludeCalendars];
  const weekdays = WEEKDAYS.filter((day) => draft.excludeWeekdays.includes(day));
  const excludes = kind !== 'after' && dates.length + calendars.length + weekdays.length > 0;
  const isCron = kind === 'cron';
  const nth = draft.pickNth.split(/[\s,]+/).filter((text) => text !== '');
  return {
    exclude: excludes ? { dates, calendars, weekdays } : null,
    onExcluded: isCron ? draft.onExcluded : 'skip',
    every: isCron && draft.everyN.trim() !== '' ? everyOf(draft) : null,
    pick: isCron && nth.length > 0 ? { of: draft.pickOf, nth: nth.map(numberOf) } : null,
  };
}

function everyOf({ everyN, everyUnit, everyFrom }: DayDraft) {
  return { n: numberOf(everyN), unit: everyUnit, from: everyFrom.trim() };
}

export function hasDays(draft: DayDraft): boolean {
  return JSON.stringify(daysOf(draft, 'cron')) !== JSON.stringify(daysOf(EMPTY_DAYS, 'cron'));
}
