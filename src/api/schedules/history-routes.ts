import { z } from 'zod';
import { isHeartbeat } from '../../core/timing/timing.ts';
import { DAY_MS } from '../../core/instant.ts';
import { replacePingKey } from '../../operations/observed/keep-ping-keys.ts';
import { databaseNow } from '../../postgres/sql/rows.ts';
import { type ObservedStats, observedStats } from '../../store/reports/run-stats.ts';
import { findSchedule, uidsOf } from '../../store/schedules/search/find-schedules.ts';
import type { Api, ApiDeps } from '../deps.ts';
import { audited } from '../audit/entries.ts';
import { emptyPeriod, unexpectedBody } from '../http/request-checks.ts';
import { answeredInstant, instant, scheduleIdParams, scheduleIdText } from '../http/common-schemas.ts';
import { noSuch } from '../http/problem.ts';
import { addRoute, answersOf, json, TAGS } from '../http/routes.ts';
import { pageRoom } from '../../postgres/sql/lists.ts';
import { type ScheduleVersion, listVersions } from '../../store/schedules/schedule-versions.ts';
import { cursorIn, limitQuery, pageOf, pageSchema, versionCursor } from '../http/pages.ts';
import { rawJsonOrNull } from '../http/json/raw-json.ts';
import { answerDefinition } from './answers.ts';
import { definitionAnswer } from './schemas.ts';

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
    failed: count('Those that were reported as failed, or begun and not ended in time; each is `reported` too.'),
    lateness: z
      .object({ p50Ms: ms, p95Ms: ms, maxMs: ms })
      .describe('Of the first start or end, below zero where it came early. Null: there is none.'),
  })
  .meta({ id: 'ObservedComparison' });

export function addObservedRoutes(api: Api, { slowDatabase, ...deps }: ApiDeps): void {
  addKeyRoute(api, { ...deps, slowDatabase });
  addRoute(api, {
    route: 'GET /schedules/:id/observed',
    operationId: 'getObserved',
    config: { role: 'viewer', scope: { name: 'schedule' }, pace: 'slow', alsoCheck: emptyPeriod },
    summary: 'What an observed job reported, compared with when it was expected',
    tags: [TAGS.schedules],
    params: scheduleIdParams,
    querystring: z.strictObject({
      from: instant.optional().describe('Inclusive; 30 days ago if it is left out.'),
      to: instant
        .optional()
        .describe('Exclusive; if it is left out, what was reported ahead of its moment counts, too.'),
    }),
    answers: { 200: json('The comparison', comparison) },
    refusals: [404],
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
  const { expected, reported, missed, extra, failed, extraFailed } = stats;
  const lateness = { p50Ms: stats.p50, p95Ms: stats.p95, maxMs: stats.max };
  if (!isBeat) return { expected, reported, missed, extra, failed, lateness };
  const all = { reported: reported + extra, failed: failed + extraFailed };
  return { expected: null, ...all, missed, extra: 0, lateness };
}

function addKeyRoute(api: Api, deps: ApiDeps): void {
  addRoute(api, {
    route: 'POST /schedules/:id/ping-key',
    operationId: 'mintPingKey',
    config: {
      role: 'operator',
      scope: { name: 'schedule' },
      audits: ['schedule.pingKey'],
      alsoCheck: unexpectedBody,
    },
    summary: 'Give an observed schedule another key to report by; the old one is unknown at once',
    tags: [TAGS.schedules],
    params: scheduleIdParams,
    answers: { 200: json('The new key', z.object({ pingKey: z.string() })) },
    refusals: [404, 409],
    handler: async ({ params: { id }, caller }) => {
      const pingKey = await replacePingKey(audited(deps, { caller }), id);
      if (pingKey === null) throw noSuch(`schedule ${id}`);
      return { pingKey };
    },
  });
}

export const scheduleVersion = z
  .object({
    version: z.int(),
    at: answeredInstant,
    by: z.string().nullable().describe('Who wrote it; null: a caller without a token.'),
    change: z.enum(['created', 'updated', 'deleted']),
    schedule: z
      .object({ id: scheduleIdText, ...definitionAnswer })
      .meta({ id: 'VersionedSchedule', description: 'As it was from then on; of `deleted`: until then.' }),
  })
  .meta({ id: 'ScheduleVersion' });

const versionsQuery = z.strictObject({ limit: limitQuery, cursor: versionCursor.optional() });

export function addVersionsRoute(api: Api, { database }: ApiDeps): void {
  addRoute(api, {
    route: 'GET /schedules/:id/versions',
    operationId: 'listVersions',
    config: { role: 'viewer', scope: { name: 'schedule' } },
    summary: 'Every write of a schedule, newest first; also of a deleted one',
    tags: [TAGS.schedules],
    params: scheduleIdParams,
    querystring: versionsQuery,
    answers: { 200: json('A page of versions', pageSchema(scheduleVersion)) },
    refusals: [404],
    handler: async ({ params: { id }, query: { limit, cursor }, caller: { scope } }) => {
      const before = cursorIn(cursor, id);
      const room = pageRoom();
      const rows = await database.run(async (db) => {
        const found = await listVersions(db, id, { before, limit: limit + 1, room });
        if (found.length === 0 && (await uidsOf(db, id, scope)).length === 0) throw noSuch(`schedule ${id}`);
        return found;
      });
      return pageOf(
        { rows, limit, room },
        (row) => answerVersion(id, row),
        ({ at, uid, version }) => ({ of: id, at, uid, version }),
      );
    },
  });
}

const answered = answersOf(scheduleVersion);

function answerVersion(id: string, { definition, ...version }: ScheduleVersion) {
  const payload = rawJsonOrNull(definition.payload);
  return answered({ ...version, schedule: { id, ...answerDefinition(definition), payload } });
}
