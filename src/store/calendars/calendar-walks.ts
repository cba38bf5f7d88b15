import { sql } from 'drizzle-orm';
import type { Executor } from '../../postgres/executor.ts';
import { uuids } from '../../postgres/sql/arrays.ts';
import { recordsOf } from '../../postgres/sql/rows.ts';

/** How far a walk along the users of a calendar has come. */
export interface WalkPosition {
  /** All next fires are moved, and what is owed is being recorded. */
  owing: boolean;
  /** The uid of the last user that was seen to; null: none was. */
  after: string | null;
  /** Some users before that one were left for later. */
  hasLeft: boolean;
}

interface Walk {
  calendarId: string;
  version: number;
  walker: string;
}

/** Longer than a step of a walk may take. */
const KEPT_SECONDS = 20;
const BEGINNING: WalkPosition = { owing: false, after: null, hasLeft: false };

/**
 * Nobody else walks for this version of the calendar until it is given up, or was not taken again for a while. `at`: how far this walker
 * has come; null: it goes on where another one has ended. Answers where it goes on; null: somebody else walks, or for a newer version.
 */
export async function takeWalk(
  db: Executor,
  { calendarId, version, walker }: Walk,
  at: WalkPosition | null,
): Promise<WalkPosition | null> {
  const { owing, after, hasLeft } = at ?? BEGINNING;
  const inherits = sql`${at === null} AND w.version = excluded.version`;
  const [position = null] = await recordsOf<WalkPosition>(db)(sql`-- takeWalk
    INSERT INTO calendar_walks AS w (calendar_id, version, walker, until, owing, after, has_left)
    SELECT ${calendarId}, ${version}, ${walker}::uuid, clock_timestamp() + make_interval(secs => ${KEPT_SECONDS}),
      ${owing}, ${after}::uuid, ${hasLeft}
    ON CONFLICT (calendar_id) DO UPDATE SET version = excluded.version, walker = excluded.walker, until = excluded.until,
      owing = CASE WHEN ${inherits} THEN w.owing ELSE excluded.owing END,
      after = CASE WHEN ${inherits} THEN w.after ELSE excluded.after END,
      has_left = CASE WHEN ${inherits} THEN w.has_left ELSE excluded.has_left END
    WHERE w.version < excluded.version
      OR w.version = excluded.version AND (w.walker = excluded.walker OR w.until <= clock_timestamp())
    RETURNING owing, after, has_left`);
  return position;
}

/** Anybody may go on where these walkers said last how far they were. */
export async function giveUpWalks(db: Executor, walkers: readonly string[]): Promise<void> {
  if (walkers.length === 0) return;
  await db.execute(sql`-- giveUpWalks
    UPDATE calendar_walks SET until = clock_timestamp() WHERE walker = ANY (${uuids(walkers)})`);
}
