import { type Query, SQL, StringChunk } from 'drizzle-orm';
import { PgDialect } from 'drizzle-orm/pg-core';

const dialect = new PgDialect();

/** A piece of text; null: the place of a value. */
type Part = string | null;

interface Rendered {
  parts: readonly Part[];
  text: string;
}

/** By their first part, which says the statement's name. */
const known = new Map<Part | undefined, Rendered[]>();

/** Of one statement: its text may depend on what the batch has. */
const MAX_TEXTS = 16;

/**
 * A statement's text, and its values. To put a text together takes the query builder a tenth of a millisecond, and is most of what a small
 * batch costs here: so it does that once for the same parts.
 */
export function rendered(statement: SQL): Query {
  const [parts, params]: [Part[], unknown[]] = [[], []];
  if (!take(statement, parts, params)) return dialect.sqlToQuery(statement);
  const [first] = parts;
  const texts = known.get(first) ?? [];
  known.set(first, texts);
  const same = texts.find((one) => isSame(one.parts, parts));
  if (same) return { sql: same.text, params };
  const { sql: text } = dialect.sqlToQuery(statement);
  if (texts.length >= MAX_TEXTS) texts.length = 0;
  texts.push({ parts, text });
  return { sql: text, params };
}

/** False: there is something in it of which only the query builder knows what it becomes. */
function take({ queryChunks }: SQL, parts: Part[], params: unknown[]): boolean {
  for (const chunk of queryChunks as readonly unknown[]) {
    if (chunk instanceof StringChunk) {
      parts.push(...chunk.value);
    } else if (chunk instanceof SQL) {
      if (!take(chunk, parts, params)) return false;
    } else {
      if (chunk === undefined || (typeof chunk === 'object' && chunk !== null)) return false;
      parts.push(null);
      params.push(chunk);
    }
  }
  return true;
}

function isSame(some: readonly Part[], others: readonly Part[]): boolean {
  return some.length === others.length && some.every((part, index) => part === others[index]);
}
