import { type Fault, Problem, invalid } from '../problem.ts';
import { type MemberNames, createMemberNames } from './member-names.ts';

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
  const state = begun(bytes);
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
      if (inString) state.name.start = at;
      else state.name.end = at + 1;
    } else if (inString) {
      if (byte === BACKSLASH) at += 1;
    } else if (byte === COMMA) {
      nextMember(state, at);
    } else if (byte === COLON) {
      enterValue(state, at + 1);
    } else if (byte === OPEN_BRACE || byte === OPEN_BRACKET) {
      open(state, at + 1, byte === OPEN_BRACKET);
    } else if (byte === CLOSE_BRACE || byte === CLOSE_BRACKET) {
      close(state, at);
    }
  }
  return finish(state);
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

interface State {
  bytes: Buffer;
  /** The parts that have ended. */
  parts: OpenPart[];
  whole: OpenPart;
  /** The innermost part that is open. */
  part: OpenPart;
  names: MemberNames;
  /** The last string, which may be the name of a member. */
  name: { start: number; end: number };
  /** The members of the body are at depth 1, the items of a batch at depth 2, their members at depth 3. */
  depth: number;
  naming: number;
  item: number;
  /** The member of the body that is being read is `items`. */
  atItems: boolean;
  /** The list of the items has begun. */
  inItems: boolean;
}

function begun(bytes: Buffer): State {
  const counts = { depth: 0, naming: 0, item: 0 };
  const start = startsWithMark(bytes) ? BYTE_ORDER_MARK.length : 0;
  const whole = partFrom({ bytes, ...counts }, { kind: 'body', path: '', start, parent: null });
  const name = { start: 0, end: 0 };
  const rest = { parts: [], names: createMemberNames(), name, atItems: false, inItems: false };
  return { bytes, whole, part: whole, ...counts, ...rest };
}

function partFrom(
  { bytes, item, depth, naming }: Pick<State, 'bytes' | 'item' | 'depth' | 'naming'>,
  begin: Pick<OpenPart, 'kind' | 'path' | 'start' | 'parent'>,
): OpenPart {
  const empty = { end: bytes.length, holes: [], replaced: false, members: 0, bytesElsewhere: 0 };
  return { ...begin, ...empty, item, depth, naming };
}

/** The name of a member ends. */
function enterValue(state: State, at: number): void {
  const { bytes, whole, part, name: string, names } = state;
  if (part.kind === 'text') return;
  const name = nameOf(bytes, string);
  // Text that is not JSON may contain more colons; none of them may read a long name again.
  string.end = string.start;
  names.name(name);
  if (part === whole ? state.depth !== 1 : part.kind !== 'item' || state.depth !== 3) return;
  if (part === whole) {
    state.atItems = name === 'items';
    state.inItems = false;
    if (state.atItems) state.naming += 1;
  }
  if (name === 'payload' || (name === 'result' && part === whole))
    state.part = partFrom(state, { kind: 'text', path: `${part.path}/${name}`, start: at, parent: part });
}

function nextMember(state: State, at: number): void {
  endPart(state, at);
  if (state.part.kind === 'text') return;
  state.names.next();
  countMember(state.part);
  if (state.depth !== 2 || !state.inItems) return;
  state.item += 1;
  beginItem(state, at + 1);
}

function open(state: State, at: number, isArray: boolean): void {
  state.depth += 1;
  if (state.depth > DEEPEST) throw new Problem(400, `the body is nested more than ${DEEPEST} levels deep`);
  if (state.part.kind === 'text') return;
  state.names.open(isArray);
  countMember(state.part);
  if (state.depth !== 2 || !state.atItems || !isArray) return;
  state.inItems = true;
  state.item = 0;
  beginItem(state, at);
}

function close(state: State, at: number): void {
  endPart(state, at);
  state.depth -= 1;
  if (state.part.kind !== 'text') state.names.close();
}

function finish({ parts, part, whole, naming, names }: State): SplitJson {
  if (part !== whole) throw new Problem(400, 'the body is not JSON: it ends too early');
  refuseLong(whole);
  for (const one of parts) one.replaced = one.naming !== naming && (one.kind === 'item' || one.parent !== whole);
  return { parts: [...parts, whole], faults: names.faults };
}

function beginItem(state: State, at: number): void {
  const { item, whole } = state;
  if (item >= MAX_ITEMS) throw invalid([{ path: '/items', message: `must be at most ${MAX_ITEMS} items` }]);
  state.part = partFrom(state, { kind: 'item', path: `/items/${item}`, start: at, parent: whole });
}

function endPart(state: State, at: number): void {
  const { part: ended, bytes, parts, depth } = state;
  if (ended.parent === null || ended.depth !== depth) return;
  state.part = ended.parent;
  ended.end = at;
  refuseLong(ended);
  if (ended.kind === 'item' && isBlank(bytes, ended)) return;
  state.part.holes.push(ended);
  state.part.bytesElsewhere += ended.end - ended.start;
  parts.push(ended);
}

function countMember(part: OpenPart): void {
  part.members += 1;
  if (part.members > MAX_MEMBERS) throw invalid([{ path: part.path, message: `has more than ${MAX_MEMBERS} members` }]);
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
