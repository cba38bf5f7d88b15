import { type Fault, Problem, invalid } from './problem.ts';

export const LONGEST_PAYLOAD_BYTES = 64 * 1024;
export const DEEPEST = 64;
/** Of a batch. */
export const MOST_ITEMS = 1000;

/** A body as it was sent: its value, and of its payloads the very text. */
export interface JsonBody {
  value: unknown;
  /** By JSON pointer (`/payload`, `/items/3/payload`); what is absent was not sent. */
  payloads: ReadonlyMap<string, string>;
  /** What no schema sees: text that cannot be stored, payloads too long, keys that would be lost. */
  faults: Fault[];
}

/** @throws Problem 400 where the text is not UTF-8, not JSON, or nested too deep. */
export function parseJsonBody(bytes: Uint8Array): JsonBody {
  const text = decode(bytes);
  // Before it is parsed: that alone would take a multiple of the memory of a body that is nothing but brackets.
  const payloads = findPayloads(text);
  const value = parse(text);
  const faults: Fault[] = [];
  collectBadText(value, '', faults);
  for (const [path, payload] of payloads) {
    if (Buffer.byteLength(payload) > LONGEST_PAYLOAD_BYTES) {
      faults.push({ path, message: `must be at most ${LONGEST_PAYLOAD_BYTES} bytes of JSON` });
    }
  }
  return { value, payloads, faults };
}

export function isObject(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

/** Text that PostgreSQL can hold: no NUL, no half of a surrogate pair. */
export function isStorableText(text: string): boolean {
  return text.isWellFormed() && !text.includes('\0');
}

export function pointer(path: readonly PropertyKey[]): string {
  return path.map((step) => `/${String(step).replaceAll('~', '~0').replaceAll('/', '~1')}`).join('');
}

const utf8 = new TextDecoder('utf-8', { fatal: true });

function decode(bytes: Uint8Array): string {
  try {
    return utf8.decode(bytes);
  } catch {
    throw new Problem(400, 'the body is not UTF-8');
  }
}

function parse(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch (error) {
    throw new Problem(400, `the body is not JSON: ${error instanceof Error ? error.message : ''}`);
  }
}

/**
 * The source text of every `payload` at the top and of every item. A lexer rather than a parser: it need not refuse what
 * is not JSON, since JSON.parse will. The last of duplicates wins, as it does there.
 * @throws Problem 400 where brackets are nested too deep, or where there are more items than any call takes.
 */
export function findPayloads(text: string): Map<string, string> {
  const found = new Map<string, string>();
  const payload = { path: '', start: 0, depth: NOWHERE };
  let depth = 0;
  const items = { entered: false, item: 0 };
  let lastString = '';

  const close = (end: number): void => {
    if (payload.depth !== depth) return;
    found.set(payload.path, text.slice(payload.start, end).trim());
    payload.depth = NOWHERE;
  };
  const open = (path: string, start: number): void => {
    Object.assign(payload, { path, start, depth });
  };
  const enterMember = (start: number): void => {
    if (payload.depth !== NOWHERE) return;
    const name = depth === 1 || depth === 3 ? nameOf(lastString) : '';
    if (depth === 1) {
      Object.assign(items, { entered: name === 'items', item: 0 });
      if (items.entered) forgetItems(found);
      if (name === 'payload') open('/payload', start);
    } else if (depth === 3 && items.entered && name === 'payload') {
      open(`/items/${items.item}/payload`, start);
    }
  };

  for (let at = 0; at < text.length; at += 1) {
    switch (text.charCodeAt(at)) {
      case QUOTE: {
        const end = endOfString(text, at);
        if (depth <= 3 && payload.depth === NOWHERE) lastString = text.slice(at, end + 1);
        at = end;
        break;
      }
      case COLON:
        enterMember(at + 1);
        break;
      case COMMA:
        close(at);
        if (depth === 2) items.item += 1;
        if (items.entered && items.item >= MOST_ITEMS) throw tooManyItems();
        break;
      case OPEN_BRACE:
      case OPEN_BRACKET:
        depth += 1;
        if (depth > DEEPEST) throw new Problem(400, `the body is nested deeper than ${DEEPEST}`);
        break;
      case CLOSE_BRACE:
      case CLOSE_BRACKET:
        close(at);
        depth -= 1;
        break;
    }
  }
  return found;
}

/** Before they are parsed: millions of empty ones would take seconds. */
function tooManyItems(): Problem {
  return invalid([{ path: '/items', message: `must be at most ${MOST_ITEMS} items` }]);
}

const NOWHERE = Infinity;
const [QUOTE, COLON, COMMA, BACKSLASH] = [0x22, 0x3a, 0x2c, 0x5c];
const [OPEN_BRACE, OPEN_BRACKET, CLOSE_BRACE, CLOSE_BRACKET] = [0x7b, 0x5b, 0x7d, 0x5d];

/** Where the closing quote stands, or the end of the text. */
function endOfString(text: string, start: number): number {
  let end = text.indexOf('"', start + 1);
  while (end !== -1 && isEscaped(text, end)) end = text.indexOf('"', end + 1);
  return end === -1 ? text.length : end;
}

function isEscaped(text: string, at: number): boolean {
  let backslashes = 0;
  while (text.charCodeAt(at - 1 - backslashes) === BACKSLASH) backslashes += 1;
  return backslashes % 2 === 1;
}

function nameOf(source: string): string {
  if (!source.includes('\\')) return source.slice(1, -1);
  try {
    return String(JSON.parse(source));
  } catch {
    return '';
  }
}

function forgetItems(found: Map<string, string>): void {
  for (const path of found.keys()) if (path.startsWith('/items/')) found.delete(path);
}

const PAYLOAD_PATH = /^(?:\/items\/\d+)?$/;

function collectBadText(value: unknown, path: string, faults: Fault[]): void {
  if (typeof value === 'string') {
    if (!isStorableText(value))
      faults.push({ path, message: 'has NUL or half of a surrogate pair in its text' });
  } else if (Array.isArray(value)) {
    for (const [index, element] of value.entries()) collectBadText(element, `${path}/${index}`, faults);
  } else if (isObject(value)) {
    for (const key of Object.keys(value)) {
      // A payload is kept as its source text, where such characters are harmless escapes.
      if (key === 'payload' && PAYLOAD_PATH.test(path)) continue;
      const below = path + pointer([key]);
      if (!isStorableText(key))
        faults.push({ path: below, message: 'has NUL or half of a surrogate pair in its name' });
      // Schemas pass over this one in silence.
      if (key === '__proto__') faults.push({ path: below, message: 'is not a name that can be used' });
      else collectBadText(value[key], below, faults);
    }
  }
}
