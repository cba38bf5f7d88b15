import { type ForeignFields, NotSayable, zoneField } from './foreign-fields.ts';

const NICKNAMES: Readonly<Record<string, string>> = {
  '@yearly': 'H H H H *',
  '@annually': 'H H H H *',
  '@monthly': 'H H H * *',
  '@weekly': 'H H * * H',
  '@daily': 'H H * * *',
  '@midnight': 'H H(0-2) * * *',
  '@hourly': 'H * * * *',
};

const ITEM = /^(?:\*|H(?:\(\d{1,2}-\d{1,2}\))?|\d{1,2}-\d{1,2})(?:\/\d{1,2})?$|^\d{1,2}$/;

/** The box of a job's triggers: lines, the first of which may name the zone. @throws NotSayable */
export function jenkinsFields(text: string, standard: string | null): ForeignFields {
  const lines = text
    .split('\n')
    .map((line) => line.trim())
    .filter((line) => line !== '' && !line.startsWith('#'));
  const named = lines.map((line) => /^TZ=(\S+)$/.exec(line)?.[1]);
  if (named.slice(1).some((zone) => zone !== undefined))
    throw new NotSayable('TZ= stands in the first line only');
  const zone = named[0] ?? standard;
  const expressions = [...new Set((named[0] === undefined ? lines : lines.slice(1)).map(expressionOf))];
  const [only = ''] = expressions;
  if (only === '') throw new NotSayable('there is no line of five fields');
  return { cron: expressions.length === 1 ? only : expressions, ...zoneField(zone) };
}

/** Jenkins wants both of two restricted day fields to match. */
function expressionOf(line: string): string {
  const fields = (NICKNAMES[line.toLowerCase()] ?? line).split(/[ \t]+/);
  if (fields.length !== 5) throw new NotSayable(`Jenkins has 5 fields, or a nickname: “${line}”`);
  const odd = fields.flatMap((field) => field.split(',')).find((item) => !ITEM.test(item));
  if (odd !== undefined) throw new NotSayable(`“${odd}” is no value of Jenkins`);
  const [minute, hour, dayOfMonth = '', month, dayOfWeek = ''] = fields;
  const plus = [dayOfMonth, dayOfWeek].every((field) => !/^\*(?:\/1)?$/.test(field)) ? '+' : '';
  return [minute, hour, dayOfMonth, month, plus + dayOfWeek].join(' ');
}
