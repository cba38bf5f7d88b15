import { hash } from 'node:crypto';
import { type Field, DAY_OF_MONTH, DAY_OF_WEEK, HOUR, MINUTE, MONTH, SECOND, valueOf } from './cron-fields.ts';
import { explainFields, explainItem, explainShape } from './cron-hints.ts';

export const MAX_EXPRESSION_LENGTH = 256;

/** A parsed expression, with the values for `H` and `?` already chosen. */
export interface ParsedCron {
  second: FieldValues;
  minute: FieldValues;
  hour: FieldValues;
  dayOfMonth: FieldValues;
  month: FieldValues;
  dayOfWeek: FieldValues;
  /** If both day fields are restricted, a day must match both; otherwise one of them is enough. */
  bothDays: boolean;
  /** Some field depends on the schedule's id. */
  hashed: boolean;
}

const NICKNAMES = new Map([
  ['@yearly', '0 0 1 1 *'],
  ['@annually', '0 0 1 1 *'],
  ['@monthly', '0 0 1 * *'],
  ['@weekly', '0 0 * * 0'],
  ['@daily', '0 0 * * *'],
  ['@midnight', '0 0 * * *'],
  ['@hourly', '0 * * * *'],
]);

/** @throws CronError that names each faulty field, with the column (from 1) of its first fault */
export function parseCron(expression: string, scheduleId: string): ParsedCron {
  if (expression.length > MAX_EXPRESSION_LENGTH) {
    throw new CronError(`is longer than ${MAX_EXPRESSION_LENGTH} characters`);
  }
  const texts = split(expression);
  const nickname = texts.length === 1 ? NICKNAMES.get(texts[0]?.text.toLowerCase() ?? '') : undefined;
  if (nickname !== undefined) return parseCron(nickname, scheduleId);
  const shape = explainShape(expression, texts.length);
  if (shape !== null) throw new CronError(shape);
  return parseFields(texts, scheduleId);
}

/** The same text for expressions that differ only in blanks, letter case, a nickname, or a second 0 that may be left out. */
export function normalSpelling(expression: string): string {
  const texts = split(expression.toUpperCase()).map(({ text }) => text);
  const nickname = texts.length === 1 ? NICKNAMES.get(texts[0]?.toLowerCase() ?? '') : undefined;
  if (nickname !== undefined) return normalSpelling(nickname);
  return (texts.length === 5 ? ['0', ...texts] : texts).join(' ');
}

interface Text {
  text: string;
  column: number;
}

const split = (expression: string): Text[] =>
  Array.from(expression.matchAll(/[^ \t]+/g), ({ 0: text, index }) => ({ text, column: index + 1 }));

function parseFields(written: readonly Text[], scheduleId: string): ParsedCron {
  const hasSecond = written.length === 6;
  const texts = hasSecond ? written : [{ text: '0', column: 1 }, ...written];
  const faults: string[] = [];
  const read = (field: Field, index: number): FieldValues => {
    const { text, column } = texts[index] ?? NO_TEXT;
    const plus = field === DAY_OF_WEEK && text.startsWith('+') ? 1 : 0;
    const result =
      (hasSecond ? questionOf(field, text) : null) ??
      (plus === text.length ? LONELY_PLUS : parseField(field, text.slice(plus), scheduleId));
    if (!('fault' in result)) return result;
    faults.push(`${field.label}, column ${column + plus + result.at}: ${result.fault}`);
    return NOTHING;
  };
  const [second, minute, hour, dayOfMonth, month, dayOfWeek] = [
    read(SECOND, 0),
    read(MINUTE, 1),
    read(HOUR, 2),
    read(DAY_OF_MONTH, 3),
    read(MONTH, 4),
    read(DAY_OF_WEEK, 5),
  ];
  if (faults.length > 0) {
    const fields = written.map(({ text }) => text);
    throw new CronError(explainFields(fields, faults));
  }
  const bothDays = texts[5]?.text.startsWith('+') ?? false;
  const hashed = [second, minute, hour, dayOfMonth, month, dayOfWeek].some((field) => field.hashed);
  return { second, minute, hour, dayOfMonth, month, dayOfWeek, bothDays, hashed };
}

/** EventBridge’s six fields begin with the minute: there, `?` stands where hour and month are here, and means “no value”. */
function questionOf(field: Field, text: string): CronFault | null {
  const at = field === HOUR || field === MONTH ? text.split(',').indexOf('?') : -1;
  return at < 0 ? null : { fault: explainItem(field, '?', 1), at: 0 };
}

const LONELY_PLUS: CronFault = { fault: '“+” stands before days (+SAT), for AND: none follow', at: -1 };
const NO_TEXT: Text = { text: '', column: 1 };
/** Stands in for a field with a fault, so that the other fields are read as well. */
const NOTHING: FieldValues = { low: 0, high: 0, special: [], any: false, hashed: false };

/** An expression has faults; the message is for its author. */
export class CronError extends Error {
  override readonly name = 'CronError';
}

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
interface CronFault {
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
