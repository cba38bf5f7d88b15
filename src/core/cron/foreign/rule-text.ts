/** A recurrence rule as it is written (RFC 5545, 3.3.10). What it leaves out, the start of its series says. */
export interface RuleText {
  freq: (typeof FREQUENCIES)[number];
  interval: number;
  count: number | null;
  /** `20270131`, or `20270131T090000` with or without a Z. */
  until: string | null;
  weekStart: Weekday;
  /** Of each part that lists numbers: empty where it is missing. */
  numbers: Readonly<Record<NumberPart, readonly number[]>>;
  /** With their ordinal, which is 0 where there is none. */
  weekdays: readonly (readonly [ordinal: number, day: Weekday])[];
}

const FREQUENCIES = ['SECONDLY', 'MINUTELY', 'HOURLY', 'DAILY', 'WEEKLY', 'MONTHLY', 'YEARLY'] as const;
const WEEKDAYS = ['SU', 'MO', 'TU', 'WE', 'TH', 'FR', 'SA'] as const;
type Weekday = (typeof WEEKDAYS)[number];

/** From … to; where the first is negative, 0 is none of them. */
const RANGES = {
  BYSECOND: [0, 59],
  BYMINUTE: [0, 59],
  BYHOUR: [0, 23],
  BYMONTH: [1, 12],
  BYMONTHDAY: [-31, 31],
  BYYEARDAY: [-366, 366],
  BYWEEKNO: [-53, 53],
  BYSETPOS: [-366, 366],
} as const;
type NumberPart = keyof typeof RANGES;

const MAX_LENGTH = 2048;

/** @throws RuleFault for everything that a rule of the RFC does not have: guessing what was meant would be a guess at dates. */
export function readRuleText(text: string): RuleText {
  if (text.length > MAX_LENGTH) throw new RuleFault(`is longer than ${MAX_LENGTH} characters`);
  const parts = partsOf(text);
  const freq = FREQUENCIES.find((one) => one === parts.get('FREQ'));
  if (freq === undefined)
    throw new RuleFault(`has no FREQ that is known: ${parts.get('FREQ')?.slice(0, 30) ?? 'none'}`);
  const count = parts.get('COUNT');
  const until = parts.get('UNTIL') ?? null;
  if (until !== null && count !== undefined) throw new RuleFault('has both COUNT and UNTIL');
  if (until !== null && !/^\d{8}(?:T\d{6}Z?)?$/.test(until))
    throw new RuleFault(`has UNTIL=${until.slice(0, 30)}, which is no date`);
  const weekStart = WEEKDAYS.find((day) => day === (parts.get('WKST') ?? 'MO'));
  if (weekStart === undefined) throw new RuleFault('has a WKST that is no weekday');
  const numbers = Object.fromEntries(
    Object.entries(RANGES).map(([part, range]) => [part, numbersIn(part, parts.get(part), range)]),
  ) as Record<NumberPart, number[]>;
  return {
    freq,
    interval: countIn('INTERVAL', parts.get('INTERVAL') ?? '1'),
    count: count === undefined ? null : countIn('COUNT', count),
    until,
    weekStart,
    numbers,
    weekdays: (parts.get('BYDAY')?.split(',') ?? []).map(weekdayIn),
  };
}

/** Says what is wrong with a rule: to be read after “its RRULE”. */
export class RuleFault extends Error {
  override readonly name = 'RuleFault';
}

const KNOWN = new Set(['FREQ', 'INTERVAL', 'COUNT', 'UNTIL', 'WKST', 'BYDAY', ...Object.keys(RANGES)]);

function partsOf(text: string): Map<string, string> {
  const parts = new Map<string, string>();
  for (const part of text.toUpperCase().split(';')) {
    const equals = part.indexOf('=');
    const [name, value] = [part.slice(0, Math.max(0, equals)), part.slice(equals + 1)];
    if (value === '' || !KNOWN.has(name))
      throw new RuleFault(`has the part “${part.slice(0, 30)}”, which is not known`);
    if (parts.has(name)) throw new RuleFault(`has ${name} twice`);
    parts.set(name, value);
  }
  return parts;
}

function countIn(part: string, text: string): number {
  if (!/^0{0,9}[1-9]\d{0,8}$/.test(text))
    throw new RuleFault(`has ${part}=${text.slice(0, 30)}, which is no number from 1 on`);
  return Number(text);
}

function numbersIn(part: string, text: string | undefined, [min, max]: readonly [number, number]): number[] {
  return (text?.split(',') ?? []).map((item) => {
    const value = /^[+-]?\d{1,3}$/.test(item) ? Number(item) : NaN;
    if (!(value >= min && value <= max) || (min < 0 && value === 0))
      throw new RuleFault(`has “${item.slice(0, 30)}” in ${part}, which is no number from ${min} to ${max}`);
    return value;
  });
}

function weekdayIn(item: string): readonly [number, Weekday] {
  const [, ordinal = '0', name] = /^([+-]?\d{1,2})?([A-Z]{2})$/.exec(item) ?? [];
  const day = WEEKDAYS.find((one) => one === name);
  if (day === undefined || Math.abs(Number(ordinal)) > 53)
    throw new RuleFault(`has “${item.slice(0, 30)}” in BYDAY, which is no weekday`);
  return [Number(ordinal), day];
}

/** As firelock counts it: Sunday is 0. */
export function weekdayNumber(day: Weekday): number {
  return WEEKDAYS.indexOf(day);
}
