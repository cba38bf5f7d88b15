import { displayWidth } from '../../src/cli/terminal/shown-text.ts';
import type { Run } from './terminal-recorder.ts';

interface TimedFrame {
  lines: readonly (readonly Run[])[];
  forMs: number;
}

interface Shown {
  row: number;
  line: readonly Run[];
  fromMs: number;
  toMs: number;
}

const CELL = { width: 8.4, height: 19 };
const PADDING = { side: 16, top: 44, bottom: 16 };
const FONT = 'ui-monospace,SFMono-Regular,Menlo,Consolas,DejaVu Sans Mono,monospace';
/** A terminal's own colours, on its own dark ground: so it is legible on a page of any colour. */
const COLOURS: Readonly<Record<string, string>> = {
  red: '#ff7b72',
  green: '#7ee787',
  yellow: '#e3b341',
  cyan: '#79c0ff',
  dim: '#8b949e',
};

/**
 * A picture that plays the frames again and again. A line that stays the same for several frames is in it once. A viewer that plays no
 * animations shows the last frame.
 */
export function animatedSvg(
  frames: readonly TimedFrame[],
  { columns, title }: { columns: number; title: string },
): string {
  const totalMs = frames.reduce((sum, { forMs }) => sum + forMs, 0);
  const rows = Math.max(...frames.map(({ lines }) => lines.length));
  const width = Math.ceil(columns * CELL.width + 2 * PADDING.side);
  const height = Math.ceil(rows * CELL.height + PADDING.top + PADDING.bottom);
  const texts = shownLines(frames).map((shown) => textOf(shown, totalMs));
  const dots = ['#ff5f57', '#febc2e', '#28c840'].map(
    (colour, index) => `<circle cx="${22 + index * 20}" cy="20" r="6" fill="${colour}"/>`,
  );
  const styles = Object.entries(COLOURS).map(([name, colour]) => `.${name}{fill:${colour}}`);
  return [
    `<svg xmlns="http://www.w3.org/2000/svg" width="${width}" height="${height}" viewBox="0 0 ${width} ${height}" role="img" aria-label="${escaped(title)}">`,
    `<title>${escaped(title)}</title>`,
    `<style>text{font:14px ${FONT};fill:#e6edf3;white-space:pre}.bold{font-weight:700}${styles.join('')}</style>`,
    `<rect width="${width}" height="${height}" rx="10" fill="#0d1117" stroke="#30363d"/>`,
    ...dots,
    ...texts,
    '</svg>',
    '',
  ].join('\n');
}

/** Each line of each row, from when it stands there until it changes. */
function shownLines(frames: readonly TimedFrame[]): Shown[] {
  const shown: Shown[] = [];
  const current = new Map<number, Shown>();
  let at = 0;
  for (const { lines, forMs } of frames) {
    const end = at + forMs;
    for (const [row, line] of lines.entries()) {
      const before = current.get(row);
      if (before?.toMs === at && JSON.stringify(before.line) === JSON.stringify(line)) before.toMs = end;
      else if (line.length > 0) {
        const begun = { row, line, fromMs: at, toMs: end };
        current.set(row, begun);
        shown.push(begun);
      }
    }
    at = end;
  }
  return shown;
}

function textOf({ row, line, fromMs, toMs }: Shown, totalMs: number): string {
  const y = Math.round(PADDING.top + (row + 0.75) * CELL.height);
  let column = 0;
  const pieces: string[] = [];
  for (const { text, styles } of line.flatMap(splitBySigns)) {
    const length = displayWidth(text);
    if (text.trim() !== '') {
      const classes = styles.length === 0 ? '' : ` class="${styles.join(' ')}"`;
      const x = round(PADDING.side + column * CELL.width);
      // Whatever the font, each letter keeps its column.
      pieces.push(
        `<tspan x="${x}" textLength="${round(length * CELL.width)}" lengthAdjust="spacingAndGlyphs"${classes}>${escaped(text)}</tspan>`,
      );
    }
    column += length;
  }
  if (pieces.length === 0) return '';
  const isLast = toMs === totalMs;
  const always = fromMs === 0 && isLast;
  return `<text y="${y}"${isLast ? '' : ' visibility="hidden"'}>${pieces.join('')}${always ? '' : animation({ fromMs, toMs, totalMs })}</text>`;
}

function animation({ fromMs, toMs, totalMs }: { fromMs: number; toMs: number; totalMs: number }): string {
  const times = [0, fromMs, toMs].map((at) => String(round(at / totalMs, 4)));
  const [values, keyTimes] =
    fromMs === 0
      ? ['visible;hidden', [times[0], times[2]]]
      : toMs === totalMs
        ? ['hidden;visible', times.slice(0, 2)]
        : ['hidden;visible;hidden', times];
  return `<animate attributeName="visibility" values="${values}" keyTimes="${keyTimes.join(';')}" dur="${totalMs / 1000}s" calcMode="discrete" repeatCount="indefinite"/>`;
}

/** Bars and other signs may come from another font than the letters beside them; leading and trailing blanks are not stretched. */
function splitBySigns({ text, styles }: Run): Run[] {
  return [...text.matchAll(/ {2,}|[\x20-\x7e]+?(?= {2}|[^\x20-\x7e]|$)|[^\x20-\x7e]+/g)].map(([piece]) => ({
    text: piece,
    styles,
  }));
}

function round(value: number, digits = 1): number {
  return Number(value.toFixed(digits));
}

function escaped(text: string): string {
  return text
    .replaceAll('&', '&amp;')
    .replaceAll('<', '&lt;')
    .replaceAll('>', '&gt;')
    .replaceAll('"', '&quot;');
}
