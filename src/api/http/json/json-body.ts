import { yieldToEventLoop } from '../../../runtime/loop/slices.ts';
import { parseKeepingDigits, pointer } from '../../../core/json-text.ts';
import { type Part, SLICE_BYTES, splitJson } from './json-parts.ts';
import { type Fault, MAX_FAULTS, Problem } from '../problem.ts';

export const MAX_PAYLOAD_BYTES = 64 * 1024;
/** The beginning of a result is kept, but all of it must be JSON; this is as much as fits into the body of the call. */
const MAX_RESULT_BYTES = 256 * 1024;

/** A body as it was sent: its value, and the exact text of its payloads or its result. */
export interface JsonBody {
  /** The value, with null in the place of each of these texts. */
  value: unknown;
  /** The texts by JSON pointer (`/payload`, `/items/3/payload`, `/result`); a field that was not sent is absent. */
  payloads: ReadonlyMap<string, string>;
  /** Faults that no schema sees: text that cannot be stored, payloads that are too long, keys that would be lost. */
  faults: Fault[];
}

/**
 * Reads a body of any size and lets other work run in between.
 * @throws Problem 400 if the text is not UTF-8, not JSON, or more than any call takes
 */
export async function parseJsonBody(bytes: Buffer): Promise<JsonBody> {
  const steps = readJsonBody(bytes);
  for (;;) {
    const step = steps.next();
    if (step.done === true) return step.value;
    await yieldToEventLoop();
  }
}

/** The same in steps, each of them short. */
export function* readJsonBody(bytes: Buffer): Generator<void, JsonBody, void> {
  const payloads = new Map<string, string>();
  const faults: Fault[] = [];
  const items: unknown[] = [];
  let value: unknown;
  let read = 0;
  const split = yield* splitJson(bytes);
  faults.push(...split.faults);
  for (const part of split.parts) {
    read += part.end - part.start;
    if (read > SLICE_BYTES) {
      read = 0;
      yield;
    }
    if (part.kind === 'text') {
      const text = keptSource(bytes, part, faults);
      if (!part.replaced) payloads.set(part.path, text);
      continue;
    }
    value = parsePart(bytes, part);
    if (!part.replaced && faults.length < MAX_FAULTS) collectBadText(value, part.path, faults);
    if (!part.replaced && part.kind === 'item') items[part.item] = value;
  }
  if (isObject(value) && Array.isArray(value['items'])) Object.assign(value['items'], items);
  return { value, payloads, faults };
}

export function isObject(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

/** Whether PostgreSQL can store the text: it has no NUL and no half of a surrogate pair. */
export function isStorableText(text: string): boolean {
  return text.isWellFormed() && !text.includes('\0');
}

/** The text without the white space around it. Empty if it is too long: then it may not even have been parsed. */
function keptSource(bytes: Buffer, part: Part, faults: Fault[]): string {
  const maxBytes = part.path === '/result' ? MAX_RESULT_BYTES : MAX_PAYLOAD_BYTES;
  if (part.end - part.start <= 2 * maxBytes) {
    const source = decode(bytes.subarray(part.start, part.end));
    parse(source, part, bytes);
    const text = source.trim();
    if (Buffer.byteLength(text) <= maxBytes) return text;
  }
  faults.push({ path: part.path, message: `must be at most ${maxBytes} bytes of JSON` });
  return '';
}

function parsePart(bytes: Buffer, part: Part): unknown {
  const pieces: Uint8Array[] = [];
  let start = part.start;
  for (const hole of part.holes) {
    pieces.push(bytes.subarray(start, hole.start), NULL);
    start = hole.end;
  }
  const rest = bytes.subarray(start, part.end);
  const text = decode(pieces.length === 0 ? rest : Buffer.concat([...pieces, rest]));
  const value = parse(text, part, bytes);
  if (text.includes('"equals"')) keepDigits(value, parseKeepingDigits(text));
  return value;
}

/** Members of this name hold any JSON, which is compared with other JSON: there, numbers keep their digits. */
function keepDigits(value: unknown, exact: unknown): void {
  if (typeof value !== 'object' || value === null) return;
  for (const [name, member] of Object.entries(exact as object)) {
    if (name === 'equals') (value as Record<string, unknown>)[name] = member;
    else keepDigits((value as Record<string, unknown>)[name], member);
  }
}

const NULL = Buffer.from('null');
// A byte order mark is skipped at the beginning of the body; anywhere else it is not JSON.
const utf8 = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true });

function decode(bytes: Uint8Array): string {
  try {
    return utf8.decode(bytes);
  } catch {
    throw new Problem(400, 'the body is not UTF-8');
  }
}

function parse(text: string, part: Part, bytes: Buffer): unknown {
  try {
    return JSON.parse(text);
  } catch (error) {
    throw new Problem(400, `the body is not JSON: ${whyNotJson(error, part, bytes)}`);
  }
}

/** A small body's fault is reported from its whole text; for a large body only the part is named. */
function whyNotJson(error: unknown, { path }: Part, bytes: Buffer): string {
  if (bytes.length > SLICE_BYTES) return `${path} ${messageOf(error).replace(/ in JSON at position.*$/, '')}`;
  try {
    JSON.parse(bytes.toString());
    return messageOf(error);
  } catch (whole) {
    return messageOf(whole);
  }
}

function messageOf(error: unknown): string {
  return error instanceof Error ? error.message : '';
}

function collectBadText(value: unknown, path: string, faults: Fault[]): void {
  if (typeof value === 'string') {
    if (!isStorableText(value)) faults.push({ path, message: 'has NUL or half of a surrogate pair in its text' });
  } else if (Array.isArray(value)) {
    for (const [index, element] of value.entries()) collectBadText(element, `${path}/${index}`, faults);
  } else if (isObject(value)) {
    for (const key of Object.keys(value)) {
      const below = path + pointer([key]);
      if (!isStorableText(key))
        faults.push({ path: below, message: 'has NUL or half of a surrogate pair in its name' });
      // Schemas ignore this name.
      if (key === '__proto__') faults.push({ path: below, message: 'is not a name that can be used' });
      else collectBadText(value[key], below, faults);
    }
  }
}
