import { type SQL, sql } from 'drizzle-orm';

/** An invariant: it holds in every snapshot of the database, whatever instances do, and however they die. */
export interface Check {
  name: string;
  /** The invariant, as a sentence for operators. */
  holds: string;
  /**
   * A query with the columns `name` (of the row, for a person) and `fault`. It may use `clock`, a row with the column `now`, and
   * `settled`, a row with `at`: what is older than that is not under way any more.
   */
  found: SQL;
}

/** Loops come back to unfinished work much sooner. Younger work may be under way, and is no violation. */
export const SETTLED_SECONDS = 300;

/** Among ended runs, the newest by `scheduledFor` are checked: so many that a check takes a second at most. */
const NEWEST_ENDED = 100_000;
/** Among open runs, which are usually few: the newest, too. */
const NEWEST_OPEN = 100_000;
/** For these runs, every day of history is searched. */
export const NEWEST_ASKED = 5_000;

/** By the index on the id, in every day of history. */
export const newestEnded = sql`(SELECT * FROM history ORDER BY id DESC LIMIT ${NEWEST_ENDED})`;
export const newestOpen = sql`(SELECT * FROM runs ORDER BY id DESC LIMIT ${NEWEST_OPEN})`;

/** A run, for a person; from a row `r`. */
export const RUN_NAME = sql`'run ' || r.id || CASE WHEN r.schedule_id = '' THEN '' ELSE ' of schedule ' || r.schedule_id END`;
