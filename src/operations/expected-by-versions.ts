/**
 * Guarantees: each occurrence that is listed is one of the version that was in force when it was due.
 * Transaction: none; it reads.
 * If the process dies here: nothing is to be done.
 */
import type { Instant } from '../core/instant.ts';
import { calendarReachOf } from '../core/days/day-times.ts';
import {
  type Expected,
  MAX_JITTER_MS,
  type Position,
  type VersionSpan,
  createExpectation,
} from '../core/time/expected-occurrences.ts';
import { calendarIdsOf } from '../core/timing/timing.ts';
import { reasonOf } from '../runtime/reason.ts';
import { inSlices } from '../runtime/loop/slices.ts';
import type { Database } from '../postgres/database.ts';
import { type KnownCalendars, readCalendars } from '../store/calendars/calendar-histories.ts';
import { type ScheduleIncarnation, versionFor, versionSpans } from '../store/reports/occurrence-rows.ts';

export interface UnplannableSpan {
  span: VersionSpan;
  error: string;
}

/** Sorts before every schedule among occurrences of one instant. */
export const BEFORE_ALL = '00000000-0000-0000-0000-000000000000';

interface ExpectedRequest {
  /** Schedules that follow each other under one id. */
  incarnations: readonly ScheduleIncarnation[];
  after: Position;
  to: Instant;
  limit: number;
  firesOnly?: boolean;
}

interface ExpectedOccurrences {
  /** One more than the limit, where there are more. */
  expected: Expected[];
  /** The list is complete up to and with this instant. */
  upTo: Instant;
  unplannable: UnplannableSpan[];
}

const CHUNK = 100;
/** How many are read for one page; if more lie within the longest jitter, they are read all the same. */
const MAX_VERSIONS = 2_000;

/** The first occurrences after a position and before `to`. `limit` bounds the work, whatever lies between them. */
export async function expectedByVersions(database: Database, request: ExpectedRequest): Promise<ExpectedOccurrences> {
  const { after, to, limit, firesOnly = false } = request;
  const expectation = createExpectation({ after, to, max: limit + 1, firesOnly });
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
  { incarnations, after }: ExpectedRequest,
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
