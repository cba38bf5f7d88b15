import { randomUUID } from 'node:crypto';
import { styleText } from 'node:util';
import type { Surroundings } from '../surroundings.ts';

/**
 * Writes what a terminal would obey, or what changes the direction of the text, as JSON writes it: `\u001b`. So it can be read, and
 * JSON and YAML stay what they are. Ends of lines and tabs stay.
 */
export function escaped(text: string): string {
  return text.replace(COMMANDS, (character) => `\\u${character.charCodeAt(0).toString(16).padStart(4, '0')}`);
}

/** The same on one line: others have written descriptions and errors. */
export function printable(text: string): string {
  return escaped(text.replace(/\s+/g, onOneLine));
}

/** A run of white space. A pattern of what stands around an end of line would look at each blank as often as there are blanks. */
function onOneLine(space: string): string {
  return /[\r\n\u2028\u2029]/.test(space) ? ' ' : space.replaceAll('\t', ' ');
}

/** Colours as marks, which become colours when they are written: all else that looks like a colour is escaped then. */
export function marking(paint: Paint): Paint {
  return (colour, text) => paint(colour, escaped(text)).replaceAll(ESCAPE, MARK);
}

/** The same of what others have coloured: their colours become marks, and nothing else of it that a terminal would obey. */
function coloured(text: string): string {
  return escaped(text.replaceAll(COLOURS, (_, colour: string) => `${MARK}[${colour}m`));
}

/** A command's streams: whatever a server, a file or a database has said, a terminal only shows it. */
export function showingOnly(surroundings: Surroundings): Surroundings {
  const { out, err } = surroundings;
  const safe = (said: string | Uint8Array) => {
    const text = typeof said === 'string' ? said : Buffer.from(said).toString();
    return escaped(text).replaceAll(MARK, ESCAPE);
  };
  const streams: Pick<Surroundings, 'out' | 'err'> = {
    // Another program gets JSON and YAML as they are.
    out: around(out, { write: (text) => out.write(out.isTerminal ? safe(text) : text) }),
    err: around(err, { write: (text) => err.write(safe(text)) }),
  };
  return around(surroundings, streams);
}

/** The other properties are read only when they are asked for: `signal` begins to listen. */
function around<T extends object>(inner: T, own: Partial<T>): T {
  return Object.assign(Object.create(inner) as T, own);
}

const ESCAPE = '\u001b';
// oxlint-disable-next-line no-control-regex -- what begins a colour
const COLOURS = /\u001b\[([\d;:]*)m/g;
/** No text of others contains it. */
const MARK = randomUUID();
const COMMANDS = /(?![\n\t])[\p{Cc}\p{Cs}\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069]/gu;

/** How many columns of a terminal a text takes: East Asian wide characters and emoji take two, marks none. */
export function displayWidth(text: string): number {
  if (PRINTABLE_ASCII.test(text)) return text.length;
  let width = 0;
  for (const { segment } of graphemes.segment(text)) width += graphemeWidth(segment);
  return width;
}

/** At most so many columns; what was cut off leaves an ellipsis. */
export function cutToWidth(text: string, width: number): string {
  if (displayWidth(text) <= width) return text;
  if (width <= 0) return '';
  let kept = '';
  let used = 0;
  for (const { segment } of graphemes.segment(text)) {
    used += graphemeWidth(segment);
    if (used > width - 1) break;
    kept += segment;
  }
  return `${kept}…`;
}

const PRINTABLE_ASCII = /^[\x20-\x7e]*$/;
const graphemes = new Intl.Segmenter('en', { granularity: 'grapheme' });
const NO_WIDTH = /^[\p{M}\p{Cf}]*$/u;
const HALF_WIDTH = /^[\uff61-\uffdc\uffe8-\uffee]/;
const WIDE =
  /^(?:\p{Emoji_Presentation}|.\ufe0f|[\p{Script=Han}\p{Script=Hiragana}\p{Script=Katakana}\p{Script=Hangul}\u3000-\u303e\uff01-\uff60\uffe0-\uffe6])/u;

function graphemeWidth(grapheme: string): number {
  if (NO_WIDTH.test(grapheme)) return 0;
  return WIDE.test(grapheme) && !HALF_WIDTH.test(grapheme) ? 2 : 1;
}

/** What a run printed, for a terminal: colours stay, and all else that a terminal would obey is written as JSON writes it. */
interface LogText {
  /** As far as it can be told yet what the bytes mean. */
  take(bytes: Uint8Array): string;
  /** The rest; colours end here. */
  end(): string;
}

/** What may go on in the next bytes: the end of a line, a colour. */
// oxlint-disable-next-line no-control-regex -- what begins a colour
const UNFINISHED = /(?:\r|\u001b(?:\[[\d;:]{0,64})?)$/;

export function createLogText(): LogText {
  const decoder = new TextDecoder();
  let held = '';
  let hasColours = false;
  const shown = (text: string): string => {
    hasColours ||= text.includes('\u001b[');
    // A line that is written over becomes a line of its own.
    return coloured(text.replaceAll(/\r\n?/g, '\n'));
  };
  return {
    take: (bytes) => {
      const text = held + decoder.decode(bytes, { stream: true });
      held = UNFINISHED.exec(text)?.[0] ?? '';
      return shown(text.slice(0, text.length - held.length));
    },
    end: () => shown(held + decoder.decode()) + (hasColours ? coloured('\u001b[0m') : ''),
  };
}

type Colour = 'bold' | 'green' | 'red' | 'yellow' | 'cyan' | 'dim';
export type Paint = (colour: Colour, text: string) => string;

export const plain: Paint = (_colour, text) => text;

/** https://no-color.org: any value that is not empty turns colours off. */
export function paintFor(isTerminal: boolean, env: Readonly<Record<string, string | undefined>>): Paint {
  if (!isTerminal || (env['NO_COLOR'] ?? '') !== '' || env['TERM'] === 'dumb') return plain;
  return (colour, text) => styleText(colour, text, { validateStream: false });
}

/** A status of a schedule or run, and a state of an occurrence. */
export function paintStatus(status: string, paint: Paint): string {
  const colour = STATUS_COLOURS[status];
  return colour === undefined ? status : paint(colour, status);
}

const STATUS_COLOURS: Readonly<Record<string, Colour>> = {
  active: 'green',
  succeeded: 'green',
  running: 'cyan',
  paused: 'yellow',
  waiting: 'yellow',
  skipped: 'yellow',
  missed: 'red',
  cancelled: 'dim',
  ended: 'dim',
  excluded: 'dim',
  error: 'red',
  failed: 'red',
  unknown: 'red',
  abandoned: 'red',
};
