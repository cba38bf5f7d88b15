import { type SQL, sql } from 'drizzle-orm';
import { PgDialect } from 'drizzle-orm/pg-core';
import type { Instant } from '../../core/instant.ts';
import type { Executor } from '../executor.ts';

/** The rows of a statement written by hand, with the type that its author gives: `rowsOf<Row>(db)(statement)`. */
export function rowsOf<Row extends object>(db: Executor) {
  return async (statement: SQL): Promise<Row[]> => [...(await db.execute(statement))] as unknown as Row[];
}

/**
 * The same, for a statement that every fire takes part in, or that runs repeatedly: it is prepared by name where
 * possible (statement-names.ts). Its text must not depend on the values, and the server plans it without knowing them.
 */
export function queryPrepared<Row extends object>(db: Executor) {
  return async (statement: SQL): Promise<Row[]> => {
    const query = db._.session.prepareQuery(dialect.sqlToQuery(statement), undefined, 'frequent', false);
    return [...((await query.execute()) as Row[])];
  };
}

const dialect = new PgDialect();

/** A `timestamptz` as the driver returns it. */
export type InstantText = string;

export function toInstant(text: InstantText): Instant {
  return Date.parse(text);
}

export function toInstantOrNull(text: InstantText | null): Instant | null {
  return text === null ? null : Date.parse(text);
}

/** The schedule id in rows of one-off runs, and of their definitions. */
export const NO_SCHEDULE = '';

export function scheduleIdOf(text: string): string | null {
  return text === NO_SCHEDULE ? null : text;
}

/**
 * The ids in `rows`, as one text for `isAmong`; NULL if they are all ids that were asked for, which is usual. A row for
 * each id would cost as much as writing it.
 */
export function idsUnlessAll(rows: SQL, asked: number): SQL {
  return sql`CASE WHEN (SELECT count(*) FROM ${rows}) < ${asked} THEN (SELECT coalesce(string_agg(id::text, ','), '') FROM ${rows}) END`;
}

export function isAmong(ids: string | null): (id: string) => boolean {
  if (ids === null) return () => true;
  const found = new Set(ids.split(','));
  return (id) => found.has(id);
}
