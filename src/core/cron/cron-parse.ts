import { DAY_OF_MONTH, DAY_OF_WEEK, type Field, HOUR, MINUTE, MONTH, SECOND } from './cron-fields.ts';
import { type CronFault, type FieldValues, parseField } from './cron-field-parse.ts';
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
