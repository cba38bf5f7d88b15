import { readFile } from 'node:fs/promises';
import type { Command } from 'commander';
import { isoInstant } from '../../core/instant.ts';
import { reasonOf } from '../../runtime/reason.ts';
import { RawJson } from '../../api/http/json/raw-json.ts';
import { parseKeepingDigits } from '../../core/json-text.ts';
import { CliError, EXIT, failure, usageError } from '../exit-codes.ts';
import type { Surroundings } from '../surroundings.ts';

/** Collects the values of an option that may be given several times, in order. */
export function collect(value: string, before: readonly string[] = []): string[] {
  return [...before, value];
}

/** A number if the text is one; otherwise the text. The server says which values are valid. */
export function numberOrText(text: string | undefined): number | string | undefined {
  return text !== undefined && /^-?\d{1,15}(\.\d{1,6})?$/.test(text) ? Number(text) : text;
}

interface NumberRule {
  flag: string;
  standard: number | null;
  least: number;
  most: number;
}

/** The whole numbers that these options give, or their standards; `faults` gets what is none. */
export function numbersIn<Rules extends Readonly<Record<string, NumberRule>>>(
  given: Partial<Record<keyof Rules, string>>,
  rules: Rules,
  faults: string[],
) {
  const read = (name: keyof Rules & string, { flag, standard, least, most }: NumberRule) => {
    const text = given[name];
    if (text === undefined) return standard;
    const value = /^\d{1,7}$/.test(text) ? Number(text) : NaN;
    if (!(value >= least && value <= most))
      faults.push(`${flag} is ${text}; expected: a whole number from ${least} to ${most}`);
    return value;
  };
  const numbers = Object.entries(rules).map(([name, rule]) => [name, read(name, rule)]);
  return Object.fromEntries(numbers) as {
    [Name in keyof Rules]: number | Exclude<Rules[Name]['standard'], number>;
  };
}

/** `now`, `-2h` and `+3d` are read by this machine's clock; everything else goes to the server as it is. */
export function instantText(text: string | undefined, { now }: Pick<Surroundings, 'now'>): string | undefined {
  if (text === 'now') return isoInstant(now());
  const [, sign, count, unit = ''] = /^([+-])(\d{1,6})([smhdw])$/.exec(text ?? '') ?? [];
  if (count === undefined) return text;
  return isoInstant(now() + (sign === '-' ? -1 : 1) * Number(count) * (UNIT_MS[unit] ?? 0));
}

const UNIT_MS: Readonly<Record<string, number>> = {
  s: 1000,
  m: 60_000,
  h: 3_600_000,
  d: 86_400_000,
  w: 604_800_000,
};

/** The help for an option that takes an instant. */
export const INSTANT = 'an instant such as 2030-01-31T09:00:00Z, or now, -2h, +3d';

export interface Period {
  from?: string | undefined;
  to?: string | undefined;
}

/** `what`: what is to lie in the period. */
export function periodOptions(command: Command, what = 'scheduled for '): Command {
  return command
    .option('--from <instant>', `${what}then or later: ${INSTANT}`)
    .option('--to <instant>', `${what}earlier than that`);
}

export function periodOf({ from, to }: Period, around: Pick<Surroundings, 'now'>) {
  return { from: instantText(from, around), to: instantText(to, around) };
}

/** The text of a file; `-` is standard input. @throws CliError where it cannot be read */
export async function fileText(path: string, around: Pick<Surroundings, 'input'>): Promise<string> {
  return (await fileBytes(path, around)).toString('utf8');
}

/** Likewise. */
export async function fileBytes(path: string, { input }: Pick<Surroundings, 'input'>): Promise<Buffer> {
  if (path === '-') return input.read();
  try {
    return await readFile(path);
  } catch (error) {
    throw failure(`cannot read ${path}: ${reasonOf(error)}`);
  }
}

/** JSON that goes to the server byte for byte. @throws CliError if it is not JSON: it would spoil the JSON around it */
function jsonText(text: string, what: string, fault = usageError): RawJson {
  const json = text.replace(/^\ufeff/, '').trim();
  jsonValue(json, what, fault);
  return new RawJson(json);
}

/** The same of a file. @throws CliError */
export async function jsonIn(path: string, around: Pick<Surroundings, 'input'>): Promise<RawJson> {
  return jsonText(await fileText(path, around), path, failure);
}

/** JSON whose numbers keep their digits. @throws CliError if it is not JSON */
export function jsonValue(text: string, what: string, fault = usageError): unknown {
  try {
    return parseKeepingDigits(text);
  } catch (error) {
    throw fault(`${what} is not JSON: ${reasonOf(error)}; put quotes around a string: '"text"'`);
  }
}

export interface PayloadOptions {
  payload?: string;
  payloadFile?: string;
}

/** The payload, given directly or in a file; undefined: none is given. */
export async function givenPayload(
  { payload, payloadFile }: PayloadOptions,
  around: Pick<Surroundings, 'input'>,
): Promise<RawJson | undefined> {
  if (payload !== undefined && payloadFile !== undefined) throw usageError('give either --payload or --payload-file');
  if (payload !== undefined) return jsonText(payload, '--payload');
  if (payloadFile === undefined) return undefined;
  return jsonIn(payloadFile, around);
}

/** The text of a file, without a mark at its beginning. @throws CliError that names the first line in another encoding */
export function decoded(bytes: Buffer, path: string, encoding = 'utf-8'): string {
  const text = decode(bytes, encoding);
  if (text !== null) return text;
  let line = 0;
  for (const one of linesIn(bytes)) {
    line += 1;
    if (decode(one, encoding) === null) break;
  }
  throw new CliError(EXIT.failed, `${path}:${line}: not in ${encoding}: --encoding says in which it is, as latin1`);
}

/** With their line breaks. */
export function* linesIn(bytes: Buffer): Generator<Buffer, void, void> {
  for (let from = 0; from < bytes.length;) {
    const end = bytes.indexOf(0x0a, from);
    const next = end < 0 ? bytes.length : end + 1;
    yield bytes.subarray(from, next);
    from = next;
  }
}

function decode(bytes: Uint8Array, encoding: string): string | null {
  let decoder;
  try {
    decoder = new TextDecoder(encoding, { fatal: true });
  } catch {
    throw usageError(`--encoding ${encoding} is not known`);
  }
  try {
    return decoder.decode(bytes);
  } catch {
    return null;
  }
}

export interface RunFilterOptions {
  schedule?: string;
  label?: string[];
  batch?: string;
  status?: string;
  trigger?: string;
}

/** Options of every command about many runs. */
export function filterOptions(command: Command): Command {
  return command
    .option('--schedule <id>', 'of this schedule')
    .option('--label <key:value>', 'with this label, of its own or of its schedule; several: all of them', collect)
    .option('--batch <id>', 'of this batch')
    .option(
      '--status <status,…>',
      'with one of these: waiting, pending, running, succeeded, failed, unknown, abandoned, skipped, cancelled',
    )
    .option('--trigger <trigger,…>', 'of one of these: schedule, catchUp, manual, backfill, after, api, notify');
}

/** The filter with the names of the API. */
export function filterOf({ schedule, label, batch, status, trigger }: RunFilterOptions) {
  return { scheduleId: schedule, label, batchId: batch, status, trigger };
}

export type FilterInPeriod = RunFilterOptions & Period;
