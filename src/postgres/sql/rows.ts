import { type SQL, sql } from 'drizzle-orm';
import type { RowList } from 'postgres';
import type { Instant } from '../../core/instant.ts';
import type { Executor, Transaction } from '../executor.ts';
import { rendered } from './rendered.ts';

/** The rows of a statement written by hand, with the type that its author gives: `rowsOf<Row>(db)(statement)`. */
export function rowsOf<Row extends object>(db: Executor) {
  return async (statement: SQL): Promise<Row[]> => taken(await db.execute(statement)) as unknown as Row[];
}

/**
 * The same, for a statement that every fire takes part in, or that runs repeatedly: it is prepared by name where
 * possible (connection/session.ts). So its text must not depend on the values.
 */
export function queryPrepared<Row extends object>(db: Executor) {
  return async (statement: SQL): Promise<Row[]> => taken(await executePrepared<Row>(db, statement));
}

function executePrepared<Row extends object>(db: Executor, statement: SQL): Promise<RowList<Row[]>> {
  const query = db._.session.prepareQuery(rendered(statement), undefined, 'frequent', false);
  return query.execute() as Promise<RowList<Row[]>>;
}

/**
 * The rows, out of the driver's result. Garbage collection finds that result only when it goes through the old generation: with the rows in
 * it, all of them got there too (three quarters of what was allocated, instead of nothing).
 */
function taken<Row>(result: Row[]): Row[] {
  return result.splice(0);
}

/**
 * The rows as records of ours, so that the statement alone names their columns: in camel case, moments as instants, numbers of eight bytes
 * as numbers.
 */
export function recordsOf<Item extends object>(db: Executor) {
  return async (statement: SQL): Promise<Item[]> => inRecords(await db.execute<RowOfDriver>(statement));
}

/** The same, for a statement as `queryPrepared` takes it. */
export function preparedRecordsOf<Item extends object>(db: Executor) {
  return async (statement: SQL): Promise<Item[]> => inRecords(await executePrepared<RowOfDriver>(db, statement));
}

/**
 * Values of a row that are null as a rule, as one column: an object of those that are not, or null. Each column costs as much as another
 * one, whether it is null or not, and to V8 a row of more than sixteen is a hash table.
 */
export function unusual(values: Record<string, SQL>): SQL {
  const all = Object.entries(values);
  const pairs = all.map(([name, value]) => sql`${sql.raw(`'${name}'`)}, ${value}`);
  const given = all.map(([, value]) => value);
  return sql`CASE WHEN num_nonnulls(${sql.join(given, sql`, `)}) > 0
    THEN json_strip_nulls(json_build_object(${sql.join(pairs, sql`, `)})) END AS unusual`;
}

/** The values of the one column that a statement answers. */
export function onlyColumnOf<Value>(db: Executor) {
  return async (statement: SQL): Promise<Value[]> =>
    (await recordsOf<Record<string, Value>>(db)(statement)).flatMap((item) => Object.values(item));
}

type RowOfDriver = Record<string, unknown>;

function inRecords<Item extends object>(rows: RowList<RowOfDriver[]>): Item[] {
  const fields = rows.columns.map(({ name, type }) => ({
    name,
    key: inCamelCase(name),
    read: READERS.get(type),
  }));
  return taken<RowOfDriver>(rows).map((row) => {
    const item: RowOfDriver = {};
    for (const { name, key, read } of fields) {
      const value = row[name];
      item[key] = read === undefined || typeof value !== 'string' ? value : read(value);
    }
    return item as Item;
  });
}

/** By the number of their type: `timestamptz` and `bigint`, which the driver hands over as text. */
const READERS: ReadonlyMap<number, (text: string) => number> = new Map([
  [1184, toInstant],
  [20, Number],
]);

function inCamelCase(name: string): string {
  return name.replace(/_([a-z])/g, (_, letter: string) => letter.toUpperCase());
}

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

/** The clock that decides: this moment, not the transaction's start. */
export async function databaseNow(db: Executor): Promise<Instant> {
  const [row] = await rowsOf<{ now: InstantText }>(db)(sql`-- databaseNow
    SELECT clock_timestamp() AS now`);
  if (!row) throw new Error('the database gave no time');
  return toInstant(row.now);
}

/**
 * A column beside the time of a statement that writes many rows: it fails (isLockedByOthers) where another transaction
 * has one of them locked for longer. A frozen instance may do so for seconds, and all the others would wait as long: on the
 * server even after this side has given up on the statement. What it did not write then goes its way past that row.
 * The limit takes no round trip, holds behind a pooler, and ends with the transaction: with the statement, where that
 * is one by itself. The rows that are locked must come from a join with this one, which so is there before them.
 * A healthy instance never has a row locked for this long.
 */
export const LOCK_LIMIT = sql`set_config('lock_timeout', '200', true) AS lock_limit`;

/** The same for the rest of the transaction. */
export async function limitLockWaits(tx: Transaction): Promise<void> {
  await tx.execute(sql`-- limitLockWaits
    SELECT ${LOCK_LIMIT}`);
}
