import type { Instant } from '../../core/instant.ts';
import {
  type Expectation,
  MAX_JITTER_MS,
  type Position,
  type VersionSpan,
  createExpectation,
} from '../../core/time/expected-occurrences.ts';
import { type Occurrence, type PlanningState, accountFor } from '../../core/time/occurrences.ts';
import { calendarReachOf } from '../../core/days/day-times.ts';
import { calendarIdsOf } from '../../core/timing/timing.ts';
import { reasonOf } from '../../runtime/reason.ts';
import { inSlices } from '../../runtime/loop/slices.ts';
import type { Database } from '../../postgres/database.ts';
import { type KnownCalendars, readCalendars } from '../../store/calendars/calendar-histories.ts';
import {
  type ScheduleIncarnation,
  versionFor,
  versionSpans,
  plannedRuns,
  recordsAfter,
} from '../../store/reports/occurrence-rows.ts';
import { withMovesByEdits } from './moves-by-edits.ts';

export interface OccurrencePage {
  items: Occurrence[];
  /** The position after which the next page begins; null: this is the last page. */
  end: Position | null;
  unplannable: UnplannableSpan[];
}

export interface UnplannableSpan {
  span: VersionSpan;
  error: string;
}

/** Sorts before, and after, every schedule among occurrences of one instant. */
export const BEFORE_ALL = '00000000-0000-0000-0000-000000000000';
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
  const { expected, upTo, unplannable } = await expectedOf(database, request);
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

interface ExpectedOccurrences {
  expected: ReturnType<Expectation['list']>;
  /** The list is complete up to and with this instant. */
  upTo: Instant;
  unplannable: UnplannableSpan[];
}

const CHUNK = 100;
/** How many are read for one page; if more lie within the longest jitter, they are read all the same. */
const MAX_VERSIONS = 2_000;

async function expectedOf(database: Database, request: PageRequest): Promise<ExpectedOccurrences> {
  const { after, to, limit } = request;
  const expectation = createExpectation({ after, to, max: limit + 1 });
  const unplannable: UnplannableSpan[] = [];
  const complete = (upTo: Instant) => ({
    expected: expectation.list().filter(({ fireAt }) => fireAt <= upTo),
    upTo,
    unplannable,
  });
  let versions = 0;
  for await (const { span, calendars } of spansOf(database, request)) {
    if (span.since > expectation.reach()) break;
    const certain = span.since - MAX_JITTER_MS;
    if (versions >= MAX_VERSIONS && certain > after.fireAt) return complete(Math.min(certain, to - 1));
    versions += 1;
    try {
      await inSlices(expectation.add(span, calendars));
    } catch (error) {
      unplannable.push({ span, error: reasonOf(error) });
    }
  }
  return complete(to - 1);
}

/** Every version that was in force after the position, in order. */
async function* spansOf(
  database: Database,
  { incarnations, after }: PageRequest,
): AsyncGenerator<{ span: VersionSpan; calendars: KnownCalendars['histories'] }> {
  for (const [index, incarnation] of incarnations.entries()) {
    const next = incarnations[index + 1];
    if (next !== undefined && next.createdAt < after.fireAt) continue;
    let from = await database.run((db) => versionFor(db, incarnation.uid, after.fireAt));
    for (;;) {
      const { spans, known } = await database.run(async (db) => {
        const spans = await versionSpans(db, incarnation, { from, limit: CHUNK });
        const ids = new Set(spans.flatMap(({ timing }) => calendarIdsOf(timing)));
        const reach = Math.max(0, ...spans.map(({ timing }) => calendarReachOf(timing)));
        return { spans, known: await readCalendars(db, [...ids], after.fireAt - MAX_JITTER_MS - reach) };
      });
      yield* spans.map((span) => ({ span, calendars: known.histories }));
      const last = spans.at(-1);
      if (last === undefined || spans.length < CHUNK) break;
      from = last.version + 1;
    }
  }
}
