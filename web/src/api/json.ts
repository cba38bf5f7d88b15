/**
 * A JSON text that is kept as it is. Payloads are such: JavaScript's numbers would cost theirs their digits, so that
 * what is looked at, and sent again, would be another payload.
 */
export class JsonText {
  readonly text: string;

  constructor(text: string) {
    this.text = text;
  }
}

/** Of an answer: as JSON.parse, but payloads are JsonText. */
export function parseJson(text: string): unknown {
  const value: unknown = JSON.parse(text);
  for (const { path, source } of payloadsIn(text)) {
    let holder = value as Record<string | number, unknown>;
    for (const step of path.slice(0, -1)) holder = holder[step] as Record<string | number, unknown>;
    holder['payload'] = new JsonText(source);
  }
  return value;
}

/** As JSON.stringify, but JsonText goes as it is. */
export function stringifyJson(value: unknown): string {
  if (value instanceof JsonText) return value.text;
  if (Array.isArray(value)) return `[${value.map((one: unknown) => stringifyJson(one ?? null)).join(',')}]`;
  if (typeof value !== 'object' || value === null) return JSON.stringify(value);
  const members = Object.entries(value)
    .filter(([, member]) => member !== undefined)
    .map(([key, member]) => `${JSON.stringify(key)}:${stringifyJson(member)}`);
  return `{${members.join(',')}}`;
}

/** The text of a payload that parseJson has read. */
export function textOf(payload: unknown): string {
  return stringifyJson(payload ?? null);
}

/** With line breaks and indents; each number and string stays as it was written. */
export function formatJson(text: string): string {
  let formatted = '';
  let depth = 0;
  let before = '';
  const newLine = () => `\n${'  '.repeat(depth)}`;
  for (const [token] of text.matchAll(TOKENS)) {
    const closes = token === '}' || token === ']';
    if (closes) depth -= 1;
    const isEmpty = closes && (before === '{' || before === '[');
    if (!isEmpty && (closes || before === '{' || before === '[' || before === ',')) formatted += newLine();
    formatted += token === ':' ? ': ' : token;
    if (token === '{' || token === '[') depth += 1;
    before = token;
  }
  return formatted;
}

/** What is wrong with it; null: it is JSON. */
export function faultOfJson(text: string): string | null {
  try {
    JSON.parse(text);
    return null;
  } catch (error) {
    return error instanceof Error ? error.message : 'is not JSON';
  }
}

/** Of a text that is JSON: strings, signs, and everything else. */
const TOKENS = /"[^"\\]*(?:\\.[^"\\]*)*"|[{}[\],:]|[^\s{}[\],:"]+/g;

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

function payloadsIn(text: string): Found[] {
  const found: Found[] = [];
  const frames: Frame[] = [];
  let expectsKey = false;
  /** The payload that is being read, and how deep it stands. */
  let open: { path: (string | number)[]; start: number; depth: number } | null = null;
  const path = () => frames.map(({ key }) => key);
  const isPayload = () => frames.at(-1)?.key === 'payload' && PAYLOAD.test(path().join('/'));
  for (const { 0: token, index } of text.matchAll(TOKENS)) {
    const frame = frames.at(-1);
    if (token === '{' || token === '[') {
      if (open === null && isPayload()) open = { path: path(), start: index, depth: frames.length };
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
    } else if (open === null && isPayload()) {
      found.push({ path: path(), source: token });
    }
  }
  return found;
}
