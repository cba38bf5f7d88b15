import { z } from 'zod';
import { type Instant, DAY_MS, EARLIEST, isoInstant, isoOrNull } from '../../core/instant.ts';
import { AHEAD_SECONDS } from '../../core/time/cursors.ts';
import { horizonOf } from '../../core/time/plan-due.ts';
import type { Occurrence, PlanningState } from '../../core/time/occurrences.ts';
import { incarnationsOf, isFollower, readPlanningState } from '../../store/reports/occurrence-rows.ts';
import type { Api, ApiDeps } from '../deps.ts';
import { BEFORE_ALL, type UnplannableSpan } from '../../operations/expected-by-versions.ts';
import { hasNoTimesOfItsOwn } from '../../operations/operation-refused.ts';
import { type OccurrencePage, readOccurrencePage } from './occurrence-page.ts';
import { cursorIn, encodeCursor, limitQuery, occurrenceCursor } from '../http/pages.ts';
import { emptyPeriod } from '../http/also-checks.ts';
import { noSuch } from '../http/problem.ts';
import { addRoute, json, TAGS } from '../http/routes.ts';
import { queryInstant, scheduleIdParams } from '../http/common-schemas.ts';
import { occurrencePage as pageSchema } from './schemas.ts';

const occurrencesQuery = z.strictObject({
  from: queryInstant.optional().meta({ description: 'Inclusive; 24 h before `to`, or before now.' }),
  to: queryInstant
    .optional()
    .meta({ description: 'Exclusive, also in the future; now where it is not given.' }),
  limit: limitQuery,
  cursor: occurrenceCursor.optional(),
});

export function addOccurrencesRoute(api: Api, { database, retentionDays }: ApiDeps): void {
  addRoute(api, {
    ...{ route: 'GET /schedules/:id/occurrences', operationId: 'listOccurrences' },
    config: { role: 'viewer', scope: { name: 'schedule' }, pace: 'slow', alsoCheck: emptyPeriod },
    summary: 'Every moment at which a schedule was to fire, and what became of it; also of a deleted one',
    ...{ tags: [TAGS.times], params: scheduleIdParams, querystring: occurrencesQuery },
    ...{ answers: { 200: json('A page of occurrences, by time', pageSchema) }, refusals: [404, 409] },
    handler: async ({ params: { id }, query: { limit, cursor, ...period } }) => {
      const after = cursorIn(cursor, id);
      const { seen, incarnations } = await database.run(async (db) => {
        const seen = await readPlanningState(db, id);
        const incarnations = await incarnationsOf(db, id);
        const last = incarnations.at(-1);
        if (last === undefined) throw noSuch(`schedule ${id}`);
        if (await isFollower(db, last.uid)) throw hasNoTimesOfItsOwn(id);
        return { seen, incarnations };
      });
      const { from, to } = periodOf(period, seen.now);
      const page = await readOccurrencePage(database, {
        incarnations,
        planning: { ...seen, horizon: horizonOf(seen.now, retentionDays) },
        after: after ?? { fireAt: from, uid: BEFORE_ALL },
        to,
        limit,
      });
      return { ...answerPage(page, id), ...answerAhead(seen) };
    },
  });
}

/** By default the last day; if `from` is in the future, the first day after it. */
function periodOf(given: { from?: Instant | undefined; to?: Instant | undefined }, now: Instant) {
  const { from, to } = given;
  const end = to ?? (from !== undefined && from >= now ? from + DAY_MS : now);
  return { from: from ?? Math.max(Math.min(now, end) - DAY_MS, EARLIEST), to: end };
}

function answerPage({ items, end, unplannable }: OccurrencePage, id: string) {
  return {
    items: items.map(answerOccurrence),
    nextCursor: end === null ? null : encodeCursor({ of: id, fireAt: end.fireAt, uid: end.uid }),
    ...(unplannable.length === 0 ? {} : { unplannable: unplannable.map(answerUnplannable) }),
  };
}

function answerAhead({ now, current }: { now: Instant; current: PlanningState['current'] }) {
  return current === null || current.goesOnAfter <= now + AHEAD_SECONDS * 1000
    ? {}
    : { plannedThrough: isoInstant(current.goesOnAfter) };
}

function answerOccurrence({ fireAt, state, reason, runId, version, movedFrom, movedTo }: Occurrence) {
  return {
    fireAt: isoInstant(fireAt),
    state,
    ...(reason === null ? {} : { reason }),
    ...(runId === null ? {} : { runId }),
    ...(movedFrom === null ? {} : { movedFrom }),
    ...(movedTo === null ? {} : { movedTo }),
    version,
  };
}

function answerUnplannable({ span, error }: UnplannableSpan) {
  const { version, since, until } = span;
  return { version, from: isoInstant(since), to: isoOrNull(until), error };
}
