import { isDeepStrictEqual } from 'node:util';
import { sql } from 'drizzle-orm';
import { hostsOf } from '../connection/hosts.ts';
import { openBest } from '../connection/lasting-connection.ts';
import type { Session } from '../connection/session.ts';
import { isUnavailable } from '../errors.ts';
import type { Executor } from '../executor.ts';
import { BY_DAY } from '../history-partitions.ts';
import { migrationHashes } from '../migrate.ts';
import { rowsOf } from '../sql/rows.ts';
import { texts } from '../sql/arrays.ts';
import { type DumpHead, DumpReader, type DumpedTable, rowsIn } from './dump-file.ts';
import { NEVER_EMPTY, TABLES, checkSchema, namesIn, setNoLimits } from './dumped-tables.ts';

/**
 * Writes the rows of a dump into a database that was migrated and never used, in one transaction: all of it, or nothing. Answers how
 * many rows. @throws Error that says what is wrong with the file or the database
 */
export async function restoreDatabase(
  url: string,
  { path, signal }: { path: string; signal: AbortSignal },
): Promise<number> {
  const reader = new DumpReader(path);
  let session: Session | undefined;
  try {
    const head = await reader.head();
    session = await openBest(hostsOf(url), { isWanted: () => !signal.aborted });
    const db = session.executor;
    await makeDays(db, head);
    await db.execute(sql.raw('BEGIN'));
    await setNoLimits(db);
    await refuseUnlessReady(db, head);
    const rows = await copyTables(session, reader, signal);
    await setSequences(db, head);
    await commit(db, rows);
    return rows;
  } finally {
    await reader.close();
    await session?.destroy();
  }
}

/** @throws MayBeRestored if its answer was lost */
async function commit(db: Executor, rows: number): Promise<void> {
  try {
    await db.execute(sql.raw('COMMIT'));
  } catch (error) {
    throw isUnavailable(error) ? new MayBeRestored(rows, error) : error;
  }
}

/** All of it is there, or nothing. */
export class MayBeRestored extends Error {
  override readonly name = 'MayBeRestored';
  constructor(rows: number, cause: unknown) {
    super(`the database did not answer whether it keeps the ${rows} rows`, { cause });
  }
}

/** Before the transaction, few at a time: each takes some locks, and a server has room for so many at once. */
async function makeDays(db: Executor, { days }: DumpHead): Promise<void> {
  for (const parent of BY_DAY) {
    const given = days[parent] ?? [];
    for (let from = 0; from < given.length; from += DAYS_AT_ONCE)
      await db.execute(sql`-- makeDays
        SELECT firelock_create_day(${parent}, day::date) FROM unnest(${texts(given.slice(from, from + DAYS_AT_ONCE))}) AS day`);
  }
}

const DAYS_AT_ONCE = 20;

/** Meanwhile no instance can register, and one that is not registered does nothing. */
async function refuseUnlessReady(db: Executor, { schema, version }: DumpHead): Promise<void> {
  await db.execute(sql.raw('LOCK TABLE instances IN SHARE ROW EXCLUSIVE MODE'));
  await checkSchema(db);
  if (!isDeepStrictEqual(schema, migrationHashes()))
    throw new Error(
      `the tables of the dump are those of firelock ${version}, and not of this version: restore it with that one, and upgrade then`,
    );
  const used = sql.join(
    TABLES.filter(({ table }) => table !== NEVER_EMPTY).map(
      ({ table }) => sql`SELECT ${table} AS name WHERE EXISTS (SELECT FROM ${sql.identifier(table)})`,
    ),
    sql` UNION ALL `,
  );
  const rows = await rowsOf<{ name: string }>(db)(sql`-- refuseUnlessReady
    SELECT name FROM (${used}) AS used ORDER BY name`);
  if (rows.length > 0)
    throw new Error(
      `the database is not empty (${rows.map(({ name }) => name).join(', ')}): restore into one that no instance has used`,
    );
  await db.execute(sql.raw(`DELETE FROM "${NEVER_EMPTY}"`));
}

async function copyTables(session: Session, reader: DumpReader, signal: AbortSignal): Promise<number> {
  let rows = 0;
  async function* counted(pieces: AsyncIterable<Buffer>) {
    for await (const piece of pieces) {
      signal.throwIfAborted();
      rows += rowsIn(piece);
      yield piece;
    }
  }
  for (;;) {
    const part = await reader.next();
    if ('rows' in part) {
      if (part.rows !== rows) throw new Error(`the file has ${rows} rows, and says that it has ${part.rows}`);
      return rows;
    }
    const table = knownTable(part);
    await session.copyIn(`COPY "${table.table}" (${namesIn(table)}) FROM STDIN`, counted(reader.rows()));
  }
}

/** What the file says is no SQL: its names are those of this version's tables, or refused. */
function knownTable({ table, columns }: DumpedTable): DumpedTable {
  const known = TABLES.find((one) => one.table === table);
  const isKnown = columns.every((name) => known?.columns.includes(name));
  if (known === undefined || !isKnown)
    throw new Error(`the file has a table that this version lacks: ${table}`);
  return { table, columns };
}

async function setSequences(db: Executor, { sequences }: DumpHead): Promise<void> {
  await db.execute(sql`-- setSequences
    SELECT setval(pg_get_serial_sequence(quote_ident(name), 'id'), last::bigint)
    FROM unnest(${texts(Object.keys(sequences))}, ${texts(Object.values(sequences))}) AS s(name, last)`);
}
