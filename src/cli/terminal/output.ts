import type { Surroundings } from '../surroundings.ts';
import { type Column, pairLines, tableLines } from './table.ts';
import { type Paint, marking, paintFor, printable } from './shown-text.ts';
import { timeCell, timeText, zoneNote } from './time-text.ts';

/** How times look for people. */
export interface View {
  table: <Row>(columns: readonly Column<Row>[], rows: readonly Row[]) => string[];
  pairs: (pairs: readonly (readonly [name: string, value: string | null | undefined])[]) => string[];
  /** In UTC, and in local time. */
  time: (instant: string | null | undefined) => string;
  /** The same, shorter, for a column; print `zoneNote` below. */
  cellTime: (instant: string | null | undefined) => string;
  readonly zoneNote: string;
  /** The same below whole times. */
  readonly zones: string;
  readonly paint: Paint;
}

export interface Output {
  readonly isJson: boolean;
  /** The answer of a command, on standard output: one JSON document (text as it is, or a tree), or lines for people. */
  show(json: unknown, lines: (view: View) => readonly string[]): void;
  /** One of many answers that come one by one: a line of JSON, or a line for people. */
  line(json: unknown, line: (view: View) => string): void;
  /** Progress and remarks, on standard error. */
  note(line: string): void;
}

export interface OutputOptions {
  /** Absent: JSON unless standard output is a terminal. */
  json?: boolean;
  wide?: boolean;
}

const NARROWEST_TERMINAL = 40;
/** In a narrower terminal, a column has no room for two times. */
const LOCAL_FROM = 100;

export function createOutput({ out, err, env, zone: known, now }: Surroundings, { json, wide }: OutputOptions): Output {
  const zone = known ?? 'UTC';
  const isJson = json ?? !out.isTerminal;
  const paint = marking(paintFor(out.isTerminal, env));
  const width = Math.max(NARROWEST_TERMINAL, out.columns ?? 80);
  const room = { columns: wide || !out.isTerminal ? null : width, paint };
  const hasLocal = room.columns === null || room.columns >= LOCAL_FROM;
  const view: View = {
    table: (columns, rows) => tableLines(columns, rows, room),
    pairs: (pairs) => pairLines(pairs, room),
    time: (instant) => timeText(instant, zone),
    cellTime: (instant) =>
      room.columns === null ? timeText(instant, zone) : timeCell(instant, { zone, now: now(), hasLocal }),
    zoneNote: zoneNote(zone, hasLocal),
    zones: zoneNote(zone, true),
    paint,
  };
  return {
    isJson,
    show: (value, lines) => {
      const text = isJson ? jsonLine(value) : lines(view).map(printable).join('\n');
      if (text !== '') out.write(`${text}\n`);
    },
    line: (value, line) => out.write(`${isJson ? jsonLine(value) : printable(line(view))}\n`),
    note: (line) => err.write(`${printable(line)}\n`),
  };
}

function jsonLine(value: unknown): string {
  return typeof value === 'string' ? value.trimEnd() : JSON.stringify(value);
}
