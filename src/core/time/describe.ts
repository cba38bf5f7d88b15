import cronstrue from 'cronstrue';
import { type FieldValues, valuesOf } from './cron-field.ts';
import { DAY_OF_WEEK, type Field, DAY_OF_MONTH, HOUR, MINUTE, MONTH, SECOND } from './cron-fields.ts';
import { type ParsedCron, parseCron } from './cron-parse.ts';

/** Plain English of what firelock fires: `H` and `?` as chosen for this schedule. Throws CronError. */
export function describeCron(expression: string, scheduleId: string): string {
  const parsed = parseCron(expression, scheduleId);
  const text = inWords(parsed, dayOfMonthText(parsed.dayOfMonth));
  const nearest = nearestWeekdays(parsed.dayOfMonth);
  return nearest === null ? text : text.replace(IN_PLACE_OF_NEAREST, nearest);
}

const UNITS = [
  ['day', 86_400],
  ['hour', 3600],
  ['minute', 60],
  ['second', 1],
] as const;
/** Up to here one unit is easier to read than two. */
const MOST_OF_ONE_UNIT = 120;

/** `Every 90 seconds`, `Every day`, `Every 2 hours 1 minute`. */
export function describeInterval(everySeconds: number): string {
  for (const [unit, size] of UNITS) {
    const count = everySeconds / size;
    if (count === 1) return `Every ${unit}`;
    if (Number.isInteger(count) && (count <= MOST_OF_ONE_UNIT || unit === 'day'))
      return `Every ${counted(count, unit)}`;
  }
  let left = everySeconds;
  const parts: string[] = [];
  for (const [unit, size] of UNITS) {
    const count = Math.floor(left / size);
    left -= count * size;
    if (count > 0) parts.push(counted(count, unit));
  }
  return `Every ${parts.join(' ')}`;
}

const counted = (count: number, unit: string): string => `${count} ${unit}${count === 1 ? '' : 's'}`;

/** Cronstrue reads the sets of values, not how they were spelled: of `*`/45 it would say “every 45 minutes”. */
function inWords(parsed: ParsedCron, dayOfMonth: string): string {
  const fields = [
    setText(SECOND, parsed.second),
    setText(MINUTE, parsed.minute),
    setText(HOUR, parsed.hour),
    dayOfMonth,
    setText(MONTH, parsed.month),
    dayOfWeekText(parsed),
  ].join(' ');
  try {
    return cronstrue.toString(fields, {
      use24HourTimeFormat: true,
      logicalAndDayFields: parsed.bothDays,
    });
  } catch {
    return `At the times of ${fields}${parsed.bothDays ? ' (both day fields)' : ''}`;
  }
}

function dayOfMonthText(values: FieldValues): string {
  if (values.special.some((special) => /\dW$/.test(special))) return '15W';
  return joined(setText(DAY_OF_MONTH, values), values.special);
}

/** Cronstrue knows one `nW` alone: it is asked for `15W`, and here is what firelock has instead of it. */
const IN_PLACE_OF_NEAREST = 'on the weekday nearest day 15 of the month';

function nearestWeekdays(values: FieldValues): string | null {
  const nearest = values.special.filter((special) => /\dW$/.test(special));
  if (nearest.length === 0) return null;
  const days = nearest.map((special) => parseInt(special)).toSorted((a, b) => a - b);
  const text = `on the weekday nearest day ${listed([...new Set(days)])} of the month`;
  const others = joined(
    setText(DAY_OF_MONTH, values),
    values.special.filter((special) => special === 'L'),
  );
  if (others === '') return text;
  const [, ...words] = cronstrue.toString(`0 0 ${others} * *`).split(', ');
  return `${words.join(', ')} and ${text}`;
}

const listed = (days: number[]): string =>
  days.length === 1 ? String(days[0]) : `${days.slice(0, -1).join(', ')} and ${days.at(-1)}`;

function dayOfWeekText({ dayOfWeek: values, dayOfMonth }: ParsedCron): string {
  if (values.any || (dayOfMonth.any && values.low === 127)) return '*';
  // A week that ends on Sunday reads better than one that is torn: Friday through Sunday.
  const low = values.low === 127 || (values.low & 1) === 0 ? values.low : (values.low & ~1) | 128;
  return joined(
    setText({ ...DAY_OF_WEEK, max: 7 }, { ...values, low }),
    [...new Set(values.special)].toSorted(),
  );
}

const joined = (set: string, special: readonly string[]): string =>
  [set, ...new Set(special)].filter((text) => text !== '').join(',');

/** A run of so many is written as a range, steps of so many as steps. */
const LEAST_RUN = 3;
const LEAST_STEPS = 5;

/** A set as cronstrue says it best: all, even steps, or a list of values and runs. Empty: no values. */
function setText(field: Field, values: FieldValues): string {
  const set = valuesOf(field, values);
  const [first = 0, second = 0] = set;
  const last = set.at(-1) ?? 0;
  const size = field.max - field.min + 1;
  if (values.any || (set.length === size && field !== DAY_OF_MONTH)) return '*';
  const step = second - first;
  const steps = set.every((value, index) => value === first + index * step);
  if (steps && step > 1 && field.key !== 'dayOfWeek') {
    if (first === field.min && set.length * step === size && (step < 12 || field !== HOUR))
      return `*/${step}`;
    if (set.length >= LEAST_STEPS) return `${first}-${last}/${step}`;
  }
  return runsOf(set);
}

function runsOf(set: readonly number[]): string {
  const runs: number[][] = [];
  for (const value of set) {
    const run = runs.at(-1);
    if (run?.at(-1) === value - 1) run.push(value);
    else runs.push([value]);
  }
  return runs
    .flatMap((run) => (run.length < LEAST_RUN ? run.map(String) : [`${run[0]}-${run.at(-1)}`]))
    .join(',');
}
