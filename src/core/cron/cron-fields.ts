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
