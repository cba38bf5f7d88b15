import { get } from '../../api/http.ts';
import type { ListCalendarsResponse } from '../../../../clients/typescript/src/generated/types.gen.ts';
import { usePoll } from '../../state/poll.ts';
import { ChecksField } from './checks.tsx';
import { WEEKDAYS } from './day-draft.ts';
import { AreaField, SelectField, TextField } from '../../parts/forms/draft-fields.tsx';
import type { Part } from './inputs.tsx';

const SELDOM = { everyMs: 60_000 };
const MOVES = [
  ['skip', 'are not made'],
  ['next', 'are made on the next day that is not'],
  ['previous', 'are made on the day before that is not'],
] as const;
const UNITS = [
  ['day', 'days'],
  ['week', 'weeks'],
  ['month', 'months'],
] as const;
const PERIODS = [
  ['week', 'of the week'],
  ['month', 'of the month'],
  ['quarter', 'of the quarter'],
  ['year', 'of the year'],
] as const;

/** Days on which it does not fire. */
export function ExcludeFields({ part }: { part: Part }) {
  const { draft, change, faults } = part;
  const calendars = usePoll(
    'calendars',
    (signal) => get<ListCalendarsResponse>('/calendars', { limit: 100 }, signal),
    SELDOM,
  );
  const known = calendars.data?.items.map(({ id }) => id) ?? [];
  return (
    <>
      <ChecksField
        {...{ label: 'Not on these weekdays', path: '/exclude/weekdays', faults, options: WEEKDAYS }}
        chosen={draft.excludeWeekdays}
        onChange={(excludeWeekdays) => change({ excludeWeekdays })}
      />
      <AreaField
        {...{ part, path: '/exclude/dates', name: 'excludeDates', rows: 3 }}
        label="Not on these days"
        hint="One a line: 2026-12-24, or from one day to another: 2026-12-24/2027-01-02."
      />
      <ChecksField
        {...{ label: 'Not on the days of these calendars', path: '/exclude/calendars', faults }}
        options={[...new Set([...known, ...draft.excludeCalendars])]}
        chosen={draft.excludeCalendars}
        onChange={(excludeCalendars) => change({ excludeCalendars })}
        empty="There are no calendars."
      />
    </>
  );
}

/** Which days of those that the expression selects, and what becomes of the excluded ones. */
export function DayRuleFields({ part }: { part: Part }) {
  return (
    <>
      <SelectField
        {...{ part, path: '/onExcluded', name: 'onExcluded', options: MOVES }}
        label="Fires of an excluded day"
      />
      <TextField
        {...{ part, path: '/every/n', name: 'everyN', type: 'number' }}
        label="Only every n-th"
        hint="2 with weeks: every other week. Empty: every one."
      />
      <SelectField {...{ part, path: '/every/unit', name: 'everyUnit', options: UNITS }} label="Counted in" />
      <TextField
        {...{ part, path: '/every/from', name: 'everyFrom' }}
        label="From this day on"
        hint="A day of the first one: 2027-01-04."
      />
      <TextField
        {...{ part, path: '/pick', name: 'pickNth' }}
        label="Only the n-th of these days"
        hint="-1: the last one; 1, 3: the first and the third. Empty: all of them."
      />
      <SelectField {...{ part, path: '/pick/of', name: 'pickOf', options: PERIODS }} label="Counted in each" />
    </>
  );
}
