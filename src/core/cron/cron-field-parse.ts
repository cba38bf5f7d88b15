import { hash } from 'node:crypto';
import { DAY_OF_MONTH, DAY_OF_WEEK, type Field, valueOf } from './cron-fields.ts';
import { explainItem } from './cron-hints.ts';

/** The values that a field selects. */
export interface FieldValues {
  /** Bit n of `low` is the value n. For seconds and minutes, bit n of `high` is the value 30 + n; other fields use only `low`. */
  low: number;
  high: number;
  /** Day fields: values that no set of numbers can express, as croner writes them: `L`, `LW`, `15W`, `5L`, `5#2`. */
  special: string[];
  /** The text is `*` or `*` in steps of one, which restricts nothing. */
  any: boolean;
  /** The text has `H` or `?`: it depends on the schedule's id. */
  hashed: boolean;
}

/** `at`: the position in the field's text. */
export interface CronFault {
  fault: string;
  at: number;
}

export function parseField(field: Field, text: string, scheduleId: string): FieldValues | CronFault {
  const values: FieldValues = {
    low: 0,
    high: 0,
    special: [],
    any: /^\*(\/0*1)?$/.test(text),
    hashed: false,
  };
  const items = text.split(',');
  let at = 0;
  for (const item of items) {
    const read = special(field, item, items.length) ?? plain(field, item, scheduleId);
    if (read === null) return { fault: explainItem(field, item, items.length), at };
    add(values, field, read);
    at += item.length + 1;
  }
  return values;
}

/** In order, without specials. */
export function valuesOf({ min, max }: Field, { low, high }: FieldValues): number[] {
  const values: number[] = [];
  for (let value = min; value <= max; value += 1) {
    const bits = max === 59 && value >= 30 ? high >>> (value - 30) : low >>> value;
    if (bits & 1) values.push(value);
  }
  return values;
}

/** Values from … to in steps, or a special value. */
interface Item {
  from?: number;
  to?: number;
  step?: number;
  special?: string;
  hashed?: boolean;
}

function add(values: FieldValues, field: Field, item: Item): void {
  if (item.special !== undefined) values.special.push(item.special);
  if (item.hashed) values.hashed = true;
  const { from = 1, to = 0, step = 1 } = item;
  for (let value = from; value <= to; value += step) {
    if (field.max === 59 && value >= 30) values.high |= 1 << (value - 30);
    else values.low |= 1 << (field === DAY_OF_WEEK ? value % 7 : value);
  }
}

/** `L`, `LW` (alone), `nW` · `nL`, `n#k`. Null: none of these. */
function special(field: Field, item: string, items: number): Item | null {
  if (field === DAY_OF_MONTH) {
    const [, day, letters] = /^(\d*)(L|LW|W)$/i.exec(item) ?? [];
    const text = `${day === '' ? '' : Number(day)}${letters?.toUpperCase()}`;
    if (text === 'L' || (text === 'LW' && items === 1)) return { special: text };
    return /^([1-9]|[12]\d|3[01])W$/.test(text) ? { special: text } : null;
  }
  if (field !== DAY_OF_WEEK) return null;
  const [, name = '', nth = ''] = /^(\w+?)(L|#0*[1-5])$/i.exec(item) ?? [];
  const day = valueOf(field, name);
  if (day === null || day > field.written) return null;
  return { special: `${day % 7}${nth.toUpperCase().replace(/#0+/, '#')}` };
}

/** `*`, `?`, `H`, `H(a-b)`, a value or a range, and a step on any but `?` and a value. */
const PLAIN = /^(?:(\*)|(\?)|(H)(?:\((\w+)-(\w+)\))?|(\w+)(?:-(\w+))?)(?:\/(\d+))?$/i;

function plain(field: Field, item: string, scheduleId: string): Item | null {
  const [, star, question, hash, hashFrom, hashTo, from, to, stepText] = PLAIN.exec(item) ?? [];
  const step = stepText === undefined ? 1 : Number(stepText);
  if (step < 1 || step > field.max - field.min + 1) return null;
  if (star) return { from: field.min, to: field.max, step };
  if (question) {
    if (field === DAY_OF_MONTH || field === DAY_OF_WEEK || stepText !== undefined) return null;
    return hashedItem(field, field.hashed, null, scheduleId);
  }
  if (hash) {
    const range = hashFrom === undefined ? field.hashed : rangeOf(field, hashFrom, hashTo);
    return range && hashedItem(field, range, stepText === undefined ? null : step, scheduleId);
  }
  if (from === undefined || (to === undefined && stepText !== undefined)) return null;
  const range = rangeOf(field, from, to ?? from);
  return range && { from: range[0], to: range[1], step };
}

/** Null: these are no values of the field, or the wrong way round. Sunday can end a week or begin it. */
function rangeOf(field: Field, from: string, to: string | undefined): readonly [number, number] | null {
  const first = valueOf(field, from);
  let last = valueOf(field, to ?? from);
  if (first === null || last === null) return null;
  if (field === DAY_OF_WEEK && last === 0 && first > 0 && to?.toUpperCase() === 'SUN') last = 7;
  return first >= field.min && first <= last && last <= field.written ? [first, last] : null;
}

function hashedItem(
  field: Field,
  [from, to]: readonly [number, number],
  step: number | null,
  scheduleId: string,
): Item {
  const count = to - from + 1;
  const first = from + pick(scheduleId, field, step === null ? count : Math.min(step, count));
  return { from: first, to: step === null ? first : to, step: step ?? 1, hashed: true };
}

/**
 * The value that firelock chooses for `H` and `?`: SHA-256 of `id/field`, read as one unsigned number (its first byte
 * is the most significant), modulo the number of values. The result is 0 … count − 1, the same on every instance and
 * for ever.
 */
function pick(scheduleId: string, { key }: Field, count: number): number {
  const digest = hash('sha256', `${scheduleId}/${key}`, 'hex');
  return Number(BigInt(`0x${digest}`) % BigInt(count));
}
