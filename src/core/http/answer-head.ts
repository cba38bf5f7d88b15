import type { Instant } from '../instant.ts';

/** The head of an answer. */
interface AnswerHead {
  statusCode: number;
  /** Of the same meaning, as a strict parser reads it; null: it does not say where the body ends. */
  text: string | null;
}

/** More is not read: the answer is then judged by its status alone. */
export const HEAD_LIMIT_BYTES = 64 * 1024;

const STATUS_LINE = /^HTTP\/\d(?:\.\d)?[\t ]+(\d{3,6})(?!\d)/i;
const TOKEN = /^[\w!#$%&'*+.^`|~-]+$/;
/** What no header value may have (RFC 9110, 5.5), and a recipient may replace by a blank. */
// oxlint-disable-next-line no-control-regex -- these are the characters that it looks for
const CONTROL = /[\0-\x08\x0a-\x1f\x7f]/g;

/**
 * Whether these bytes begin with a whole final head as nearly all servers write it, which needs no second look. By the
 * byte, for every answer comes by here: a regular expression takes several times as long.
 */
export function isPlainHead(bytes: Buffer): boolean {
  for (let at = 0; at < BEGINNING.length; at++) if (BEGINNING[at]?.includes(bytes[at] ?? 0) !== true) return false;
  let framings = 0;
  for (let at = BEGINNING.length - 1; ;) {
    while (KINDS[bytes[at] ?? 0] !== NEITHER) at++;
    if (bytes[at] !== CR || bytes[at + 1] !== LF) return false;
    at += 2;
    if (bytes[at] === CR) return bytes[at + 1] === LF && framings <= 1;
    const begin = at;
    while (KINDS[bytes[at] ?? 0] === NAME) at++;
    if (at === begin || bytes[at] !== COLON) return false;
    // Content-Length and Transfer-Encoding by the length of their names: others of it only lose a little time.
    if (at - begin === 14 || at - begin === 17) framings++;
  }
}

const [LF, CR, COLON] = [10, 13, 58];
/** What may stand at each place of a plain status line, up to the byte behind its status. */
const BEGINNING = [...Array.from('HTTP/1.'), '01', ' ', '2345', '0123456789', '0123456789', ' \r'].map((among) =>
  Array.from(among, (character) => character.charCodeAt(0)),
);
const [NEITHER, VALUE, NAME] = [0, 1, 2];
/** What each byte may stand in: a value, a name and a value, or neither. */
const KINDS = Uint8Array.from({ length: 256 }, (_, byte) => {
  if (TOKEN.test(String.fromCharCode(byte))) return NAME;
  return byte === 9 || (byte >= 32 && byte !== 127) ? VALUE : NEITHER;
});

/** The bytes of a head, its blank line included; -1: it has not ended yet. A line may end without CR (RFC 9112, 2.2). */
export function headLength(bytes: Buffer): number {
  for (let at = bytes.indexOf(LF); at !== -1; at = bytes.indexOf(LF, at + 1)) {
    if (bytes[at + 1] === LF) return at + 2;
    if (bytes[at + 1] === CR && bytes[at + 2] === LF) return at + 3;
  }
  return -1;
}

/** The status of a line that begins an answer; null: it is none. */
export function statusOf(line: string): number | null {
  const status = Number(STATUS_LINE.exec(line)?.[1] ?? NaN);
  return status >= 100 ? status : null;
}

/**
 * A head as RFC 9112 wants a recipient to read it, also where a strict parser would refuse it: lines without CR (2.2),
 * folded lines (5.2), blanks before a colon (5.1), equal lengths said twice (6.3), a length beside chunks (6.3), and control
 * characters. What is no header is left out. Null: its first line is no status line.
 */
export function readHead(text: string): AnswerHead | null {
  const statusCode = statusOf(text);
  if (statusCode === null) return null;
  const fields = withOneFraming(fieldsOf(text));
  if (fields === null) return { statusCode, text: null };
  const version = /^HTTP\/1\.0/i.test(text) ? '1.0' : '1.1';
  // A parser knows statuses of three digits only; who judges has the real one.
  const shown = Math.min(statusCode, 999);
  const lines = fields.map(([name, value]) => `${name}: ${value}\r\n`);
  return { statusCode, text: `HTTP/${version} ${shown} \r\n${lines.join('')}\r\n` };
}

type Field = readonly [name: string, value: string];

function fieldsOf(text: string): Field[] {
  const [, ...lines] = text.replace(/\r?\n[\t ]+(?=[^\r\n])/g, ' ').split(/\r?\n/);
  return lines.flatMap((line): Field[] => {
    const colon = line.indexOf(':');
    const name = line.slice(0, Math.max(colon, 0)).trim();
    if (!TOKEN.test(name)) return [];
    return [
      [
        name,
        line
          .slice(colon + 1)
          .replace(CONTROL, ' ')
          .trim(),
      ],
    ];
  });
}

/** Of equal lengths one stays, and none beside chunks. Null: they differ. */
function withOneFraming(fields: readonly Field[]): readonly Field[] | null {
  const isLength = ([name]: Field) => name.toLowerCase() === 'content-length';
  const lengths = new Set(fields.filter(isLength).flatMap(([, value]) => value.split(',').map((part) => part.trim())));
  if (lengths.size === 0) return fields;
  const others = fields.filter((field) => !isLength(field));
  if (others.some(([name]) => name.toLowerCase() === 'transfer-encoding')) return others;
  const [length = ''] = lengths;
  return lengths.size === 1 && /^\d{1,15}$/.test(length) ? [...others, ['Content-Length', length]] : null;
}

/**
 * The wait, in whole seconds, that a `Retry-After` value asks for (RFC 9110 §10.2.3: seconds, or a date in any of the
 * three forms of HTTP). For a past moment it is 0; for any other text null.
 */
export function parseRetryAfter(value: string, now: Instant): number | null {
  const text = value.trim();
  if (/^-?\d+$/.test(text)) return wholeSeconds(Number(text));
  if (!HTTP_DATE.test(text)) return null;
  // The asctime form carries no zone and means UTC; Date.parse would take it for local time.
  const at = Date.parse(text.endsWith('GMT') ? text : `${text} GMT`);
  return Number.isNaN(at) ? null : wholeSeconds((at - now) / 1000);
}

/** Date.parse alone accepts far too much ("1.5" is a day in 2001). */
const HTTP_DATE =
  /^(?:[A-Z][a-z]{2}, \d{2} [A-Z][a-z]{2} \d{4} \d{2}:\d{2}:\d{2} GMT|[A-Z][a-z]{5,8}, \d{2}-[A-Z][a-z]{2}-\d{2} \d{2}:\d{2}:\d{2} GMT|[A-Z][a-z]{2} [A-Z][a-z]{2} [ \d]\d \d{2}:\d{2}:\d{2} \d{4})$/;

function wholeSeconds(seconds: number): number {
  return Math.min(Math.max(Math.ceil(seconds), 0), Number.MAX_SAFE_INTEGER);
}
