import { type SQL, sql } from 'drizzle-orm';
import type { Scope } from '../../../core/access/scope.ts';
import { lateParent, lateParentId, lateScheduleUid, type Parent } from '../../../core/runs/parent.ts';
import { queueOfLane } from '../../../core/runs/run-lane.ts';
import type { RunRecord } from '../../../core/runs/run-record.ts';
import type { ParentRun, Run } from '../../../core/runs/run.ts';
import { type HandoffTarget, priorityOfRank } from '../../../core/schedules/schedule.ts';
import type { Executor } from '../../../postgres/executor.ts';
import { uuids } from '../../../postgres/sql/arrays.ts';
import { type PageRoom, type Sized, readInRoom, rowBytes, withinRoom } from '../../../postgres/sql/lists.ts';
import { NO_SCHEDULE, recordsOf, rowsOf, scheduleIdOf } from '../../../postgres/sql/rows.ts';
import { loadHandoffs, versionKey } from '../../schedules/schedule-versions.ts';
import { RECORD_COLUMNS, type RecordRow, toRecord } from '../record-columns.ts';
import { pageOfLabelled } from './labelled-runs.ts';
import { relatedRuns, type Shown } from './related-runs.ts';
import { isImpossible, newestFirst, type RunFilter } from './run-pages.ts';
import { pageInScope } from './runs-in-scope.ts';

/**
 * A run, open or ended; null: there is none of that id, or history has dropped it. Of the runs that it names, those that a caller of
 * this scope may read.
 */
export async function findRun(db: Executor, id: string, scope: Scope): Promise<Run | null> {
  const named = sql`SELECT ${RECORD_COLUMNS.all_runs} FROM all_runs r WHERE r.id = ${id}::uuid`;
  return (await readRuns(db, named, { scope, limit: MAX_SHOWN }))[0] ?? null;
}

/** By id of a run: what its attempts go to, and the uid that it is stored under; without those whose definition is gone, or unreadable. */
export async function findTargets(
  db: Executor,
  ids: readonly string[],
): Promise<Map<string, { uid: string; target: HandoffTarget }>> {
  if (ids.length === 0) return new Map();
  const rows = await rowsOf<{ id: string; uid: string; version: number }>(db)(sql`-- findTargets
    SELECT id, schedule_uid AS uid, schedule_version AS version FROM all_runs WHERE id = ANY (${uuids(ids)})`);
  const keyOf = ({ uid, version }: (typeof rows)[number]) => ({ scheduleUid: uid, scheduleVersion: version });
  const handoffs = await loadHandoffs(db, rows.map(keyOf));
  return new Map(
    rows.flatMap((row) => {
      const handoff = handoffs.get(versionKey(keyOf(row)));
      return handoff ? [[row.id, { uid: row.uid, target: handoff.target }]] : [];
    }),
  );
}

/**
 * Newest first. Each run has up to `maxEdges` of its dependencies, and of its dependents. `scheduleUids` are ones that a caller of the
 * scope may read. `room`: how many bytes the list may take; it ends before it would take more.
 */
export async function listRuns(
  db: Executor,
  { scope, room, ...filter }: RunFilter & { scope: Scope; room?: PageRoom },
  maxEdges = MAX_SHOWN_IN_LIST,
): Promise<Run[]> {
  const { labels = [] } = filter;
  // Whole rows at once: to look for each id again would ask every day of history for it.
  const read = (page: SQL) => readRuns(db, page, { scope, limit: maxEdges }, room);
  if (labels.length > 0) return pageOfLabelled(db, filter, labels, { read, scope });
  if (isImpossible(filter)) return [];
  if (scope === null) return read(newestFirst(filter));
  if (filter.scheduleUids) return read(newestFirst(filter, { inScope: true }));
  return pageInScope(db, filter, { scope, use: 'read' }, { read });
}

/** Ids of those that each of these runs depends on, as listed. */
export async function findDependencyIds(
  db: Executor,
  runIds: readonly string[],
): Promise<ReadonlyMap<string, string[]>> {
  const asked = { waited: runIds, waitedFor: [], parents: [] };
  return (await relatedRuns(db, asked, { scope: null, limit: MAX_SHOWN })).dependsOn;
}

/**
 * How these runs stand, in the form that their dependents get; without runs that history has dropped. Of an `after` run that follows a
 * late schedule the id is that of its row: it finds the schedule, unless that was deleted.
 */
export async function findOutcomes(db: Executor, ids: readonly string[]): Promise<Map<string, Parent>> {
  const late = ids.filter((id) => lateScheduleUid(id) !== null);
  const runs = late.length === 0 ? ids : ids.filter((id) => lateScheduleUid(id) === null);
  return new Map([...(await outcomesOfRuns(db, runs)), ...(await lateParents(db, late))]);
}

async function outcomesOfRuns(db: Executor, ids: readonly string[]): Promise<[string, ParentRun][]> {
  if (ids.length === 0) return [];
  type Row = Omit<ParentRun, 'result'> & Answered;
  const rows = await recordsOf<Row>(db)(sql`-- outcomesOfRuns
    SELECT r.id AS run_id, nullif(r.schedule_id, ${NO_SCHEDULE}) AS schedule_id, r.status, r.reason, r.error, r.result_status_code, r.result_body
    FROM all_runs r WHERE r.id = ANY (${uuids(ids)})`);
  return rows.map(({ resultStatusCode, resultBody, ...run }) => [
    run.runId,
    { ...run, result: resultOf({ resultStatusCode, resultBody }) },
  ]);
}

async function lateParents(db: Executor, parentIds: readonly string[]): Promise<[string, Parent][]> {
  if (parentIds.length === 0) return [];
  const uids = parentIds.flatMap((id) => lateScheduleUid(id) ?? []);
  const rows = await rowsOf<{ uid: string; id: string }>(db)(sql`-- lateParents
    SELECT uid, id FROM schedules WHERE uid = ANY (${uuids(uids)})`);
  return rows.map(({ uid, id }) => [lateParentId(uid), lateParent(id)]);
}

/** What `source` answers, a SELECT of RECORD_COLUMNS; newest first. */
async function readRuns(db: Executor, source: SQL, shown: Shown, room?: PageRoom): Promise<Run[]> {
  const bytes = rowBytes({
    texts: [sql`coalesce(r.own_payload, v.payload)`, sql`r.result_body`],
    documents: [sql`r.error`, sql`r.attempt_log`, LABELS],
  });
  const page = sql`SELECT r.*, v.payload AS version_payload, t.batch_id, t.ref, ${LABELS} AS labels, ${bytes} AS row_bytes
    FROM (${source}) AS r
    LEFT JOIN schedule_versions v ON v.schedule_uid = r.schedule_uid AND v.version = r.schedule_version
    LEFT JOIN run_tags t ON r.trigger = 'api' AND t.run_id = r.id
    LEFT JOIN schedules s ON r.schedule_id <> ${NO_SCHEDULE} AND s.uid = r.schedule_uid
    LEFT JOIN schedule_versions l ON l.schedule_uid = s.uid AND l.version = s.version
    ORDER BY r.id DESC`;
  type Row = RecordRow & Sized & RunContext;
  const read = () =>
    rowsOf<Row>(db)(sql`-- readRuns
    ${withinRoom(page, sql`p.id DESC`, room)}`);
  const rows = await readInRoom(room, read, ({ row_bytes }) => row_bytes);
  const found = rows.map((row) => ({ record: toRecord(row), row }));
  const records = found.map(({ record }) => record);
  const waited = records.filter(({ openDependencies }) => openDependencies !== null);
  // With a scope all are asked about: a query that is made only sometimes would tell, by its time, that hidden runs depend on one.
  const waitedFor = records.filter(({ hasDependents }) => hasDependents || shown.scope !== null);
  const parents = records.flatMap(({ parentId }) => parentId ?? []);
  const related = await relatedRuns(db, { waited: waited.map(idOf), waitedFor: waitedFor.map(idOf), parents }, shown);
  return found.map(({ record, row }) =>
    toRun(
      { ...record, parentId: related.isSeen(record.parentId) ? record.parentId : null },
      row,
      related.dependsOn.get(record.id) ?? [],
      related.dependents.get(record.id) ?? [],
    ),
  );
}

/** For a single run: as many dependencies as a run can have. */
const MAX_SHOWN = 1000;
/** For each run in a list of hundreds. */
const MAX_SHOWN_IN_LIST = 100;

function idOf({ id }: { id: string }): string {
  return id;
}

/** What other tables say of a run. */
interface RunContext {
  version_payload: string | null;
  batch_id: string | null;
  ref: string | null;
  labels: Run['labels'] | null;
}

/** Its own, or those of its schedule as it is now. */
const LABELS = sql`coalesce(t.labels, l.definition->'labels')`;

function toRun(
  record: RunRecord,
  { version_payload: versionPayload, batch_id: batchId, ref, labels }: RunContext,
  dependsOn: readonly string[],
  dependents: readonly string[],
): Run {
  const { priority, dueAt, ownPayload, attemptLog, unmet, parentId } = record;
  const scheduleId = scheduleIdOf(record.scheduleId);
  return {
    ...record,
    parentRunId: parentId !== null && lateScheduleUid(parentId) === null ? parentId : null,
    scheduleId,
    scheduleVersion: scheduleId === null ? null : record.scheduleVersion,
    priority: priorityOfRank(priority),
    nextAttemptAt: record.status === 'pending' && !record.observed ? dueAt : null,
    result: resultOf(record),
    payload: ownPayload ?? versionPayload,
    payloadFrom: scheduleId === null || ownPayload !== null ? 'request' : 'schedule',
    dependsOn,
    dependents,
    queue: queueOfLane(record.lane),
    attemptLog: attemptLog ?? [],
    unmet: unmet ?? [],
    batchId,
    ref,
    labels: labels ?? {},
  };
}

type Answered = Pick<RunRecord, 'resultStatusCode' | 'resultBody'>;

function resultOf({ resultStatusCode, resultBody }: Answered): Run['result'] {
  if (resultStatusCode === null && resultBody === null) return null;
  return { statusCode: resultStatusCode, body: resultBody ?? '' };
}
