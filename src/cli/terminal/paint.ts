import { styleText } from 'node:util';

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
  const colour = COLOURS[status];
  return colour === undefined ? status : paint(colour, status);
}

const COLOURS: Readonly<Record<string, Colour>> = {
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
