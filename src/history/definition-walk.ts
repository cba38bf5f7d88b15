/**
 * Guarantees: definitions that no schedule has and no run uses are deleted, once they are older than the retention; so are those of an
 *   existing schedule that were replaced before it.
 * Transaction: one for each page and for each kind: a statement, or for replaced ones a lock and then the look at what names them.
 * If the process dies here: the page is deleted or it is not; the next walk finds what is left.
 */
import type { Instant } from '../core/instant.ts';
import type { Clock } from '../runtime/clock.ts';
import type { Database } from '../postgres/database.ts';
import {
  type DefinitionPosition,
  dropReplacedDefinitionsBefore,
  dropUnusedDefinitionsBefore,
  listDefinitions,
} from '../store/history/leftovers.ts';

/** Walks through the definitions page by page, and goes on from there if there are more; begins anew once a round. */
export interface DefinitionWalk {
  /** One page; answers whether there may be another one now. */
  step(before: Instant): Promise<boolean>;
  /** How many were deleted since the last question. */
  dropped(): number;
}

/** Most runs end long before that: hardly any of an older version is left in history, and few must be looked through. */
const LATE_RUNS_MS = 2 * 86_400_000;
/** How often definitions that were in use are checked again. */
const ROUND_MS = 6 * 3_600_000;

// oxlint-disable-next-line max-lines-per-function -- a closure: its functions share its state, and are short
export function createDefinitionWalk(database: Database, clock: Clock, batch: number): DefinitionWalk {
  let after: DefinitionPosition | null = null;
  let limit = batch;
  let dropped = 0;
  let beganAt = clock.monotonic();
  let isAtEnd = false;

  /** Answers whether this page may have more to drop. */
  async function drop(before: Instant, page: readonly DefinitionPosition[]): Promise<boolean> {
    const uids = page.filter(({ isOrphan }) => isOrphan).map(({ uid }) => uid);
    const edited = editedIn(page);
    let replaced = 0;
    try {
      if (uids.length > 0) dropped += await database.run((db) => dropUnusedDefinitionsBefore(db, before, uids));
      if (edited.length > 0)
        replaced = await database.transaction((tx) =>
          dropReplacedDefinitionsBefore(tx, before - LATE_RUNS_MS, edited, limit),
        );
      dropped += replaced;
      const isMore = replaced >= limit;
      limit = Math.min(batch, limit * 2);
      return isMore;
    } catch (error) {
      // The page may have been too much at once. A definition that is too much by itself is skipped until the next round.
      if (page.length === 1) after = page[0] ?? null;
      limit = Math.ceil(page.length / 4);
      throw error;
    }
  }

  return {
    step: async (before) => {
      if (isAtEnd && clock.monotonic() - beganAt >= ROUND_MS) {
        after = null;
        beganAt = clock.monotonic();
      }
      const asked = limit;
      const page = await database.run((db) => listDefinitions(db, { after, limit: asked }));
      const isMore = page.length > 0 && (await drop(before, page));
      isAtEnd = page.length < asked && !isMore;
      if (!isMore) after = page.at(-1) ?? after;
      return !isAtEnd;
    },
    dropped: () => {
      const since = dropped;
      dropped = 0;
      return since;
    },
  };
}

/** Schedules with a version between their first and their present one, as far as a page tells: of its last uid there may be more. */
function editedIn(page: readonly DefinitionPosition[]): string[] {
  const counts = new Map<string, number>();
  for (const { uid, isOrphan } of page) if (!isOrphan) counts.set(uid, (counts.get(uid) ?? 0) + 1);
  const last = page.at(-1)?.uid;
  return [...counts].flatMap(([uid, count]) => (count > 2 || uid === last ? [uid] : []));
}
