import type { Instant } from '../../core/instant.ts';
import type { Expected, Position } from '../../core/time/expected-occurrences.ts';
import { accountFor, type Occurrence, type PlanningState } from '../../core/time/occurrences.ts';
import { expectedByVersions, type UnplannableSpan } from '../../operations/expected-by-versions.ts';
import type { Database } from '../../postgres/database.ts';
import {
  type ScheduleIncarnation,
  plannedRuns,
  recordsAfter,
  versionSpans,
} from '../../store/reports/occurrence-rows.ts';
import { fireTimes } from '../../core/time/fire-times.ts';
import { calendarReachOf } from '../../core/days/day-times.ts';
import { calendarIdsOf } from '../../core/timing/timing.ts';
import { readCalendars } from '../../store/calendars/calendar-histories.ts';

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

/**
 * Says where fires come from that an edit of the definition made at once: they lie before their own version, so no version in force at
 * their time expects them.
 */
async function withMovesByEdits(
  database: Database,
  incarnations: readonly ScheduleIncarnation[],
  expected: readonly Expected[],
  page: readonly Occurrence[],
): Promise<Occurrence[]> {
  const explained = new Set(expected.map(positionOf));
  const others = page.filter((one) => one.runId !== null && !explained.has(positionOf(one)));
  const found = new Map<string, string | null>();
  for (const [, some] of Map.groupBy(others, ({ uid, version }) => `${uid} ${version}`)) {
    const moveOf = await moveUnder(database, incarnations, some);
    for (const one of some) found.set(positionOf(one), moveOf(one.fireAt));
  }
  return page.map((one) => ({ ...one, movedFrom: found.get(positionOf(one)) ?? one.movedFrom }));
}

const positionOf = ({ uid, fireAt }: { uid: string; fireAt: number }): string => `${uid} ${fireAt}`;

/** By the version under which they are recorded. */
async function moveUnder(
  database: Database,
  incarnations: readonly ScheduleIncarnation[],
  some: readonly Occurrence[],
): Promise<(fireAt: number) => string | null> {
  const [first] = some;
  const incarnation = incarnations.find(({ uid }) => uid === first?.uid);
  if (!first || !incarnation) return () => null;
  return database.run(async (db) => {
    const [span] = await versionSpans(db, incarnation, { from: first.version, limit: 1 });
    if (span?.version !== first.version) return () => null;
    const { timing, identity } = span;
    const earliest = Math.min(...some.map(({ fireAt }) => fireAt));
    const known = await readCalendars(db, calendarIdsOf(timing), earliest - calendarReachOf(timing));
    try {
      const times = fireTimes(timing, identity, known.histories);
      return (fireAt: number) => times.moveOf(fireAt)?.from ?? null;
    } catch {
      return () => null;
    }
  });
}
