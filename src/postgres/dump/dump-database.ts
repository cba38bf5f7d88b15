import { open, rm } from 'node:fs/promises';
import { pipeline } from 'node:stream/promises';
import { isDeepStrictEqual } from 'node:util';
import { is, sql } from 'drizzle-orm';
import { getTableConfig, PgTable } from 'drizzle-orm/pg-core';
import { isoInstant } from '../../core/instant.ts';
import { hostsOf, openBest } from '../connection/lasting-connection.ts';
import type { Session } from '../connection/session.ts';
import type { Executor } from '../executor.ts';
import { BY_DAY, listPartitions } from '../history-partitions.ts';
import { isOfThisVersion, migrationHashes } from '../migrate.ts';
import { rowsOf } from '../sql/rows.ts';
import { type DumpedTable, type DumpHead, DumpReader, END_OF_ROWS, lineOf, rowsIn } from './dump-file.ts';
import { isUnavailable } from '../errors.ts';
import { texts } from '../sql/arrays.ts';
import * as schema from '../schema.ts';

interface Dumping {
  /** A file that does not exist. What a crash leaves of it is known by its end. */
  path: string;
  /** Of the daemon. */
  version: string;
  signal: AbortSignal;
}

/** Writes all rows of one moment into a file, while instances work; answers how many. They pass through memory piece by piece. */
export async function dumpDatabase(url: string, { path, version, signal }: Dumping): Promise<number> {
  // It has payloads. What is there already is another's.
  const file = await open(path, 'wx', 0o600);
  let session: Session | undefined;
  try {
    session = await openBest(hostsOf(url), { isWanted: () => !signal.aborted });
    await session.executor.execute(sql.raw('BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY'));
    await setNoLimits(session.executor);
    await checkSchema(session.executor);
    const head = await headOf(session.executor, version);
    const counted = { rows: 0 };
    await pipeline(partsOf(session, head, counted), file.createWriteStream({ flush: true }), { signal });
    return counted.rows;
  } catch (error) {
    await rm(path, { force: true });
    throw error;
  } finally {
    await file.close();
    await session?.destroy();
  }
}

async function* partsOf(session: Session, head: DumpHead, counted: { rows: number }): AsyncGenerator<Buffer | string> {
  yield lineOf(head);
  for (const one of TABLES) {
    yield lineOf(one);
    for await (const piece of await session.copyOut(`COPY (SELECT ${namesIn(one)} FROM "${one.table}") TO STDOUT`)) {
      counted.rows += rowsIn(piece as Buffer);
      yield piece as Buffer;
    }
    yield END_OF_ROWS;
  }
  yield lineOf(counted);
}

async function headOf(db: Executor, version: string): Promise<DumpHead> {
  const days: DumpHead['days'] = {};
  for (const parent of BY_DAY)
    days[parent] = (await listPartitions(db, parent)).map(({ day }) => isoInstant(day).slice(0, 10));
  return { firelock: 'dump', version, schema: migrationHashes(), days, sequences: await sequencesOf(db) };
}

/** A number that was given out after the moment of the dump is greater than all in it, which is right. */
async function sequencesOf(db: Executor): Promise<DumpHead['sequences']> {
  const rows = await rowsOf<{ name: string; last: string }>(db)(sql`-- sequencesOf
    SELECT sequencename AS name, last_value::text AS last FROM pg_sequences
    WHERE schemaname = current_schema() AND last_value IS NOT NULL`);
  const last = new Map(rows.map((row) => [row.name, row.last]));
  return Object.fromEntries(
    TABLES.flatMap(({ table }) => {
      const value = last.get(`${table}_id_seq`);
      return value === undefined ? [] : [[table, value]];
    }),
  );
}

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
  if (known === undefined || !isKnown) throw new Error(`the file has a table that this version lacks: ${table}`);
  return { table, columns };
}

async function setSequences(db: Executor, { sequences }: DumpHead): Promise<void> {
  await db.execute(sql`-- setSequences
    SELECT setval(pg_get_serial_sequence(quote_ident(name), 'id'), last::bigint)
    FROM unnest(${texts(Object.keys(sequences))}, ${texts(Object.values(sequences))}) AS s(name, last)`);
}

/** Every table of this version. None refers to another one, so that their order does not matter. */
export const TABLES: readonly DumpedTable[] = Object.values(schema)
  .filter((part) => is(part, PgTable))
  .map((table) => {
    const { name, columns } = getTableConfig(table);
    return { table: name, columns: columns.map((column) => column.name) };
  });

/** Migrating fills it; restoring puts the dumped row in its place. */
const NEVER_EMPTY = 'installation';

function namesIn({ columns }: DumpedTable): string {
  return columns.map((name) => `"${name}"`).join(', ');
}

/** @throws Error unless each column is known here */
async function checkSchema(db: Executor): Promise<void> {
  if (!(await isOfThisVersion(db)))
    throw new Error('the schema of the database is not that of this version of firelock: use the one that works on it');
}

/** A dump may take long, and so may who reads it. */
async function setNoLimits(db: Executor): Promise<void> {
  await db.execute(sql`-- setNoLimits
    SELECT set_config(name, '0', true) FROM unnest(ARRAY['statement_timeout', 'idle_in_transaction_session_timeout']) AS name`);
}
