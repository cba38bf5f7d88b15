import { type SQL, type SQLWrapper, sql } from 'drizzle-orm';

/** At about so many bytes a page ends, however few rows these are. */
export const PAGE_BYTES = 4 * 1024 * 1024;

/** What a page may still take, of bytes. The statements that read one page share it. */
export interface PageRoom {
  bytes: number;
}

export function pageRoom(): PageRoom {
  return { bytes: PAGE_BYTES };
}

/** The page ends here: there may be more. */
export function isFull(room: PageRoom | undefined): boolean {
  return room !== undefined && room.bytes <= 0;
}

/** What a row of a page has as `row_bytes`. */
export interface Sized {
  row_bytes: number;
}

/** Bytes of large columns, as an answer has them; what PostgreSQL has compressed counts in full. */
export function rowBytes({ texts = [], documents = [] }: { texts?: SQL[]; documents?: SQL[] }): SQL {
  const sizes = [
    ...texts.map((text) => sql`octet_length(${text})`),
    ...documents.map(
      (json) =>
        sql`CASE WHEN pg_column_compression(${json}) IS NULL THEN pg_column_size(${json}) ELSE octet_length(${json}::text) END`,
    ),
  ];
  return sql.join(
    sizes.map((size) => sql`coalesce(${size}, 0)`),
    sql` + `,
  );
}

/** The rows of a page, which have `row_bytes`, as long as those before them leave room. `order`: that of the page, of columns of `p`. */
export function withinRoom(page: SQL, order: SQL, room: PageRoom | undefined): SQL {
  if (room === undefined) return page;
  return sql`SELECT p.* FROM (SELECT p.*, sum(p.row_bytes) OVER (ORDER BY ${order} ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING) AS bytes_before
    FROM (${page}) AS p) AS p WHERE coalesce(p.bytes_before, 0) < ${room.bytes} ORDER BY ${order}`;
}

/** Takes the room of what is read; where there is none, nothing is asked. */
export async function readInRoom<Row>(
  room: PageRoom | undefined,
  read: () => Promise<Row[]>,
  sizeOf: (row: Row) => number,
): Promise<Row[]> {
  if (isFull(room)) return [];
  const rows = await read();
  if (room !== undefined) for (const row of rows) room.bytes -= sizeOf(row);
  return rows;
}

/**
 * Whether a column has a text anywhere in it, in any letter case; nothing in the text stands for anything else. The locale of the database
 * may know the case of ASCII only, or another one (I and ı): letters beyond ASCII that the text has are made small here.
 */
export function containing(column: SQLWrapper, text: string): SQL {
  const { small, others } = withoutCase(text);
  const pattern = `%${small.replaceAll(/[\\%_]/g, '\\$&')}%`;
  const from = others.map(([letter]) => letter).join('');
  const to = others.map(([, smallLetter]) => smallLetter).join('');
  const searched = from === '' ? column : sql`translate(${column}, ${from}, ${to})`;
  return sql`(${searched}) COLLATE "C" ILIKE ${pattern}`;
}

/** The text in small letters, and the other forms of its letters beyond ASCII, each with the small one. */
function withoutCase(text: string): { small: string; others: [letter: string, small: string][] } {
  const others = new Map<string, string>();
  const letters = Array.from(text).map((letter) => {
    const [small, ...rest] = letter.toLowerCase();
    if (small === undefined || rest.length > 0 || small <= '\x7f') return letter;
    for (const form of formsOf(small)) if (form !== small) others.set(form, small);
    return small;
  });
  return { small: letters.join(''), others: [...others] };
}

/** Single characters only: ß has no other form. The last σ of a word is another letter than those before. */
function formsOf(small: string): string[] {
  const forms = ['σ', 'ς'].includes(small) ? ['σ', 'ς'] : [small];
  return [...forms, ...forms.map((form) => form.toUpperCase())].filter((form) => Array.from(form).length === 1);
}
