import { type Paint, cutToWidth, displayWidth, printable } from './shown-text.ts';

export interface Column<Row> {
  title: string;
  cell: (row: Row) => string | number | null | undefined;
  /** Numbers stand on the right. */
  align?: 'right';
  /** This column shrinks first if the terminal is narrow. */
  shrinks?: true;
  /** This column is left out if the terminal is too narrow for all. */
  mayGo?: true;
  /** With --wide only. */
  isExtra?: true;
  /** Colours a cell by its text. */
  paint?: (text: string, paint: Paint) => string;
}

interface Room {
  /** The width of the terminal; null: as wide as the table needs. */
  columns: number | null;
  paint: Paint;
}

const GAP = '  ';
/** The least width of a column that shrinks. */
const NARROWEST = 8;

/**
 * The lines of a table, the titles first. An absent value is a dash. A column that may neither shrink nor go is never
 * cut: users copy ids.
 */
export function tableLines<Row>(columns: readonly Column<Row>[], rows: readonly Row[], room: Room): string[] {
  const measured = columns
    .filter(({ isExtra }) => !isExtra || room.columns === null)
    .map((column): Measured<Row> => {
      const texts = rows.map((row) => textOf(column.cell(row)));
      const width = Math.max(displayWidth(column.title), ...texts.map(displayWidth));
      return { column, texts, width };
    });
  const shown = room.columns === null ? measured : fitted(measured, room.columns);
  const line = (cells: readonly string[]) => cells.join(GAP).trimEnd();
  return [
    line(shown.map((one) => cellOf(one, one.column.title, (text) => room.paint('bold', text)))),
    ...rows.map((_row, index) =>
      line(
        shown.map((one) => cellOf(one, one.texts[index] ?? '', (text) => one.column.paint?.(text, room.paint) ?? text)),
      ),
    ),
  ];
}

interface Measured<Row> {
  column: Column<Row>;
  texts: string[];
  width: number;
}

function cellOf<Row>({ column, width }: Measured<Row>, whole: string, paint: (text: string) => string): string {
  const text = cutToWidth(whole, width);
  const blank = ' '.repeat(width - displayWidth(text));
  return column.align === 'right' ? blank + paint(text) : paint(text) + blank;
}

/** Leaves out columns that may go, from the right, as many as needed; then shrinks the widest that may shrink. */
function fitted<Row>(measured: readonly Measured<Row>[], available: number): Measured<Row>[] {
  const shown = [...measured];
  const least = ({ column, width }: Measured<Row>) => (column.shrinks ? Math.min(width, NARROWEST) : width);
  const needed = (width: (one: Measured<Row>) => number) =>
    shown.reduce((sum, one) => sum + width(one), GAP.length * (shown.length - 1));
  while (needed(least) > available) {
    const index = shown.findLastIndex(({ column }) => column.mayGo);
    if (index < 0) break;
    shown.splice(index, 1);
  }
  for (let over = needed(({ width }) => width) - available; over > 0; over -= 1) {
    const shrinking = shown.filter(({ column, width }) => column.shrinks && width > NARROWEST);
    const widest = shrinking.sort((one, other) => other.width - one.width)[0];
    if (widest === undefined) break;
    shown[shown.indexOf(widest)] = { ...widest, width: widest.width - 1 };
  }
  return shown;
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
