import type { Instant } from '../../core/instant.ts';
import type { Position } from '../../core/time/expected-occurrences.ts';
import { type Occurrence, type PlanningState, accountFor } from '../../core/time/occurrences.ts';
import { type UnplannableSpan, expectedByVersions } from '../../operations/expected-by-versions.ts';
import type { Database } from '../../postgres/database.ts';
import { type ScheduleIncarnation, plannedRuns, recordsAfter } from '../../store/reports/occurrence-rows.ts';
import { withMovesByEdits } from './moves-by-edits.ts';

export interface OccurrencePage {
  items: Occurrence[];
  /** The position after which the next page begins; null: this is the last page. */
  end: Position | null;
  unplannable: UnplannableSpan[];
}

/** Sorts after every schedule among occurrences of one instant. */
const AFTER_ALL = 'ffffffff-ffff-ffff-ffff-ffffffffffff';

interface PageRequest {
  /** Every schedule that ever had the id. */
  incarnations: readonly ScheduleIncarnation[];
  planning: PlanningState;
  after: Position;
  to: Instant;
  limit: number;
}

/** The first occurrences after a position and before `to`. `limit` bounds the work, whatever lies between them. */
export async function readOccurrencePage(database: Database, request: PageRequest): Promise<OccurrencePage> {
  const { incarnations, planning, after, limit } = request;
  const uids = incarnations.map(({ uid }) => uid);
  const { expected, upTo, unplannable } = await expectedByVersions(database, request);
  // Read after the versions, and after the cursor: so what is planned meanwhile is found here.
  const most = limit + 1;
  const { runs, later } = await database.run(async (db) => {
    const found = await plannedRuns(db, uids, { after, upTo, limit: most });
    const last = found.length < most ? upTo : (found.at(-1)?.scheduledFor ?? upTo);
    return { runs: found, later: await recordsAfter(db, uids, last) };
  });
  const items = accountFor(expected, runs, later, planning);
  const page = await withMovesByEdits(database, incarnations, expected, items.slice(0, limit));
  if (items.length > limit) return { items: page, end: page.at(-1) ?? null, unplannable };
  const end = upTo < request.to - 1 ? { fireAt: upTo, uid: AFTER_ALL } : null;
  return { items: page, end, unplannable };
}
