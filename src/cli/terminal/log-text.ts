import { coloured } from './shown-text.ts';

/** What a run printed, for a terminal: colours stay, and all else that a terminal would obey is written as JSON writes it. */
export interface LogText {
  /** As far as it can be told yet what the bytes mean. */
  take(bytes: Uint8Array): string;
  /** The rest; colours end here. */
  end(): string;
}

/** What may go on in the next bytes: the end of a line, a colour. */
// eslint-disable-next-line no-control-regex -- what begins a colour
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
