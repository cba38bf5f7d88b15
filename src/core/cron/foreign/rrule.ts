import { isoInstant } from '../../instant.ts';
import { isZone } from '../../zones/zone.ts';
import { type Field, HOUR, MINUTE, SECOND } from '../cron-fields.ts';
import {
  type ForeignFields,
  ALL,
  NotSayable,
  cronFields,
  instantIn,
  writtenField,
  zoneField,
} from './foreign-fields.ts';
import { type RuleText, RuleFault, readRuleText } from './rule-text.ts';
import { ruleDays } from './rule-days.ts';
import { DateTime } from 'luxon';

/** A rule, with or without `RRULE:`, and the lines DTSTART and EXDATE beside it. @throws NotSayable */
export function rruleFields(text: string, standard: string | null): ForeignFields {
  const { starts, exceptions, rules } = linesOf(text);
  const rule = ruleIn(rules[0] ?? '');
  if (rules.length > 1 || starts.length > 1) throw new NotSayable('only DTSTART and EXDATE may stand beside one rule');
  const [line] = starts;
  const start = line === undefined ? null : startIn(line, standard);
  const zone = start === null ? standard : start.zone;
  const fields = {
    ...fieldsOf(rule, start, zone),
    ...(start !== null && { startAt: start.instant }),
    ...(rule.until !== null && { endAt: endOf(rule.until, zone) }),
    ...(rule.count !== null && { count: rule.count }),
  };
  return { ...fields, ...exceptionDates(exceptions, fields, zone) };
}

function linesOf(text: string) {
  const lines = text
    .split(/[\r\n]+|[ \t](?=(?:RRULE:|EXDATE[;:]))/i)
    .map((line) => line.trim())
    .filter((line) => line !== '');
  const kinds = Map.groupBy(lines, (line) => /^(DTSTART|EXDATE)[;:]/i.exec(line)?.[1]?.toUpperCase());
  return {
    starts: kinds.get('DTSTART') ?? [],
    exceptions: kinds.get('EXDATE') ?? [],
    rules: kinds.get(undefined) ?? [],
  };
}

function fieldsOf(rule: RuleText, start: SeriesStart | null, zone: string | null): ForeignFields {
  const interval = intervalOf(rule);
  if (interval === null) return onDays(rule, start, zone);
  if (start === null || zone === null || zone === 'UTC') return { everySeconds: interval };
  return onDays(onTheClock(rule, start), start, zone);
}

interface SeriesStart {
  /** `2027-01-31`, `09:00:00`. */
  date: string;
  time: string;
  zone: string | null;
  instant: string;
}

function ruleIn(text: string): RuleText {
  try {
    return readRuleText(text.replace(/^RRULE:/i, ''));
  } catch (error) {
    throw error instanceof RuleFault ? new NotSayable(`the rule ${error.message}`) : error;
  }
}

const START = /^DTSTART(?:;TZID=([^:;]{1,64}))?(?:;VALUE=DATE-TIME)?:(\d{4})(\d\d)(\d\d)T(\d\d)(\d\d)(\d\d)(Z?)$/i;

function startIn(line: string, standard: string | null): SeriesStart {
  const [found, named, year, month, day, hour, minute, second, utc] = START.exec(line) ?? [];
  if (found === undefined) throw new NotSayable(`${line.slice(0, 60)} is no date with a time of day`);
  if (named !== undefined && !isZone(named)) throw new NotSayable(`${named} is not the IANA name of a zone`);
  const zone = utc === 'Z' ? 'UTC' : (named ?? standard);
  const [date, time] = [`${year}-${month}-${day}`, `${hour}:${minute}:${second}`];
  return { date, time, zone, instant: instantIn(`${date}T${time}`, zone) };
}

/** A rule’s end is a moment at which it may fire; a schedule’s is not. */
function endOf(until: string, zone: string | null): string {
  const [, year, month, day, hour, minute, second, utc] =
    /^(\d{4})(\d\d)(\d\d)T(\d\d)(\d\d)(\d\d)(Z?)$/.exec(until) ?? [];
  if (year === undefined) throw new NotSayable(`UNTIL=${until} has no time of day, which libraries read in two ways`);
  const last = instantIn(`${year}-${month}-${day}T${hour}:${minute}:${second}`, utc === 'Z' ? 'UTC' : zone);
  return isoInstant(Date.parse(last) + 1000);
}

const SECONDS = { SECONDLY: 1, MINUTELY: 60, HOURLY: 3600 } as const;

/** Null: it is no mere interval. */
function intervalOf({ freq, interval, numbers, weekdays }: RuleText): number | null {
  if (freq !== 'SECONDLY' && freq !== 'MINUTELY' && freq !== 'HOURLY') return null;
  const isLimited = weekdays.length > 0 || Object.values(numbers).some((list) => list.length > 0);
  if (!isLimited) return interval * SECONDS[freq];
  if (interval > 1)
    throw new NotSayable(`INTERVAL=${interval} of ${freq} beside parts that leave some of its fires out`);
  return null;
}

const CLOCK = {
  SECONDLY: ['BYSECOND', 2, 60],
  MINUTELY: ['BYMINUTE', 1, 60],
  HOURLY: ['BYHOUR', 0, 24],
} as const;

/** In a zone whose clocks change, a rule goes on by the clock, which an interval does not. */
function onTheClock(rule: RuleText, { time, zone }: SeriesStart): RuleText {
  const { freq, interval } = rule;
  const [part, place, size] = CLOCK[freq as keyof typeof CLOCK];
  if (size % interval !== 0)
    throw new NotSayable(`INTERVAL=${interval} of ${freq} in ${zone}, whose clocks may change: say it in UTC`);
  const first = Number(time.split(':')[place]) % interval;
  const values = Array.from({ length: size / interval }, (_, index) => first + index * interval);
  return { ...rule, interval: 1, numbers: { ...rule.numbers, [part]: values } };
}

function onDays(rule: RuleText, start: SeriesStart | null, zone: string | null): ForeignFields {
  const { numbers } = rule;
  const { every, pick, dayOfMonth = ALL, dayOfWeek = ALL, month } = ruleDays(rule, start?.date ?? null);
  const times = timesOf(rule, start?.time ?? null);
  const isOnce = Object.values(times).every(({ only }) => only !== null);
  if (numbers.BYSETPOS.length > 0 && !isOnce)
    throw new NotSayable('BYSETPOS counts times of day as well, where there are several');
  const { cron } = cronFields({ ...times, dayOfMonth, dayOfWeek, month, years: null }, 'both', null);
  return {
    ...(cron !== undefined && { cron }),
    ...zoneField(zone),
    ...(every && { every }),
    ...(pick && { pick }),
  };
}

const ORDER = ['SECONDLY', 'MINUTELY', 'HOURLY'];

/** A part that is finer than the frequency comes from the start of the series; a coarser one is all. */
function timesOf({ freq, numbers }: RuleText, time: string | null) {
  const [hour, minute, second] = (time?.split(':') ?? []).map(Number);
  const place = ORDER.indexOf(freq);
  const part = (field: Field, given: readonly number[], isFiner: boolean, value: number | undefined) => {
    if (given.length > 0) return writtenField(field, new Set(given));
    if (!isFiner) return ALL;
    if (value === undefined)
      throw new NotSayable(`it takes its ${field.label} from DTSTART: put that line before the rule`);
    return writtenField(field, new Set([value]));
  };
  return {
    second: part(SECOND, numbers.BYSECOND, place !== 0, second ?? 0),
    minute: part(MINUTE, numbers.BYMINUTE, place !== 0 && place !== 1, minute),
    hour: part(HOUR, numbers.BYHOUR, place === -1, hour),
  };
}

/**
 * The days that the EXDATE lines of a rule leave out. A moment leaves out its whole day where that has no other fire.
 * @throws NotSayable
 */
function exceptionDates(
  lines: readonly string[],
  fields: ForeignFields,
  zone: string | null,
): Pick<ForeignFields, 'exclude'> {
  if (lines.length === 0) return {};
  if (fields.pick !== undefined)
    throw new NotSayable('EXDATE beside BYSETPOS: another day would be picked in place of the one that is left out');
  const dates = lines.flatMap((line) => {
    const [, named, values = ''] = LINE.exec(line) ?? [];
    if (values === '') throw new NotSayable(`${line.slice(0, 60)} is no EXDATE with dates`);
    if (named !== undefined && !isZone(named)) throw new NotSayable(`${named} is not the IANA name of a zone`);
    return values.split(',').map((value) => dateOf(value, { fields, zone, written: named ?? zone }));
  });
  return { exclude: { dates: [...new Set(dates)].sort() } };
}

const LINE = /^EXDATE(?:;(?:VALUE=DATE(?:-TIME)?|TZID=([^:;]{1,64})))*:([\dTZ,]+)$/i;
const VALUE = /^(\d{4})(\d\d)(\d\d)(?:T(\d\d)(\d\d)(\d\d)(Z?))?$/i;

interface Place {
  fields: ForeignFields;
  /** Of the schedule, and of the moment as it is written. */
  zone: string | null;
  written: string | null;
}

function dateOf(value: string, { fields, zone, written }: Place): string {
  const [found, year, month, day, hour, minute, second, utc] = VALUE.exec(value) ?? [];
  if (found === undefined) throw new NotSayable(`EXDATE has “${value.slice(0, 30)}”, which is no date`);
  const date = `${year}-${month}-${day}`;
  if (hour === undefined) return date;
  const instant = instantIn(`${date}T${hour}:${minute}:${second}`, utc === '' ? written : 'UTC');
  const there = DateTime.fromISO(instant, { zone: zone ?? 'UTC' });
  const time = onlyTime(fields);
  if (time === null)
    throw new NotSayable(`EXDATE ${value} leaves out one of several fires of its day: exclude knows whole days`);
  if (there.toFormat('H:m:s') !== time) throw new NotSayable(`EXDATE ${value} is no moment at which it fires`);
  return there.toFormat('yyyy-MM-dd');
}

/** The one time of day at which it fires; null: there are several. */
function onlyTime({ cron }: ForeignFields): string | null {
  if (typeof cron !== 'string') return null;
  const found = /^(?:(\d+) (?=\S+ \S+ \S+ \S+ \S+$))?(\d+) (\d+) \S+ \S+ \S+$/.exec(cron);
  const [, second = '0', minute, hour] = found ?? [];
  return minute === undefined ? null : `${hour}:${minute}:${second}`;
}
