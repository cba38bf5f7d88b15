import { z } from 'zod';
import { fileRules } from '../targets/secret-files.ts';
import { type Schedule, SCHEDULE_STATUSES } from '../../core/schedules/schedule.ts';
import { deleteSchedule } from '../../operations/schedules/delete-schedule.ts';
import { pageRoom } from '../../postgres/sql/lists.ts';
import { findSchedule } from '../../store/schedules/search/find-schedules.ts';
import { lookThrough } from '../../store/schedules/search/matching-schedules.ts';
import { type RecentRun, recentRuns } from '../../store/runs/search/runs-of-schedule.ts';
import type { Api, ApiDeps } from '../deps.ts';
import { audited } from '../audit/entries.ts';
import { calendarsNamedIn } from './day-schemas.ts';
import { lookAhead } from './fire-faults.ts';
import {
  checkPreconditions,
  etagOf,
  idOfAnother,
  ifMatchHeader,
  preconditionHeaders,
  unexpectedBody,
} from '../http/request-checks.ts';
import { encodeCursor, limitQuery, pageOf, pageSchema, scheduleCursor } from '../http/pages.ts';
import { noSuch } from '../http/problem.ts';
import { answerSchedule, answerRecentRun } from './answers.ts';
import { answerTo, shownKeys, withNextFires } from './shown-schedules.ts';
import { addObservedRoutes } from './history-routes.ts';
import { accepted, resolveInput, resolvePatch } from './inputs.ts';
import { changeOne } from './writes.ts';
import { addRoute, json, nothing, TAGS } from '../http/routes.ts';
import { scheduleIdParams, text } from '../http/common-schemas.ts';
import { labelQuery, wordList, queryBoolean, queryInteger } from '../http/filter-schemas.ts';
import { run } from '../runs/answers.ts';
import { schedule, scheduleInput, schedulePatch } from './schemas.ts';

const tags = [TAGS.schedules];
const ofSchedule = { name: 'schedule' } as const;

export function addScheduleRoutes(api: Api, deps: ApiDeps): void {
  addListRoute(api, deps);
  addGetRoute(api, deps);
  addPutRoute(api, deps);
  addPatchRoute(api, deps);
  addDeleteRoute(api, deps);
  addObservedRoutes(api, deps);
}

const listQuery = z.strictObject({
  enabled: queryBoolean.optional(),
  status: wordList(SCHEDULE_STATUSES).optional(),
  late: queryBoolean.optional(),
  label: labelQuery.optional(),
  q: text(1000).optional().describe('Part of the id or the description, in any letter case.'),
  recent: queryInteger(0, 50, undefined).describe('Adds `recentRuns`: so many of its newest runs.'),
  maxSchedules: queryInteger(1, 100_000, undefined).describe(
    'Looks at only so many schedules. The page may then hold fewer than `limit`, even none, and have a `nextCursor`. ' +
      'Use it for a quick answer where few of very many schedules match.',
  ),
  limit: limitQuery,
  cursor: scheduleCursor.optional(),
});

/** A schedule in a list. */
const listedSchedule = schedule
  .extend({
    recentRuns: z
      .array(
        run.pick({
          id: true,
          scheduledFor: true,
          trigger: true,
          status: true,
          claimedAt: true,
          latenessMs: true,
        }),
      )
      .optional()
      .describe('Its newest runs, newest first; only where `recent` is given.'),
  })
  .meta({ id: 'ListedSchedule' });

function addListRoute(api: Api, { database, secrets }: ApiDeps): void {
  addRoute(api, {
    route: 'GET /schedules',
    operationId: 'listSchedules',
    config: { role: 'viewer', scope: 'itself' },
    summary: 'List schedules, by id',
    tags,
    querystring: listQuery,
    answers: { 200: json('A page of schedules', pageSchema(listedSchedule)) },
    handler: async ({ query: { enabled, status, late, label, q, recent, maxSchedules, limit, cursor }, caller }) => {
      const after = cursor?.after;
      const { scope } = caller;
      const room = pageRoom();
      const filter = { scope, enabled, late, statuses: status, labels: label, text: q, after, room };
      const { rows, runs, end } = await database.run(async (db) => {
        const wanted = { ...filter, limit: limit + 1 };
        const { schedules: listed, end: last } = await lookThrough(db, wanted, maxSchedules);
        const shown = listed.slice(0, limit).map(({ uid }) => uid);
        const recents = recent === undefined ? null : await recentRuns(db, shown, recent, scope);
        return { rows: listed, runs: recents, end: last };
      });
      const keys = await shownKeys({ database, secrets }, caller, rows);
      const keyOf = ({ uid }: Schedule) => keys.get(uid) ?? null;
      const answer = (one: Schedule) => ({ ...answerSchedule(one, keyOf(one)), ...recentRunsOf(one, runs) });
      const cursorOf = ({ id }: { id: string }) => ({ after: id });
      const page = pageOf({ rows: await withNextFires(database, rows), limit, room }, answer, cursorOf);
      return {
        ...page,
        nextCursor: page.nextCursor ?? (end === null ? null : encodeCursor(cursorOf({ id: end }))),
      };
    },
  });
}

/** Null: the caller did not ask for them. */
function recentRunsOf({ uid }: Schedule, runs: ReadonlyMap<string, readonly RecentRun[]> | null) {
  if (runs === null) return {};
  return { recentRuns: (runs.get(uid) ?? []).map(answerRecentRun) };
}

function addGetRoute(api: Api, deps: ApiDeps): void {
  addRoute(api, {
    route: 'GET /schedules/:id',
    operationId: 'getSchedule',
    config: { role: 'viewer', scope: ofSchedule },
    summary: 'One schedule; its ETag is its version',
    tags,
    params: scheduleIdParams,
    answers: { 200: json('The schedule', schedule) },
    refusals: [404],
    handler: async ({ params: { id }, caller }, reply) => {
      const found = await deps.database.run((db) => findSchedule(db, id));
      if (!found) throw noSuch(`schedule ${id}`);
      const [shown = found] = await withNextFires(deps.database, [found]);
      return reply.header('ETag', etagOf(found)).send(await answerTo(deps, caller, shown));
    },
  });
}

function addPutRoute(api: Api, deps: ApiDeps): void {
  addRoute(api, {
    route: 'PUT /schedules/:id',
    operationId: 'putSchedule',
    config: {
      role: 'admin',
      scope: ofSchedule,
      audits: ['schedule.update', 'schedule.create'],
      alsoCheck: idOfAnother,
    },
    summary: 'Create a schedule, or replace it whole',
    tags,
    params: scheduleIdParams,
    headers: preconditionHeaders,
    body: scheduleInput,
    answers: {
      200: json('Replaced, or as it was: then its version stays', schedule),
      201: json('Created', schedule),
    },
    refusals: [404, 412, 422],
    handler: async ({ params: { id }, headers, body, json: sent, caller }, reply) => {
      await lookAhead(body, id);
      const named = { id, caller, calendars: calendarsNamedIn(body) };
      const rules = fileRules(deps, caller.scope);
      const { schedule: written, change } = await changeOne(deps, named, (current, now, calendars, uid) => {
        checkPreconditions(`schedule ${id}`, headers, current);
        const resolved = resolveInput(body, sent?.payloads.get('/payload'), current, { ...rules, uid });
        return accepted(resolved, { id, current, now, calendars }, deps.secrets);
      });
      if (change === 'created') void reply.code(201).header('Location', `/api/v1/schedules/${id}`);
      return reply.header('ETag', etagOf(written)).send(await answerTo(deps, caller, written));
    },
  });
}

function addPatchRoute(api: Api, deps: ApiDeps): void {
  addRoute(api, {
    route: 'PATCH /schedules/:id',
    operationId: 'patchSchedule',
    config: { role: 'admin', scope: ofSchedule, audits: ['schedule.update'], alsoCheck: idOfAnother },
    summary: 'Change a schedule by JSON Merge Patch',
    tags,
    consumes: ['application/merge-patch+json', 'application/json'],
    params: scheduleIdParams,
    headers: ifMatchHeader,
    body: schedulePatch,
    answers: { 200: json('Changed, or as it was: then its version stays', schedule) },
    refusals: [404, 412, 422],
    handler: async ({ params: { id }, headers: { 'if-match': match }, body, json: sent, caller }, reply) => {
      await lookAhead(body, id);
      const named = { id, caller, calendars: calendarsNamedIn(sent?.value) };
      const rules = fileRules(deps, caller.scope);
      const { schedule: written } = await changeOne(deps, named, (current, now, calendars) => {
        checkPreconditions(`schedule ${id}`, { 'if-match': match }, current);
        if (!current) throw noSuch(`schedule ${id}`);
        const resolved = resolvePatch(sent?.value, sent?.payloads.get('/payload'), current, rules);
        return accepted(resolved, { id, current, now, calendars }, deps.secrets);
      });
      return reply.header('ETag', etagOf(written)).send(await answerTo(deps, caller, written));
    },
  });
}

function addDeleteRoute(api: Api, deps: ApiDeps): void {
  addRoute(api, {
    route: 'DELETE /schedules/:id',
    operationId: 'deleteSchedule',
    config: { role: 'admin', scope: ofSchedule, audits: ['schedule.delete'], alsoCheck: unexpectedBody },
    summary: 'Delete a schedule that no other follows; its runs stay readable, and open ones are abandoned',
    tags,
    params: scheduleIdParams,
    headers: ifMatchHeader,
    answers: { 204: nothing('Deleted') },
    refusals: [404, 409, 412],
    handler: async ({ params: { id }, headers: { 'if-match': match }, caller }, reply) => {
      const deleted = await deleteSchedule(
        audited(deps, { caller }),
        { id, by: caller.name, scope: caller.scope },
        (current) => checkPreconditions(`schedule ${id}`, { 'if-match': match }, current),
      );
      if (!deleted) throw noSuch(`schedule ${id}`);
      return reply.code(204).send(null);
    },
  });
}
