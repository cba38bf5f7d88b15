/** Text with a look of its own; the classes are those of log.css, and never text of others. */
export interface LogPiece {
  text: string;
  classes: string;
}

/** What a run printed, as text with colours: of all that a terminal would obey only these are left. */
export interface LogReader {
  take(bytes: Uint8Array): LogPiece[];
}

const TOKENS = new RegExp(
  [
    // A colour; another sequence; a string that a terminal keeps for itself, such as a title; what else begins with an escape.
    String.raw`\x1b\[(?<colour>[\d;:]*)m`,
    String.raw`\x1b\[[\x20-\x3f]*[\x40-\x7e]`,
    String.raw`\x1b[\]PX^_][^\x07\x1b\x9c]{0,4096}(?:\x07|\x1b\\|\x9c)`,
    String.raw`\x1b[\x20-\x2f]*[\x30-\x7e]?`,
    String.raw`(?<line>\r\n?)`,
    // Characters that are not seen, and those that turn the direction of the text.
    String.raw`(?![\n\t])[\p{Cc}\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069]`,
  ].join('|'),
  'gu',
);
/** What may go on in the next bytes. */
// oxlint-disable-next-line no-control-regex -- what begins a sequence
const UNFINISHED = /(?:\r|\x1b(?:\[[\x20-\x3f]{0,64}|[\]PX^_][^\x07\x1b\x9c]{0,4096}\x1b?)?)$/;

export function createLogReader(): LogReader {
  const decoder = new TextDecoder();
  let held = '';
  let look = new Map<string, string>();
  const pieceOf = (text: string): LogPiece => ({ text, classes: [...look.values()].join(' ') });
  return {
    take: (bytes) => {
      const all = held + decoder.decode(bytes, { stream: true });
      held = UNFINISHED.exec(all)?.[0] ?? '';
      const text = all.slice(0, all.length - held.length);
      const pieces: LogPiece[] = [];
      let from = 0;
      let plain = '';
      const flush = () => {
        if (plain !== '') pieces.push(pieceOf(plain));
        plain = '';
      };
      for (const { 0: token, index, groups = {} } of text.matchAll(TOKENS)) {
        plain += text.slice(from, index);
        from = index + token.length;
        if (groups['line'] !== undefined) plain += '\n';
        if (groups['colour'] === undefined) continue;
        flush();
        look = changed(look, groups['colour']);
      }
      plain += text.slice(from);
      flush();
      return pieces;
    },
  };
}

const STYLES: Readonly<Record<number, readonly [kind: string, style: string]>> = {
  1: ['weight', 'log-bold'],
  2: ['weight', 'log-dim'],
  3: ['slant', 'log-italic'],
  4: ['line', 'log-line'],
};
const ENDS: Readonly<Record<number, string>> = { 22: 'weight', 23: 'slant', 24: 'line', 39: 'fg', 49: 'bg' };

/** Colours beyond the sixteen that have names stay what they were. */
function changed(look: ReadonlyMap<string, string>, said: string): Map<string, string> {
  const next = new Map(look);
  const codes = said.split(/[;:]/).map(Number);
  for (let at = 0; at < codes.length; at += 1) {
    const code = codes[at] ?? 0;
    const [style, end, colour] = [STYLES[code], ENDS[code], colourOf(code)];
    if (code === 0) next.clear();
    else if (code === 38 || code === 48) at += codes[at + 1] === 5 ? 2 : 4;
    else if (style) next.set(...style);
    else if (end !== undefined) next.delete(end);
    else if (colour) next.set(...colour);
  }
  return next;
}

function colourOf(code: number): [kind: string, colour: string] | null {
  const [tens, unit] = [Math.floor(code / 10), code % 10];
  if (unit > 7) return null;
  if (tens === 3 || tens === 9) return ['fg', `log-fg-${unit}`];
  return tens === 4 || tens === 10 ? ['bg', `log-bg-${unit}`] : null;
}

/** A refusal that another try may not meet: too many calls, or a server that is away, or restarting. */
export function isForNow(status: number): boolean {
  return status === 429 || status >= 500;
}
