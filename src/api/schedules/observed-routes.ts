import { z } from 'zod';
import { isHeartbeat } from '../../core/timing/timing.ts';
import { DAY_MS } from '../../core/instant.ts';
import { replacePingKey } from '../../operations/observed/keep-ping-keys.ts';
import { databaseNow } from '../../postgres/sql/rows.ts';
import { type ObservedStats, observedStats } from '../../store/reports/run-stats.ts';
import { findSchedule } from '../../store/schedules/search/find-schedules.ts';
import type { Api, ApiDeps } from '../deps.ts';
import { audited } from '../audit/audited.ts';
import { emptyPeriod, unexpectedBody } from '../http/also-checks.ts';
import { instant, scheduleIdParams } from '../http/common-schemas.ts';
import { noSuch } from '../http/problem.ts';
import { addRoute, json, TAGS } from '../http/routes.ts';

const tags = [TAGS.schedules];
const DEFAULT_DAYS = 30;
const LIMIT_MS = 60_000;

const count = (description: string) => z.int().meta({ description });
const ms = z.int().nullable();

export const comparison = z
  .object({
    expected: count('Observed occurrences; null of a heartbeat.').nullable(),
    reported: count('Those that the job reported anything about; of a heartbeat all reports.'),
    missed: count('Those that ended without any report.'),
    extra: count('Reports without an occurrence.'),
    failed: count(
      'Those that were reported as failed, or begun and not ended in time; each is `reported` too.',
    ),
    lateness: z.object({ p50Ms: ms, p95Ms: ms, maxMs: ms }).meta({
      description: 'Of the first start or end, below zero where it came early. Null: there is none.',
    }),
  })
  .meta({ id: 'ObservedComparison' });

export function addObservedRoutes(api: Api, { slowDatabase, ...deps }: ApiDeps): void {
  addKeyRoute(api, { ...deps, slowDatabase });
  addRoute(api, {
    ...{ route: 'GET /schedules/:id/observed', operationId: 'getObserved' },
    config: { role: 'viewer', scope: { name: 'schedule' }, pace: 'slow', alsoCheck: emptyPeriod },
    summary: 'What an observed job reported, compared with when it was expected',
    ...{ tags, params: scheduleIdParams },
    querystring: z.strictObject({
      from: instant.optional().meta({ description: 'Inclusive; 30 days ago if it is left out.' }),
      to: instant.optional().meta({
        description: 'Exclusive; if it is left out, what was reported ahead of its moment counts, too.',
      }),
    }),
    ...{ answers: { 200: json('The comparison', comparison) }, refusals: [404] },
    handler: ({ params: { id }, query }) =>
      slowDatabase.run(async (db) => {
        const schedule = await findSchedule(db, id);
        if (!schedule) throw noSuch(`schedule ${id}`);
        const now = await databaseNow(db);
        const { from = (query.to ?? now) - DEFAULT_DAYS * DAY_MS, to = Math.max(now + DAY_MS, from) } = query;
        const stats = await observedStats(db, { uid: schedule.uid, from, to });
        return answerStats(stats, schedule.definition.observe !== null && isHeartbeat(schedule.definition));
      }, LIMIT_MS),
  });
}

/** A heartbeat expects nothing, so nothing that it reports is extra. */
function answerStats(stats: ObservedStats, isBeat: boolean): z.output<typeof comparison> {
  const {
    expected,
    reported,
    missed,
    extra,
    failed,
    extraFailed,
    p50: p50Ms,
    p95: p95Ms,
    max: maxMs,
  } = stats;
  const lateness = { p50Ms, p95Ms, maxMs };
  if (!isBeat) return { expected, reported, missed, extra, failed, lateness };
  return {
    expected: null,
    reported: reported + extra,
    missed,
    extra: 0,
    failed: failed + extraFailed,
    lateness,
  };
}

function addKeyRoute(api: Api, deps: ApiDeps): void {
  addRoute(api, {
    ...{ route: 'POST /schedules/:id/ping-key', operationId: 'mintPingKey' },
    config: {
      ...{ role: 'operator', scope: { name: 'schedule' }, audits: ['schedule.pingKey'] },
      alsoCheck: unexpectedBody,
    },
    summary: 'Give an observed schedule another key to report by; the old one is unknown at once',
    ...{ tags, params: scheduleIdParams },
    ...{ answers: { 200: json('The new key', z.object({ pingKey: z.string() })) }, refusals: [404, 409] },
    handler: async ({ params: { id }, caller }) => {
      const pingKey = await replacePingKey(audited(deps, { caller }), id);
      if (pingKey === null) throw noSuch(`schedule ${id}`);
      return { pingKey };
    },
  });
}
