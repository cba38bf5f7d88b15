import { z } from 'zod';
import type { Scope } from '../../core/access/scope.ts';
import type { Executor } from '../../postgres/executor.ts';
import { type Run, mayBeRunId, RUN_STATUSES, RUN_TRIGGERS } from '../../core/runs/run.ts';
import { BOUNDS } from '../../core/schedules/expect.ts';
import { findRun, findTargets, listRuns } from '../../store/runs/search/find-runs.ts';
import { type PageRoom, pageRoom } from '../../postgres/sql/lists.ts';
import { runIdsOfKey } from '../../store/runs/idempotency-keys.ts';
import { runIdsOfBatch } from '../../store/runs/run-tags.ts';
import { uidsOf } from '../../store/schedules/search/find-schedules.ts';
import type { Api, ApiDeps } from '../deps.ts';
import { cursorIn, limitQuery, pageOf, pageSchema, runCursor } from '../http/pages.ts';
import { emptyPeriod, LATER_THAN_FROM } from '../http/request-checks.ts';
import { noSuch } from '../http/problem.ts';
import { answerRun, answerWholeRun, run, wholeRun } from './answers.ts';
import { addRunLogRoutes } from './log-routes.ts';
import { addRoute, json, TAGS } from '../http/routes.ts';
import {
  ALWAYS,
  expectBound,
  instant,
  runIdParams,
  runIdText,
  runStatus,
  runTrigger,
  scheduleIdParams,
  scheduleIdText,
  text,
  whole,
} from '../http/common-schemas.ts';
import {
  bulkAnswer,
  dryRunInput,
  filterLabels,
  filterWords,
  labelQuery,
  namesSomething,
  periodQuery,
  wordList,
} from '../http/filter-schemas.ts';
import { actOnMatchingRuns } from '../../operations/runs/bulk-runs.ts';
import { audited } from '../audit/entries.ts';

const filterQuery = {
  status: wordList(RUN_STATUSES).optional(),
  trigger: wordList(RUN_TRIGGERS).optional(),
  unmet: wordList(BOUNDS).optional(),
  ...periodQuery,
  limit: limitQuery,
  cursor: runCursor.optional(),
};
const ofScheduleQuery = z.strictObject(filterQuery);
const runsQuery = z.strictObject({
  scheduleId: scheduleIdText.optional(),
  label: labelQuery.optional(),
  key: text(256).optional(),
  batchId: runIdText.optional().describe('Of the batch that they were asked for in.'),
  ...filterQuery,
});

const tags = [TAGS.runs];

export function addRunRoutes(api: Api, deps: ApiDeps): void {
  addListRoute(api, deps);
  addListOfScheduleRoute(api, deps);
  addGetRoute(api, deps);
  addRunLogRoutes(api, deps);
}

function addListRoute(api: Api, { database }: ApiDeps): void {
  addRoute(api, {
    route: 'GET /runs',
    operationId: 'listRuns',
    config: { role: 'viewer', scope: 'itself', alsoCheck: emptyPeriod },
    summary: 'List runs, newest first; `from` and `to` mean `scheduledFor`',
    description:
      '`label` is that of the schedule of a run, as it is now, or of a one-off run itself. Runs of deleted schedules have none.',
    tags,
    querystring: runsQuery,
    answers: { 200: json('A page of runs', pageSchema(run)) },
    handler: async ({ query: { scheduleId, label: labels, key, batchId, ...query }, caller: { scope } }) => {
      const filter = filterOf(query, null);
      const room = pageRoom();
      const rows = await database.run(async (db) => {
        const scheduleUids = scheduleId === undefined ? undefined : await uidsOf(db, scheduleId, scope);
        const ids = await idsNamed(db, { key, batchId }, scope);
        if (scheduleUids?.length === 0 || ids?.length === 0) return [];
        return listRuns(db, { ...filter, scheduleUids, labels, ids, scope, room });
      });
      return pageOfRuns({ rows, limit: query.limit, room }, null);
    },
  });
}

function addListOfScheduleRoute(api: Api, { database }: ApiDeps): void {
  addRoute(api, {
    route: 'GET /schedules/:id/runs',
    operationId: 'listRunsOfSchedule',
    config: { role: 'viewer', scope: { name: 'schedule' }, alsoCheck: emptyPeriod },
    summary: 'List the runs of a schedule, newest first; also of a deleted one',
    tags,
    params: scheduleIdParams,
    querystring: ofScheduleQuery,
    answers: { 200: json('A page of runs', pageSchema(run)) },
    refusals: [404],
    handler: async ({ params: { id }, query, caller: { scope } }) => {
      const filter = filterOf(query, id);
      const room = pageRoom();
      const rows = await database.run(async (db) => {
        const scheduleUids = await uidsOf(db, id, scope);
        if (scheduleUids.length === 0) throw noSuch(`schedule ${id}`);
        return listRuns(db, { ...filter, scheduleUids, scope, room });
      });
      return pageOfRuns({ rows, limit: query.limit, room }, id);
    },
  });
}

function addGetRoute(api: Api, { database }: ApiDeps): void {
  addRoute(api, {
    route: 'GET /runs/:id',
    operationId: 'getRun',
    config: { role: 'viewer', scope: 'run' },
    summary: 'One run, with its target and its attempt log',
    tags,
    params: runIdParams,
    answers: { 200: json('The run', wholeRun) },
    refusals: [404],
    handler: async ({ params: { id }, caller: { scope } }) => {
      const found = await database.run(async (db) => {
        const stored = mayBeRunId(id) ? await findRun(db, id, scope) : null;
        if (!stored) return null;
        return { stored, target: (await findTargets(db, [stored.id])).get(stored.id)?.target ?? null };
      });
      if (!found) throw noSuch(`run ${id}`);
      return answerWholeRun(found.stored, found);
    },
  });
}

/** Of the key and of the batch; undefined: none is named. */
async function idsNamed(
  db: Executor,
  { key, batchId }: { key: string | undefined; batchId: string | undefined },
  scope: Scope,
): Promise<string[] | undefined> {
  const ofKey = key === undefined ? undefined : await runIdsOfKey(db, key, scope);
  if (batchId === undefined) return ofKey;
  const ofBatch = await runIdsOfBatch(db, batchId, scope, 'read');
  return ofKey ? ofKey.filter((id) => ofBatch.includes(id)) : ofBatch;
}

function filterOf(
  { status, trigger, unmet, from, to, limit, cursor }: z.output<typeof ofScheduleQuery>,
  listOf: string | null,
) {
  const before = cursorIn(cursor, listOf);
  return { statuses: status, triggers: trigger, unmet, from, to, before, limit: limit + 1 };
}

function pageOfRuns(read: { rows: readonly Run[]; limit: number; room: PageRoom }, listOf: string | null) {
  return pageOf(read, answerRun, ({ scheduledFor, id }) => ({ of: listOf, scheduledFor, id }));
}

const runFilter = z
  .strictObject({
    scheduleId: scheduleIdText.optional(),
    label: filterLabels,
    batchId: runIdText.optional(),
    status: filterWords(runStatus),
    trigger: filterWords(runTrigger),
    unmet: filterWords(expectBound),
    from: instant.optional(),
    to: instant.optional(),
  })
  .superRefine(namesSomething, ALWAYS)
  .superRefine(({ from, to }, context) => {
    if (typeof from !== 'number' || typeof to !== 'number' || from < to) return;
    context.addIssue({ code: 'custom', path: ['to'], message: LATER_THAN_FROM });
  }, ALWAYS)
  .meta({
    id: 'RunFilter',
    description: 'As in `GET /runs`: all that is named must hold. `from` and `to` mean `scheduledFor`.',
    minProperties: 1,
  });

const MOST = 10_000;

const bulkInput = z.strictObject({
  action: z.enum(['retry', 'cancel']),
  filter: runFilter,
  limit: whole(1, MOST).default(1000).describe('How many runs the call acts on at most, the newest first.'),
  dryRun: dryRunInput,
});

export function addRunBulkRoute(api: Api, deps: ApiDeps): void {
  addRoute(api, {
    route: 'POST /runs/bulk',
    operationId: 'actOnRuns',
    config: { role: 'operator', scope: 'itself', pace: 'slow', audits: ['runs.bulk'] },
    summary: 'Retry or cancel the runs that match a filter',
    description:
      'Each run as `/retry` or `/cancel` would. What cannot be retried (open or succeeded runs, runs of deleted schedules) ' +
      'or cancelled (ended runs) does not match.',
    tags: [TAGS.runs],
    body: bulkInput,
    answers: { 200: json('What became of them', bulkAnswer('runs', ', counted up to 100,000')) },
    handler: ({ body: { filter, ...request }, caller }) => {
      const { label: labels, status: statuses, trigger: triggers, ...rest } = filter;
      return actOnMatchingRuns(audited(deps, { caller }), {
        ...request,
        filter: { ...rest, labels, statuses, triggers },
      });
    },
  });
}
