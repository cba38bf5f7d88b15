import { readFile } from 'node:fs/promises';
import type { Command } from 'commander';
import { isoInstant } from '../../core/instant.ts';
import { reasonOf } from '../../runtime/reason.ts';
import { RawJson } from '../../api/http/json/raw-json.ts';
import { parseKeepingDigits } from '../../core/json-text.ts';
import { failure, usageError } from '../exit-codes.ts';
import type { Surroundings } from '../surroundings.ts';

/** Collects the values of an option that may be given several times, in order. */
export function collect(value: string, before: readonly string[] = []): string[] {
  return [...before, value];
}

/** A number if the text is one; otherwise the text. The server says which values are valid. */
export function numberOrText(text: string | undefined): number | string | undefined {
  return text !== undefined && /^-?\d{1,15}(\.\d{1,6})?$/.test(text) ? Number(text) : text;
}

/** `now`, `-2h` and `+3d` are read by this machine's clock; everything else goes to the server as it is. */
export function instantText(
  text: string | undefined,
  { now }: Pick<Surroundings, 'now'>,
): string | undefined {
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
  if (payload !== undefined && payloadFile !== undefined)
    throw usageError('give either --payload or --payload-file');
  if (payload !== undefined) return jsonText(payload, '--payload');
  if (payloadFile === undefined) return undefined;
  return jsonIn(payloadFile, around);
}
