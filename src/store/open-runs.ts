import { type SQL, sql } from 'drizzle-orm';
import { EARLIEST, type Instant, LATEST } from '../core/instant.ts';
import { startOfDay } from './by-key.ts';
import type { Database } from './database.ts';
import type { Executor } from './executor.ts';
import { type InstantText, frequentRowsOf, toInstant } from './rows.ts';

/**
 * From when on runs may be open: what looks for work looks no further back. As of the last look, so that an older run that another
 * instance opens is found a little later; what must be decided exactly does not rest on it.
 */
export interface OpenSpan {
  since(): Instant;
  /** Asks the database. */
  look(): Promise<void>;
  /** A run of that time has been opened here. */
  include(at: Instant): void;
}

/** A run may be recorded that much later than it was due, between two looks. */
const MARGIN_MS = 3_600_000;

export function createOpenSpan(database: Database): OpenSpan {
  let since = EARLIEST;
  let included = LATEST;
  return {
    since: () => since,
    look: async () => {
      included = LATEST;
      try {
        const oldest = await database.run(oldestOpen);
        // What was opened here while it was asked, it may not have seen.
        since = Math.min(oldest - MARGIN_MS, included);
      } catch (error) {
        // What others have opened meanwhile must not stay unseen for as long as this fails.
        since = EARLIEST;
        throw error;
      }
    },
    include: (at) => {
      included = Math.min(included, at);
      since = Math.min(since, at);
    },
  };
}

/**
 * The oldest `scheduledFor` of a run that is open; the present moment, by the database's clock, where none is older. By its own index,
 * which holds nothing of days that are over.
 */
export async function oldestOpen(db: Executor): Promise<Instant> {
  const [row] = await frequentRowsOf<{ at: InstantText }>(
    db,
    sql`WITH clock AS MATERIALIZED (SELECT clock_timestamp() AS now)
    SELECT least(now, (SELECT min(scheduled_for) FROM runs WHERE ${isOpen(sql`runs`)})) AS at FROM clock`,
  );
  if (!row) throw new Error('the statement about open runs answered no row');
  return toInstant(row.at);
}

/**
 * Keeps a statement from looking at days before that of an instant: history is one partition per day, and each that is not ruled out
 * costs its planning, whether it holds anything or not.
 */
export function sinceDayOf(column: SQL, at: Instant): SQL {
  return sql`${column} >= ${startOfDay(at)}`;
}

/** As the indexes on them say it. */
export const OPEN_WORDS = `'waiting', 'pending', 'running'`;

/** As the index `runs_open` has it, whatever is asked besides. */
export function isOpen(run: SQL): SQL {
  return sql`CASE WHEN ${run}.status IN (${sql.raw(OPEN_WORDS)}) THEN true END`;
}
