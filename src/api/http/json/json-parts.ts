import { type Fault, Problem, invalid } from '../problem.ts';
import { createMemberNames } from './member-names.ts';

const DEEPEST = 64;
/** The most items of a batch. */
export const MAX_ITEMS = 1000;
/** The most members of an item, or of the body around the items, outside of payloads and results: twice what any call takes. */
const MAX_MEMBERS = 5000;
/** The same; a target's headers alone may be a megabyte. */
const MAX_PART_BYTES = 2 * 1024 * 1024;
/** How much is read before other work gets a turn. */
export const SLICE_BYTES = 128 * 1024;

/**
 * A part of a body that is parsed by itself: the frame around the items, an item, or a payload or result, whose text is
 * kept.
 */
export interface Part {
  kind: 'body' | 'item' | 'text';
  /** JSON pointer. */
  path: string;
  /** In a batch: the index of the item that this is, or belongs to. */
  item: number;
  start: number;
  end: number;
  /** The parts that are cut out of this one, in order. */
  holes: Part[];
  /** The body repeats the name of its items further on: the last ones count. */
  replaced: boolean;
}

interface SplitJson {
  parts: Part[];
  /** Names that occur twice in one object, outside of payloads and results. */
  faults: readonly Fault[];
}

/**
 * Cuts a body into parts that are parsed one by one: the payloads and results, whose text is kept, the items of a batch, and
 * what is around them. A lexer rather than a parser: it need not refuse what is not JSON, since JSON.parse will refuse one of the
 * parts. A part comes after what is cut out of it. Works in short steps.
 * @throws Problem 400 where there is more than any call takes: depth, items, members, text outside of payloads and results.
 */
export function* splitJson(bytes: Buffer): Generator<void, SplitJson, void> {
  const cutter = createCutter(bytes);
  let inString = false;
  let turn = SLICE_BYTES;
  for (let at = 0; ; at += 1) {
    at = nextSignificant(bytes, at, inString, turn);
    if (at >= bytes.length) break;
    if (at >= turn) {
      turn += SLICE_BYTES;
      yield;
    }
    const byte = bytes[at];
    if (byte === QUOTE) {
      inString = !inString;
      cutter.quote(at, inString);
    } else if (inString) {
      if (byte === BACKSLASH) at += 1;
    } else if (byte === COMMA) {
      cutter.next(at);
    } else if (byte === COLON) {
      cutter.enter(at + 1);
    } else if (byte === OPEN_BRACE || byte === OPEN_BRACKET) {
      cutter.open(at + 1, byte === OPEN_BRACKET);
    } else if (byte === CLOSE_BRACE || byte === CLOSE_BRACKET) {
      cutter.close(at);
    }
  }
  return cutter.finish();
}

const [QUOTE, COLON, COMMA, BACKSLASH] = [0x22, 0x3a, 0x2c, 0x5c];
const [OPEN_BRACE, OPEN_BRACKET, CLOSE_BRACE, CLOSE_BRACKET] = [0x7b, 0x5b, 0x7d, 0x5d];

/** Where the next byte stands that says something of the structure, or the end of the slice, whichever is first. */
function nextSignificant(bytes: Buffer, from: number, inString: boolean, turn: number): number {
  const significant = inString ? SIGNIFICANT_IN_STRINGS : SIGNIFICANT;
  const end = Math.min(turn, bytes.length);
  let at = from;
  while (at < end && significant[bytes[at] ?? 0] === 0) at += 1;
  return at;
}

const SIGNIFICANT = bytesOf(QUOTE, COLON, COMMA, OPEN_BRACE, OPEN_BRACKET, CLOSE_BRACE, CLOSE_BRACKET);
const SIGNIFICANT_IN_STRINGS = bytesOf(QUOTE, BACKSLASH);

function bytesOf(...values: number[]): Uint8Array {
  const set = new Uint8Array(256);
  for (const value of values) set[value] = 1;
  return set;
}

interface OpenPart extends Part {
  parent: OpenPart | null;
  /** The part ends at the comma or the bracket there. */
  depth: number;
  members: number;
  /** Bytes in its holes. */
  bytesElsewhere: number;
  /** How many times the body had named its items so far. */
  naming: number;
}

interface Cutter {
  quote(at: number, isOpening: boolean): void;
  /** The name of a member ends. */
  enter(at: number): void;
  next(at: number): void;
  open(at: number, isArray: boolean): void;
  close(at: number): void;
  finish(): SplitJson;
}

/** The members of the body are at depth 1, the items of a batch at depth 2, their members at depth 3. */
// eslint-disable-next-line max-lines-per-function -- a closure: its functions share its state, and are short
function createCutter(bytes: Buffer): Cutter {
  const parts: OpenPart[] = [];
  const string = { start: 0, end: 0 };
  const names = createMemberNames();
  let depth = 0;
  let naming = 0;
  let item = 0;
  /** The member of the body that is being read is `items`. */
  let atItems = false;
  /** The list of the items has begun. */
  let inItems = false;
  const begin = (kind: Part['kind'], path: string, start: number, parent: OpenPart | null): OpenPart => {
    const text = { start, end: bytes.length, holes: [], bytesElsewhere: 0 };
    return { kind, path, item, ...text, replaced: false, parent, depth, members: 0, naming };
  };
  const whole = begin('body', '', startsWithMark(bytes) ? BYTE_ORDER_MARK.length : 0, null);
  let part = whole;

  const end = (at: number): void => {
    if (part.parent === null || part.depth !== depth) return;
    const ended = part;
    part = part.parent;
    ended.end = at;
    refuseLong(ended);
    if (ended.kind === 'item' && isBlank(bytes, ended)) return;
    part.holes.push(ended);
    part.bytesElsewhere += ended.end - ended.start;
    parts.push(ended);
  };
  const count = (): void => {
    part.members += 1;
    if (part.members <= MAX_MEMBERS) return;
    throw invalid([{ path: part.path, message: `has more than ${MAX_MEMBERS} members` }]);
  };
  const beginItem = (at: number): void => {
    if (item >= MAX_ITEMS) throw invalid([{ path: '/items', message: `must be at most ${MAX_ITEMS} items` }]);
    part = begin('item', `/items/${item}`, at, whole);
  };

  return {
    quote: (at, isOpening) => {
      if (isOpening) string.start = at;
      else string.end = at + 1;
    },
    enter: (at) => {
      if (part.kind === 'text') return;
      const name = nameOf(bytes, string);
      // Text that is not JSON may contain more colons; none of them may read a long name again.
      string.end = string.start;
      names.name(name);
      if (part === whole ? depth !== 1 : part.kind !== 'item' || depth !== 3) return;
      if (part === whole) {
        atItems = name === 'items';
        inItems = false;
        if (atItems) naming += 1;
      }
      if (name === 'payload' || (name === 'result' && part === whole))
        part = begin('text', `${part.path}/${name}`, at, part);
    },
    next: (at) => {
      end(at);
      if (part.kind === 'text') return;
      names.next();
      count();
      if (depth !== 2 || !inItems) return;
      item += 1;
      beginItem(at + 1);
    },
    open: (at, isArray) => {
      depth += 1;
      if (depth > DEEPEST) throw new Problem(400, `the body is nested more than ${DEEPEST} levels deep`);
      if (part.kind === 'text') return;
      names.open(isArray);
      count();
      if (depth !== 2 || !atItems || !isArray) return;
      inItems = true;
      item = 0;
      beginItem(at);
    },
    close: (at) => {
      end(at);
      depth -= 1;
      if (part.kind !== 'text') names.close();
    },
    finish: () => {
      if (part !== whole) throw new Problem(400, 'the body is not JSON: it ends too early');
      refuseLong(whole);
      for (const one of parts)
        one.replaced = one.naming !== naming && (one.kind === 'item' || one.parent !== whole);
      return { parts: [...parts, whole], faults: names.faults };
    },
  };
}

const BYTE_ORDER_MARK = [0xef, 0xbb, 0xbf];

function startsWithMark(bytes: Buffer): boolean {
  return BYTE_ORDER_MARK.every((byte, index) => bytes[index] === byte);
}

function refuseLong({ kind, path, start, end, bytesElsewhere }: OpenPart): void {
  if (kind === 'text' || end - start - bytesElsewhere <= MAX_PART_BYTES) return;
  const rest = kind === 'item' ? 'besides its payload' : 'besides items and payloads';
  throw invalid([{ path, message: `must be at most ${MAX_PART_BYTES} bytes of JSON ${rest}` }]);
}

/** Only white space: an empty list, or nothing after a comma too many. */
function isBlank(bytes: Buffer, { start, end }: Part): boolean {
  return bytes.subarray(start, end).every((byte) => WHITE_SPACE.includes(byte));
}

const WHITE_SPACE = [0x20, 0x0a, 0x0d, 0x09];

/** As it is, letters beyond ASCII included, or with its escapes resolved: two spellings of a name are one name. */
function nameOf(bytes: Buffer, { start, end }: { start: number; end: number }): string {
  const source = bytes.toString('utf8', start, end);
  if (!source.includes('\\')) return source.slice(1, -1);
  try {
    return String(JSON.parse(source));
  } catch {
    return '';
  }
}
