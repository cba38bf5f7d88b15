import { setImmediate } from 'node:timers/promises';
import { z } from 'zod';
import { type Instant, LATEST, isoInstant } from '../../core/instant.ts';
import { CronError, cronTimes } from '../../core/time/cron.ts';
import { localTime } from '../../core/time/zone.ts';
import { databaseNow } from '../../store/database-now.ts';
import { findSchedule } from '../../store/schedules.ts';
import type { Api, ApiDeps } from '../deps.ts';
import { TAGS } from '../plugins/openapi.ts';
import { Problem, invalid, noSuchSchedule } from '../problem.ts';
import { NEVER_FIRES, neverFires } from '../schedule-input.ts';
import { BODY_PROBLEMS, json, problems } from '../schemas/answers.ts';
import {
  answeredInstant,
  instant,
  queryInstant,
  queryInteger,
  scheduleIdParams,
  scheduleIdText,
} from '../schemas/common.ts';
import { cronText, zoneText } from '../schemas/timing.ts';
import { unsupported } from '../schemas/unsupported.ts';

const MOST = 1000;

const upcomingQuery = z.strictObject({
  count: queryInteger(1, MOST, 10),
  from: queryInstant.optional(),
});

const previewInput = z.strictObject({
  cron: cronText,
  everySeconds: unsupported(null),
  timezone: zoneText.nullable().default(null),
  from: instant.nullish(),
  count: z.int().min(1).max(MOST).default(10),
  id: scheduleIdText.nullish().meta({ description: 'The schedule that the expression is meant for.' }),
});

const fireTimes = z.object({
  items: z.array(
    z.object({
      fireAt: answeredInstant,
      local: z.string().meta({ format: 'date-time', example: '2026-11-20T10:00:00.000+01:00' }),
    }),
  ),
});

const tags = [TAGS.times];

export function addPreviewRoutes(api: Api, deps: ApiDeps): void {
  addUpcomingRoute(api, deps);
  addPreviewRoute(api, deps);
}

function addUpcomingRoute(api: Api, { database }: ApiDeps): void {
  api.get(
    '/schedules/:id/upcoming',
    {
      schema: {
        operationId: 'listUpcomingFires',
        summary: 'When a schedule fires next, paused or not, strictly after `from`',
        tags,
        params: scheduleIdParams,
        querystring: upcomingQuery,
        response: { 200: json('Fire times', fireTimes), ...problems(400, 404, 409) },
      },
    },
    async ({ params: { id }, query: { count, from } }) => {
      const { found, now } = await database.run(async (db) => ({
        found: await findSchedule(db, id),
        now: from ?? (await databaseNow(db)),
      }));
      if (!found) throw noSuchSchedule(id);
      const { cron, timezone } = found.definition;
      try {
        return { items: await firesAfter(cron, timezone, now, count) };
      } catch (error) {
        if (!(error instanceof CronError)) throw error;
        throw new Problem(409, `schedule ${id} cannot be planned: ${error.message}`, { cause: error });
      }
    },
  );
}

function addPreviewRoute(api: Api, { database }: ApiDeps): void {
  api.post(
    '/preview',
    {
      schema: {
        operationId: 'previewFires',
        summary: 'When an expression would fire, strictly after `from`',
        tags,
        body: previewInput,
        response: { 200: json('Fire times', fireTimes), ...problems(...BODY_PROBLEMS, 422) },
      },
    },
    async ({ body: { cron, timezone, from, count } }) => {
      const after = from ?? (await database.run(databaseNow));
      const items = await firesAfter(cron, timezone, after, count);
      if (items.length === 0 && neverFires({ cron, timezone }, null))
        throw invalid([{ path: '/cron', message: NEVER_FIRES }], 422);
      return { items };
    },
  );
}

const SLICE = 10;

/** In slices, so that a thousand fire times keep nobody waiting. */
async function firesAfter(cron: string, timezone: string | null, from: Instant, count: number) {
  const times = cronTimes(cron, timezone);
  const items: { fireAt: string; local: string }[] = [];
  let at = times.next(from);
  while (at !== null && at <= LATEST && items.length < count) {
    items.push({ fireAt: isoInstant(at), local: localTime(at, timezone) });
    if (items.length % SLICE === 0) await setImmediate();
    at = times.next(at);
  }
  return items;
}
