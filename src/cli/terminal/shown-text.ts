import { randomUUID } from 'node:crypto';
import type { Surroundings } from '../surroundings.ts';
import type { Paint } from './paint.ts';

/**
 * Writes what a terminal would obey, or what changes the direction of the text, as JSON writes it: `\u001b`. So it can be read, and
 * JSON and YAML stay what they are. Ends of lines and tabs stay.
 */
export function escaped(text: string): string {
  return text.replace(COMMANDS, (character) => `\\u${character.charCodeAt(0).toString(16).padStart(4, '0')}`);
}

/** The same on one line: others have written descriptions and errors. */
export function printable(text: string): string {
  return escaped(text.replace(/\s*[\r\n\u2028\u2029]+\s*/g, ' ').replaceAll('\t', ' '));
}

/** Colours as marks, which become colours when they are written: all else that looks like a colour is escaped then. */
export function marking(paint: Paint): Paint {
  return (colour, text) => paint(colour, escaped(text)).replaceAll(ESCAPE, MARK);
}

/** A command's streams: whatever a server, a file or a database has said, a terminal only shows it. */
export function showingOnly(surroundings: Surroundings): Surroundings {
  const { out, err } = surroundings;
  const safe = (text: string) => escaped(text).replaceAll(MARK, ESCAPE);
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
/** No text of others contains it. */
const MARK = randomUUID();
const COMMANDS = /(?![\n\t])[\p{Cc}\p{Cs}\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069]/gu;
