import { open, rm } from 'node:fs/promises';
import { pipeline } from 'node:stream/promises';
import { sql } from 'drizzle-orm';
import { isoInstant } from '../../core/instant.ts';
import { hostsOf } from '../connection/hosts.ts';
import { openBest } from '../connection/lasting-connection.ts';
import type { Session } from '../connection/session.ts';
import type { Executor } from '../executor.ts';
import { BY_DAY, listPartitions } from '../history-partitions.ts';
import { migrationHashes } from '../migrate.ts';
import { rowsOf } from '../sql/rows.ts';
import { type DumpHead, END_OF_ROWS, lineOf, rowsIn } from './dump-file.ts';
import { TABLES, checkSchema, namesIn, setNoLimits } from './dumped-tables.ts';

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

async function* partsOf(
  session: Session,
  head: DumpHead,
  counted: { rows: number },
): AsyncGenerator<Buffer | string> {
  yield lineOf(head);
  for (const one of TABLES) {
    yield lineOf(one);
    for await (const piece of await session.copyOut(
      `COPY (SELECT ${namesIn(one)} FROM "${one.table}") TO STDOUT`,
    )) {
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
