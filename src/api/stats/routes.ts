import { z } from 'zod';
import { uidsOf } from '../../store/schedules/search/find-schedules.ts';
import { type RunStats, runStats, STATS_LIMIT_MS } from '../../store/reports/run-stats.ts';
import type { Api, ApiDeps } from '../deps.ts';
import { emptyPeriod } from '../http/request-checks.ts';
import { noSuch } from '../http/problem.ts';
import { addRoute, json, TAGS } from '../http/routes.ts';
import { scheduleIdParams } from '../http/common-schemas.ts';
import { periodQuery } from '../http/filter-schemas.ts';

const count = (description?: string) => z.int().meta({ minimum: 0, ...(description && { description }) });
const rate = (description: string) =>
  z
    .number()
    .nullable()
    .meta({ minimum: 0, maximum: 1, description: `${description}; null where there was none.` });
const milliseconds = z.int().nullable();

export const stats = z
  .object({
    totalRuns: count(),
    succeededRuns: count(),
    failedRuns: count(),
    unknownRuns: count(),
    abandonedRuns: count(),
    skippedRuns: count(),
    cancelledRuns: count(),
    openRuns: count('`waiting`, `pending` or `running`.'),
    lostRuns: count('Ever found with an intent and a claimant that was gone.'),
    recoveredRuns: count('Of those, handed off since.'),
    successRate: rate('Succeeded of those that succeeded, failed, are unknown or were abandoned'),
    recovery: z.object({
      attempts: count('Take-overs by recovery.'),
      succeeded: count('Lost runs that were handed off since.'),
      failed: count('Lost runs that never were, and ended `failed` or `unknown`.'),
      abandoned: count('Lost runs that never were, and were given up.'),
      successRate: rate('Succeeded of these three'),
    }),
    lateness: z
      .object({ p50Ms: milliseconds, p95Ms: milliseconds, p99Ms: milliseconds, maxMs: milliseconds })
      .describe('Of `latenessMs`, nearest rank; null where no run has one.'),
  })
  .meta({ id: 'Stats' });

const querystring = z.strictObject(periodQuery);
const tags = [TAGS.runs];

export function addStatsRoutes(api: Api, { database }: ApiDeps): void {
  addRoute(api, {
    route: 'GET /stats',
    operationId: 'getStats',
    config: { role: 'viewer', scope: 'itself', pace: 'slow', alsoCheck: emptyPeriod },
    summary: 'What became of all runs of a period; `from` and `to` mean `scheduledFor`',
    description: 'Messages of notifiers are left out: `GET /runs?trigger=notify` lists them.',
    tags,
    querystring,
    answers: { 200: json('The figures', stats) },
    handler: async ({ query, caller: { scope } }) =>
      answerStats(await database.run((db) => runStats(db, { ...query, scope }), STATS_LIMIT_MS)),
  });
  addRoute(api, {
    route: 'GET /schedules/:id/stats',
    operationId: 'getStatsOfSchedule',
    config: { role: 'viewer', scope: { name: 'schedule' }, pace: 'slow', alsoCheck: emptyPeriod },
    summary: 'What became of the runs of a schedule; also of a deleted one',
    tags,
    params: scheduleIdParams,
    querystring,
    answers: { 200: json('The figures', stats) },
    refusals: [404],
    handler: async ({ params: { id }, query, caller: { scope } }) => {
      const counted = await database.run(async (db) => {
        const scheduleUids = await uidsOf(db, id, scope);
        if (scheduleUids.length === 0) throw noSuch(`schedule ${id}`);
        return runStats(db, { ...query, scheduleUids, scope });
      }, STATS_LIMIT_MS);
      return answerStats(counted);
    },
  });
}

function answerStats(counted: RunStats): z.output<typeof stats> {
  const { succeeded, failed, unknown, abandoned, recovered, lostAndFailed, lostAndAbandoned, lateness } = counted;
  return {
    totalRuns: counted.total,
    succeededRuns: succeeded,
    failedRuns: failed,
    unknownRuns: unknown,
    abandonedRuns: abandoned,
    skippedRuns: counted.skipped,
    cancelledRuns: counted.cancelled,
    openRuns: counted.open,
    lostRuns: counted.lost,
    recoveredRuns: recovered,
    successRate: share(succeeded, succeeded + failed + unknown + abandoned),
    recovery: {
      attempts: counted.recoveries,
      succeeded: recovered,
      failed: lostAndFailed,
      abandoned: lostAndAbandoned,
      successRate: share(recovered, recovered + lostAndFailed + lostAndAbandoned),
    },
    lateness: { p50Ms: lateness.p50, p95Ms: lateness.p95, p99Ms: lateness.p99, maxMs: lateness.max },
  };
}

function share(part: number, whole: number): number | null {
  return whole === 0 ? null : part / whole;
}
