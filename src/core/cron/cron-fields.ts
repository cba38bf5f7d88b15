/** One of the six fields of an expression. */
export interface Field {
  /** The field's name in messages. */
  label: string;
  /** The key for hashing `H` and `?`: `id/key`. */
  key: 'second' | 'minute' | 'hour' | 'dayOfMonth' | 'month' | 'dayOfWeek';
  min: number;
  max: number;
  /** The greatest number that may be written: 7 is Sunday as well. */
  written: number;
  /** The values from which `H` chooses if the expression names none: every month has 28 days. */
  hashed: readonly [number, number];
  /** Names of the values from `min` on: in full, and as they may be written. */
  full: readonly string[];
  names: readonly string[];
}

const field = (
  key: Field['key'],
  label: string,
  min: number,
  max: number,
  { full = [], ...more }: Partial<Field> = {},
): Field => ({
  key,
  label,
  min,
  max,
  written: max,
  hashed: [min, max],
  full,
  names: full.map((name) => name.slice(0, 3).toUpperCase()),
  ...more,
});

export const SECOND = field('second', 'second', 0, 59);
export const MINUTE = field('minute', 'minute', 0, 59);
export const HOUR = field('hour', 'hour', 0, 23);
export const DAY_OF_MONTH = field('dayOfMonth', 'day of month', 1, 31, { hashed: [1, 28] });
export const MONTH = field('month', 'month', 1, 12, {
  full: 'January February March April May June July August September October November December'.split(' '),
});
export const DAY_OF_WEEK = field('dayOfWeek', 'day of week', 0, 6, {
  written: 7,
  full: 'Sunday Monday Tuesday Wednesday Thursday Friday Saturday'.split(' '),
});

/** Null: neither a number nor a name of this field. The number need not be in range. */
export function valueOf(of: Field, text: string): number | null {
  if (/^\d+$/.test(text)) return Number(text);
  const index = of.names.indexOf(text.toUpperCase());
  return index < 0 ? null : of.min + index;
}

/** How to write a value beside names, or beside numbers. */
export function written(of: Field, value: number, asName: boolean): string {
  const name = asName ? of.names[value === 7 ? 0 : value - of.min] : undefined;
  return name ?? String(value);
}

const MAX_QUOTE_LENGTH = 30;

/** No more of a text than a person can read. */
export function quoted(text: string): string {
  return `“${text.length > MAX_QUOTE_LENGTH ? `${text.slice(0, MAX_QUOTE_LENGTH)}…` : text}”`;
}

/** The expressions of a schedule: one, or several, each of which makes it fire. */
export type Cron = string | readonly string[];

export const MIN_EXPRESSIONS = 2;
export const MAX_EXPRESSIONS = 16;

/** Whether a field may be hashed from the schedule's id. */
export function mayHash(cron: Cron): boolean {
  return typeof cron === 'string' ? HASHED.test(cron) : cron.some((expression) => HASHED.test(expression));
}

/** Not the letter of THU. */
const HASHED = /\?|(?<!T)H/i;

export function expressionsOf(cron: Cron): readonly string[] {
  return typeof cron === 'string' ? [cron] : cron;
}

/** At least this many neighbours are written as `3 through 5`. */
export const MIN_RUN = 3;

/** Divides a sorted set into runs of neighbours. */
export function runsOf(set: readonly number[]): number[][] {
  const runs: number[][] = [];
  for (const value of set) {
    const run = runs.at(-1);
    if (run?.at(-1) === value - 1) run.push(value);
    else runs.push([value]);
  }
  return runs;
}

/** The runs as items of a list. */
export function runItems(runs: readonly (readonly number[])[], nameOf: (value: number) => string): string[] {
  return runs.flatMap((run) => {
    const names = run.map(nameOf);
    return run.length < MIN_RUN ? names : [`${names[0]} through ${names.at(-1)}`];
  });
}

/** The step that leads through a whole sorted set; null: there is none. */
export function stepOf(set: readonly number[]): number | null {
  const [first = 0, second = 0] = set;
  const step = second - first;
  return set.length > 1 && set.every((value, index) => value === first + index * step) ? step : null;
}
