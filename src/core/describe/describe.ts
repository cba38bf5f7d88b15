import {
  type Cron,
  expressionsOf,
  HOUR,
  MIN_RUN,
  MINUTE,
  runItems,
  runsOf,
  SECOND,
  stepOf,
} from '../cron/cron-fields.ts';
import { type ParsedCron, parseCron, valuesOf } from '../cron/cron-parse.ts';
import { daysInWords, listed } from './describe-days.ts';

/** Describes in English what firelock fires: `H` and `?` with their values for this schedule. Throws CronError. */
export function describeCron(cron: Cron, scheduleId: string): string {
  const [first = '', ...others] = expressionsOf(cron).map((one) => describeExpression(one, scheduleId));
  // Semicolons: each description has commas of its own.
  const last = others.length - 1;
  const further = others.map((text, index) => `; ${index === last ? 'and ' : ''}${inSentence(text)}`);
  return [first, ...further].join('');
}

const inSentence = (text: string): string => text.charAt(0).toLowerCase() + text.slice(1);

function describeExpression(expression: string, scheduleId: string): string {
  // It describes the sets of values, not their spelling: `*/45` is not “every 45 minutes”.
  const parsed = parseCron(expression, scheduleId);
  return `${timesInWords(parsed)}${daysInWords(parsed)}`;
}

const UNITS = [
  ['day', 86_400],
  ['hour', 3600],
  ['minute', 60],
  ['second', 1],
] as const;
/** Up to this value, one unit is easier to read than two. */
const MAX_OF_ONE_UNIT = 120;

/** `Every 90 seconds`, `Every day`, `Every 2 hours 1 minute`. */
export function describeInterval(everySeconds: number): string {
  return `Every ${secondsInWords(everySeconds).replace(/^1 (?=\w+$)/, '')}`;
}

/** `1 day`, `90 seconds`, `2 hours 1 minute`. */
export function secondsInWords(seconds: number): string {
  for (const [unit, size] of UNITS) {
    const count = seconds / size;
    if (count === 1 || (Number.isInteger(count) && (count <= MAX_OF_ONE_UNIT || unit === 'day')))
      return counted(count, unit);
  }
  let left = seconds;
  const parts: string[] = [];
  for (const [unit, size] of UNITS) {
    const count = Math.floor(left / size);
    left -= count * size;
    if (count > 0) parts.push(counted(count, unit));
  }
  return parts.join(' ');
}

const counted = (count: number, unit: string): string => `${count} ${unit}${count === 1 ? '' : 's'}`;

/** The times of a day, such as `At 09:00` and `Every 15 minutes, between 09:00 and 17:59`. */
function timesInWords(parsed: ParsedCron): string {
  const seconds = valuesOf(SECOND, parsed.second);
  const minutes = valuesOf(MINUTE, parsed.minute);
  const hours = valuesOf(HOUR, parsed.hour);
  const everyHours = hourly(seconds, minutes, hours);
  if (everyHours !== null) return everyHours;
  const count = seconds.length * minutes.length * hours.length;
  if (count <= (count === hours.length ? MAX_HOURS : MAX_TIMES)) return eachTime(seconds, minutes, hours);
  const within = [withinHour(seconds, minutes), ...hourWindows(hours)];
  return within.join(', ');
}

/** At most this many times of a day are listed one by one; more if they differ only in the hour. */
const MAX_TIMES = 4;
const MAX_HOURS = 6;
/** At least this many steps are described as steps. */
const MIN_STEPS = 5;
/** If there are more runs of hours than this, the text names the hours. */
const MAX_WINDOWS = 3;

const two = (value: number): string => String(value).padStart(2, '0');

function eachTime(seconds: number[], minutes: number[], hours: number[]): string {
  const withSeconds = seconds.length > 1 || seconds[0] !== 0;
  const times = hours.flatMap((hour) =>
    minutes.flatMap((minute) =>
      seconds.map((second) => `${two(hour)}:${two(minute)}${withSeconds ? `:${two(second)}` : ''}`),
    ),
  );
  return `At ${listed(times)}`;
}

/** Once in each of many hours, at the same minute. */
function hourly(seconds: number[], minutes: number[], hours: number[]): string | null {
  const step = stepOf(hours);
  const [minute = 0] = minutes;
  if (seconds.length > 1 || seconds[0] !== 0 || minutes.length > 1 || step === null) return null;
  if (hours.length === 24) return minute === 0 ? 'Every hour' : null;
  if (hours.length < (step === 1 ? MIN_RUN : MIN_STEPS)) return null;
  const [from = 0, to = 0] = [hours[0], hours.at(-1)];
  return `Every ${step === 1 ? 'hour' : `${step} hours`}, from ${two(from)}:${two(minute)} through ${two(to)}:${two(minute)}`;
}

function withinHour(seconds: number[], minutes: number[]): string {
  const onTheMinute = seconds.length === 1 && seconds[0] === 0;
  if (onTheMinute) return sixtieths(minutes, 'minute', 'hour');
  const text = sixtieths(seconds, 'second', 'minute');
  return minutes.length === 60 ? text : `${text}, ${inMinutes(minutes)}`;
}

/** The seconds of a minute, or the minutes of an hour. */
function sixtieths(set: number[], unit: string, of: string): string {
  const [first = 0] = set;
  const step = stepOf(set);
  if (set.length === 60) return `Every ${unit}`;
  if (step !== null && first === 0 && step * set.length === 60) return `Every ${step} ${unit}s`;
  if (step !== null && set.length >= (step === 1 ? MIN_RUN : MIN_STEPS)) {
    const every = step === 1 ? unit : `${step} ${unit}s`;
    return `Every ${every} from ${first} through ${set.at(-1)} past the ${of}`;
  }
  if (set.length === 1 && first === 0) return `On the ${of}`;
  const one = set.length === 1 && first === 1;
  return `At ${listed(runItems(runsOf(set), String))} ${unit}${one ? '' : 's'} past the ${of}`;
}

/** If the seconds vary: the minutes to which they belong. */
function inMinutes(set: number[]): string {
  const step = stepOf(set);
  if (step !== null && step > 1 && set.length >= MIN_STEPS)
    return `in minutes ${set[0]} through ${set.at(-1)} of the hour in steps of ${step}`;
  return `in minute${set.length === 1 ? '' : 's'} ${listed(runItems(runsOf(set), String))} of the hour`;
}

function hourWindows(hours: number[]): string[] {
  if (hours.length === 24) return [];
  const runs = runsOf(hours);
  if (runs.length > MAX_WINDOWS)
    return [`in the hours that begin at ${listed(hours.map((hour) => `${two(hour)}:00`))}`];
  const windows = runs.map((run) => `between ${two(run[0] ?? 0)}:00 and ${two(run.at(-1) ?? 0)}:59`);
  return [listed(windows)];
}
