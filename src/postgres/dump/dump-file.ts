import { createReadStream } from 'node:fs';

/**
 * A dump: its head, then for each table a line with its name and columns, its rows as COPY writes them as text, and `\.`; at last a
 * line that says how many rows there are. So a file that was cut short is known by its end.
 */
export interface DumpHead {
  firelock: 'dump';
  /** Of the daemon that made it. */
  version: string;
  /** The migrations that its tables had, by their hashes. */
  schema: string[];
  /** The days that have a partition, by table. */
  days: Record<string, string[]>;
  /** The last value of each sequence, by table. */
  sequences: Record<string, string>;
}

export interface DumpedTable {
  table: string;
  columns: string[];
}

interface DumpEnd {
  rows: number;
}

export const END_OF_ROWS = '\\.\n';
const LINE_FEED = 0x0a;
const NO_DUMP = 'this file is no dump of firelock, or it is damaged';
const MOST_BYTES_OF_LINE = 1024 * 1024;

export function lineOf(part: DumpHead | DumpedTable | DumpEnd): string {
  return `${JSON.stringify(part)}\n`;
}

/** Rows of COPY have no other line breaks than at their ends. */
export function rowsIn(chunk: Buffer): number {
  let rows = 0;
  for (let at = chunk.indexOf(LINE_FEED); at !== -1; at = chunk.indexOf(LINE_FEED, at + 1)) rows += 1;
  return rows;
}

/** Reads a dump from its beginning to its end; what it has read and not handed on is one piece of the file. */
export class DumpReader {
  readonly #pieces: AsyncIterator<Buffer>;
  #rest: Buffer = Buffer.alloc(0);

  constructor(path: string) {
    this.#pieces = createReadStream(path)[Symbol.asyncIterator]() as AsyncIterator<Buffer>;
  }

  /** @throws Error if it is no dump */
  async head(): Promise<DumpHead> {
    const head = await this.#line();
    if (!('firelock' in head)) throw new Error(NO_DUMP);
    return head as DumpHead;
  }

  /** The next table, whose rows are to be read before the next; or the end. */
  async next(): Promise<DumpedTable | DumpEnd> {
    return (await this.#line()) as DumpedTable | DumpEnd;
  }

  async *rows(): AsyncGenerator<Buffer> {
    // Its rows, with the line feed before them.
    let before: Buffer = Buffer.from('\n');
    for (;;) {
      const text = Buffer.concat([before, this.#rest]);
      const end = text.indexOf(`\n${END_OF_ROWS}`);
      // What was handed on already, and what may be the beginning of the end.
      const upTo = end === -1 ? Math.max(before.length, text.length - END_OF_ROWS.length) : end + 1;
      if (upTo > before.length) yield text.subarray(before.length, upTo);
      this.#rest = text.subarray(end === -1 ? upTo : end + 1 + END_OF_ROWS.length);
      if (end !== -1) return;
      before = text.subarray(upTo - 1, upTo);
      await this.#more();
    }
  }

  async close(): Promise<void> {
    await this.#pieces.return?.();
  }

  async #line(): Promise<object> {
    for (;;) {
      const end = this.#rest.indexOf(LINE_FEED);
      if (end === -1 && this.#rest.length > MOST_BYTES_OF_LINE) throw new Error(NO_DUMP);
      if (end === -1) {
        await this.#more();
        continue;
      }
      const line = this.#rest.toString('utf8', 0, end);
      this.#rest = this.#rest.subarray(end + 1);
      if (!line.startsWith('{')) throw new Error(NO_DUMP);
      return JSON.parse(line) as object;
    }
  }

  async #more(): Promise<void> {
    const piece = await this.#pieces.next();
    if (piece.done === true) throw new Error('this file ends before its end: it was cut short');
    this.#rest = Buffer.concat([this.#rest, piece.value]);
  }
}
