import { z } from 'zod';
import { type Occurrence, type PlanningState, OCCURRENCE_STATES } from '../../core/time/occurrences.ts';
import { backfill, BACKFILL_AS } from '../../operations/runs/backfill.ts';
import { cursorIn, encodeCursor, limitQuery, occurrenceCursor, pageSchema } from '../http/pages.ts';
import { answeredInstant, instant, queryInstant, scheduleIdParams, whole } from '../http/common-schemas.ts';
import { type Instant, DAY_MS, EARLIEST, isoInstant, isoOrNull } from '../../core/instant.ts';
import { AHEAD_SECONDS } from '../../core/time/cursors.ts';
import { horizonOf } from '../../core/time/plan-due.ts';
import { incarnationsOf, isFollower, readPlanningState } from '../../store/reports/occurrence-rows.ts';
import type { Api, ApiDeps } from '../deps.ts';
import { type UnplannableSpan, BEFORE_ALL } from '../../operations/expected-by-versions.ts';
import { hasNoTimesOfItsOwn } from '../../operations/operation-refused.ts';
import { type OccurrencePage, readOccurrencePage } from './occurrence-page.ts';
import { emptyPeriod, emptyPeriodInBody } from '../http/request-checks.ts';
import { asUnplannable, noSuch } from '../http/problem.ts';
import { addRoute, answersOf, json, TAGS } from '../http/routes.ts';
import { audited } from '../audit/entries.ts';

export const occurrence = z
  .object({
    fireAt: answeredInstant,
    state: z.enum(OCCURRENCE_STATES).meta({
      description:
        '`fired`: it has a run of its own, whatever became of that · `missed`: it was too late when it was planned · ' +
        '`skipped`: an earlier run was active, or a caller asked for it · `paused` · `excluded`: its day is excluded · `upcoming`: not planned yet.',
    }),
    reason: z
      .string()
      .optional()
      .describe(
        'Of `missed`: the value of `catchUp` that decided (`latest`, `skip`, or `limit`: more than `catchUpLimit`), ' +
          'or `retention`: older than records are kept: it was not planned, or its run, which may have fired, was dropped since. `unknown`: no record explains it; ' +
          'that happens where records were removed, the retention was shorter for a while, or the rules of the zone were others then. ' +
          '`clock`: it is still to come, and counts as planned, since the clock of the database was ahead. ' +
          'Of `skipped`: `overlap`, or `request`: it was asked for, by `/skip`; before its moment it has no `runId` yet. ' +
          'Of `excluded`: the date or range, as the schedule has it, the id of the calendar, or the weekday. Of `upcoming`: `error`, the schedule cannot be planned at present.',
      ),
    runId: z
      .string()
      .optional()
      .meta({ format: 'uuid', description: 'Its own run, or the record that stands for it.' }),
    movedFrom: z.string().optional().meta({
      format: 'date',
      description: 'The excluded day whose fire it is, by `onExcluded`.',
      example: '2026-12-25',
    }),
    movedTo: z.string().optional().meta({
      format: 'date',
      description: 'Of `excluded`: the day on which its fires are made, by `onExcluded`.',
    }),
    version: z.int().describe('Of the schedule, under which it was due.'),
  })
  .meta({ id: 'Occurrence' });

const occurrencePage = pageSchema(occurrence)
  .extend({
    plannedThrough: answeredInstant.optional().meta({
      description:
        'Up to when no fire is planned any more; there only where that is still to come, since the clock of the database was ahead: `firelock resume --from-now` sets it back.',
    }),
    unplannable: z
      .array(
        z.object({
          version: z.int(),
          from: answeredInstant,
          to: answeredInstant.nullable(),
          error: z.string(),
        }),
      )
      .optional()
      .describe(
        'Versions of the period whose fire times cannot be told, and while they were in force; there only where there are some.',
      ),
  })
  .describe('A page can hold fewer than `limit`, even none, and have a `nextCursor`.');

const backfillInput = z.strictObject({
  from: instant.describe('Inclusive; however long ago, from 2000 on.'),
  to: instant.describe('Exclusive; not later than now.'),
  limit: whole(1, 10_000).default(1000),
  as: z
    .enum(BACKFILL_AS)
    .default('now')
    .describe(
      '`now`: by the definition as it is now. `then`: each moment by the version that was in force, which its run is of; what lies before ' +
        'its creation is not made, what was paused then is. 422 unless all versions since the one in force at `from` are stored.',
    ),
});

export const backfilled = z.object({
  created: z.int().describe('Runs that are to be handed off now: new ones, and re-opened ones.'),
  existing: z.int().describe('Occurrences that have a run already, which is left as it is.'),
  remainingFrom: answeredInstant
    .nullable()
    .describe('The first occurrence beyond `limit`, to go on from; null: there is none.'),
});

const occurrencesQuery = z.strictObject({
  from: queryInstant.optional().describe('Inclusive; 24 h before `to`, or before now.'),
  to: queryInstant.optional().describe('Exclusive, also in the future; now where it is not given.'),
  limit: limitQuery,
  cursor: occurrenceCursor.optional(),
});

export function addOccurrencesRoute(api: Api, { database, retentionDays }: ApiDeps): void {
  addRoute(api, {
    route: 'GET /schedules/:id/occurrences',
    operationId: 'listOccurrences',
    config: { role: 'viewer', scope: { name: 'schedule' }, pace: 'slow', alsoCheck: emptyPeriod },
    summary: 'Every moment at which a schedule was to fire, and what became of it; also of a deleted one',
    tags: [TAGS.times],
    params: scheduleIdParams,
    querystring: occurrencesQuery,
    answers: { 200: json('A page of occurrences, by time', occurrencePage) },
    refusals: [404, 409],
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

const answered = answersOf(backfilled);

export function addBackfillRoute(api: Api, deps: ApiDeps): void {
  addRoute(api, {
    route: 'POST /schedules/:id/backfill',
    operationId: 'backfillSchedule',
    config: {
      role: 'operator',
      scope: { name: 'schedule' },
      audits: ['schedule.backfill'],
      alsoCheck: emptyPeriodInBody,
    },
    summary: 'Fire what a schedule, as it is now or as it was then, would have fired in a past period; paused or not',
    tags: [TAGS.schedules],
    params: scheduleIdParams,
    body: backfillInput,
    answers: { 202: json('Runs that are to be handed off now', backfilled) },
    refusals: [404, 409, 422],
    handler: async ({ params: { id }, body: { from, to, limit, as }, caller }, reply) => {
      const request = { scheduleId: id, from, to, limit, as };
      const done = await backfill(audited(deps, { caller }), request).catch((error: unknown) => {
        throw asUnplannable(id, error);
      });
      return reply.code(202).send(answered(done));
    },
  });
}
