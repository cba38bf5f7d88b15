/**
 * A JSON text that is kept as it is. Payloads are such: JavaScript's numbers would cost theirs their digits, so that
 * what is looked at, and sent again, would be another payload.
 */
export class JsonText {
  readonly text: string;

  constructor(text: string) {
    this.text = text;
  }

  /** As JSON.parse reads it: numbers beyond double precision lose digits. */
  value(): unknown {
    return JSON.parse(this.text);
  }

  /** For JSON.stringify, which can write no number that JavaScript does not have. */
  toJSON(): unknown {
    return this.value();
  }
}

/** Of an answer: as JSON.parse, but payloads are JsonText, and so is each place whose path `more` matches. */
export function parseJson(text: string, more: RegExp | null = null): unknown {
  const value: unknown = JSON.parse(text);
  for (const { path, source } of textsIn(text, more)) {
    let holder = value as Record<string | number, unknown>;
    for (const step of path.slice(0, -1)) holder = holder[step] as Record<string | number, unknown>;
    holder[path.at(-1) ?? ''] = new JsonText(source);
  }
  return value;
}

/** As JSON.stringify, but JsonText goes as it is (or as `write` says), and so do the digits of a bigint. */
export function stringifyJson(value: unknown, write = ({ text }: JsonText) => text): string {
  if (value instanceof JsonText) return write(value);
  if (typeof value === 'bigint') return String(value);
  if (Array.isArray(value)) return `[${value.map((one) => stringifyJson(one ?? null, write)).join(',')}]`;
  if (value === undefined || typeof value === 'function') return 'null';
  if (typeof value !== 'object' || value === null) return JSON.stringify(value);
  if ('toJSON' in value && typeof value.toJSON === 'function') {
    return stringifyJson((value as { toJSON: () => unknown }).toJSON(), write);
  }
  const members = Object.entries(value)
    .filter(([, member]) => member !== undefined && typeof member !== 'function')
    .map(([key, member]) => `${JSON.stringify(key)}:${stringifyJson(member, write)}`);
  return `{${members.join(',')}}`;
}

/** Of a text that is JSON: strings, signs, and everything else. */
export const JSON_TOKENS = /"[^"\\]*(?:\\.[^"\\]*)*"|[{}[\],:]|[^\s{}[\],:"]+/g;

/** Where payloads are in the answers of the API. A label may be called payload too. */
const PAYLOAD = /^(items\/\d+\/)?(schedule\/)?payload$/;

interface Found {
  path: (string | number)[];
  source: string;
}

/** The way down to where the text is being read. */
interface Frame {
  isArray: boolean;
  key: string | number;
}

function textsIn(text: string, more: RegExp | null): Found[] {
  const found: Found[] = [];
  const frames: Frame[] = [];
  let expectsKey = false;
  /** The text that is being read, and how deep it stands. */
  let open: { path: (string | number)[]; start: number; depth: number } | null = null;
  const path = () => frames.map(({ key }) => key);
  const isText = () => {
    if (more === null && frames.at(-1)?.key !== 'payload') return false;
    const here = path().join('/');
    return PAYLOAD.test(here) || more?.test(here) === true;
  };
  for (const { 0: token, index } of text.matchAll(JSON_TOKENS)) {
    const frame = frames.at(-1);
    if (token === '{' || token === '[') {
      if (open === null && isText()) open = { path: path(), start: index, depth: frames.length };
      frames.push({ isArray: token === '[', key: token === '[' ? 0 : '' });
      expectsKey = token === '{';
    } else if (token === '}' || token === ']') {
      frames.pop();
      if (open?.depth !== frames.length) continue;
      found.push({ path: open.path, source: text.slice(open.start, index + 1) });
      open = null;
    } else if (token === ',') {
      if (typeof frame?.key === 'number') frame.key += 1;
      expectsKey = frame?.isArray === false;
    } else if (token === ':') {
      expectsKey = false;
    } else if (expectsKey && frame) {
      frame.key = JSON.parse(token) as string;
    } else if (open === null && isText()) {
      found.push({ path: path(), source: token });
    }
  }
  return found;
}
