import { expect } from 'vitest';
import type postgres from 'postgres';

/** An answer, whatever way it came. */
interface Refusal {
  status: number;
  headers: Headers;
  text: string;
}

/** What gives away how the server is made: stacks, files, statements, names of its parts. */
const LEAKS =
  /node_modules|\.ts:\d|\.js:\d|\/src\/|\/tmp\/|\/root\/|\/home\/|\bat .+:\d+:\d+|\bSELECT\b|\bINSERT\b|\bUPDATE\b|postgres|PostgreSQL|fastify|zod|undici|v8::|Node\.js/i;
const BANNERS = ['server', 'x-powered-by', 'via'];

/** A refusal with one of these statuses: problem+json that says why and gives nothing away. */
export function expectHarmless(what: string, answer: Refusal, statuses: readonly number[]): void {
  const { status, headers, text } = answer;
  const type = headers.get('content-type') ?? '';
  expect([what, status, statuses.includes(status), type]).toEqual([
    what,
    status,
    true,
    expect.stringMatching(/^application\/problem\+json/),
  ]);
  const body = JSON.parse(text) as Record<string, unknown>;
  expect([what, body['status'], typeof body['title'], typeof body['detail']]).toEqual([
    what,
    status,
    'string',
    'string',
  ]);
  expect([what, LEAKS.exec(text)?.[0], BANNERS.filter((name) => headers.has(name))]).toEqual([what, undefined, []]);
}

/** What came over a socket: the last answer of it, since `100 Continue` may stand before. */
export function refusalIn(raw: string): Refusal {
  const [, line = '', rest = ''] = /^(?:HTTP\/1\.1 100 Continue\r\n\r\n)?(HTTP\/1\.1 .*)\r\n([^]*)$/.exec(raw) ?? [];
  const [head = '', ...bodies] = rest.split('\r\n\r\n');
  const headers = new Headers();
  for (const header of head.split('\r\n')) {
    const colon = header.indexOf(':');
    if (colon > 0) headers.append(header.slice(0, colon), header.slice(colon + 1).trim());
  }
  const body = bodies.join('\r\n\r\n');
  const isChunked = headers.get('transfer-encoding') === 'chunked';
  return { status: Number(line.split(' ')[1]), headers, text: isChunked ? unchunked(body) : body };
}

function unchunked(body: string): string {
  const end = body.indexOf('\r\n');
  const size = Number.parseInt(body.slice(0, end), 16);
  return size === 0 ? '' : body.slice(end + 2, end + 2 + size) + unchunked(body.slice(end + 4 + size));
}

/** How many rows each table has. Loops of a daemon may write in those of instances. */
export async function rowCounts(sql: postgres.Sql): Promise<Record<string, number>> {
  const tables = await sql<{ name: string }[]>`SELECT c.relname AS name FROM pg_class c
    WHERE c.relnamespace = current_schema()::regnamespace AND c.relkind IN ('r', 'p') AND NOT c.relispartition`;
  const counts: Record<string, number> = {};
  for (const { name } of tables) {
    const [row] = await sql<{ count: number }[]>`SELECT count(*)::int AS count FROM ${sql(name)}`;
    counts[name] = row?.count ?? 0;
  }
  return counts;
}
