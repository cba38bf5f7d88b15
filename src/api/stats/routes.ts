import { z } from 'zod';
import { uidsOf } from '../../store/schedules/search/find-schedules.ts';
import { type RunStats, STATS_LIMIT_MS, runStats } from '../../store/reports/run-stats.ts';
import type { Api, ApiDeps } from '../deps.ts';
import { emptyPeriod, periodQuery } from '../http/period.ts';
import { TAGS } from '../http/plugins/openapi.ts';
import { noSuchSchedule } from '../http/problem.ts';
import { json, problems } from '../http/response-schemas.ts';
import { scheduleIdParams } from '../http/common-schemas.ts';
import { stats } from './schemas.ts';

const querystring = z.strictObject(periodQuery);
const tags = [TAGS.runs];

export function addStatsRoutes(api: Api, { database }: ApiDeps): void {
  api.get(
    '/stats',
    {
      config: { role: 'viewer', pace: 'slow', alsoCheck: emptyPeriod },
      schema: {
        operationId: 'getStats',
        summary: 'What became of all runs of a period; `from` and `to` mean `scheduledFor`',
        tags,
        querystring,
        response: { 200: json('The figures', stats), ...problems(400) },
      },
    },
    async ({ query }) => answerStats(await database.run((db) => runStats(db, query), STATS_LIMIT_MS)),
  );
  api.get(
    '/schedules/:id/stats',
    {
      config: { role: 'viewer', pace: 'slow', alsoCheck: emptyPeriod },
      schema: {
        operationId: 'getStatsOfSchedule',
        summary: 'What became of the runs of a schedule; also of a deleted one',
        tags,
        params: scheduleIdParams,
        querystring,
        response: { 200: json('The figures', stats), ...problems(400, 404) },
      },
    },
    async ({ params: { id }, query }) => {
      const counted = await database.run(async (db) => {
        const scheduleUids = await uidsOf(db, id);
        if (scheduleUids.length === 0) throw noSuchSchedule(id);
        return runStats(db, { ...query, scheduleUids });
      }, STATS_LIMIT_MS);
      return answerStats(counted);
    },
  );
}

function answerStats(counted: RunStats): z.output<typeof stats> {
  const { succeeded, failed, unknown, abandoned, recovered, lostAndFailed, lostAndAbandoned, lateness } =
    counted;
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
