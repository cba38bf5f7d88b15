import type { Paint } from './paint.ts';
import { cutToWidth, displayWidth, printable } from './display-width.ts';

export interface Column<Row> {
  title: string;
  cell: (row: Row) => string | number | null | undefined;
  /** Numbers stand on the right. */
  align?: 'right';
  /** It gives way first where the terminal is narrow. */
  shrinks?: true;
  /** With --wide only. */
  isExtra?: true;
  /** Colours a cell by its text. */
  paint?: (text: string, paint: Paint) => string;
}

interface Room {
  /** Of the terminal; null: as wide as the table is. */
  columns: number | null;
  paint: Paint;
}

const GAP = '  ';
/** What a shrinking column keeps. */
const NARROWEST = 8;

/** Lines, the titles first. What is absent is a dash. */
export function tableLines<Row>(columns: readonly Column<Row>[], rows: readonly Row[], room: Room): string[] {
  const shown = columns.filter(({ isExtra }) => !isExtra || room.columns === null);
  const cells = rows.map((row) => shown.map(({ cell }) => textOf(cell(row))));
  const widths = shown.map(({ title }, index) =>
    Math.max(displayWidth(title), ...cells.map((row) => displayWidth(row[index] ?? ''))),
  );
  if (room.columns !== null) shrink(shown, widths, room.columns);
  const line = (texts: readonly string[], paintCell: (text: string, column: Column<Row>) => string) =>
    shown
      .map((column, index) => {
        const width = widths[index] ?? 0;
        const text = cutToWidth(texts[index] ?? '', width);
        const blank = ' '.repeat(width - displayWidth(text));
        const painted = paintCell(text, column);
        return column.align === 'right' ? blank + painted : painted + blank;
      })
      .join(GAP)
      .trimEnd();
  return [
    line(
      shown.map(({ title }) => title),
      (text) => room.paint('bold', text),
    ),
    ...cells.map((texts) => line(texts, (text, { paint }) => paint?.(text, room.paint) ?? text)),
  ];
}

/** A name and a value on each line; those without a value are left out. */
export function pairLines(
  pairs: readonly (readonly [name: string, value: string | null | undefined])[],
  room: Room,
): string[] {
  const given = pairs.filter(([, value]) => value !== null && value !== undefined && value !== '');
  const width = Math.max(0, ...given.map(([name]) => displayWidth(name)));
  return given.map(([name, value]) => {
    const line = `${name.padEnd(width)}${GAP}${printable(value ?? '')}`;
    const shown = room.columns === null ? line : cutToWidth(line, room.columns);
    return room.paint('bold', shown.slice(0, width)) + shown.slice(width);
  });
}

function textOf(value: string | number | null | undefined): string {
  const text = value === null || value === undefined ? '' : printable(String(value));
  return text === '' ? '-' : text;
}

/** Takes columns from the widest that may shrink, then from the last ones. */
function shrink<Row>(columns: readonly Column<Row>[], widths: number[], available: number): void {
  const excess = () =>
    widths.reduce((sum, width) => sum + width, GAP.length * (widths.length - 1)) - available;
  for (let over = excess(); over > 0; over -= 1) {
    let widest = -1;
    for (const [index, { shrinks }] of columns.entries()) {
      if (shrinks && (widths[index] ?? 0) > Math.max(NARROWEST, widths[widest] ?? 0)) widest = index;
    }
    if (widest < 0) break;
    widths[widest] = (widths[widest] ?? 0) - 1;
  }
  for (let index = widths.length - 1, over = excess(); index > 0 && over > 0; index -= 1) {
    const taken = Math.min(over, (widths[index] ?? 0) - 1);
    widths[index] = (widths[index] ?? 0) - taken;
    over -= taken;
  }
}
