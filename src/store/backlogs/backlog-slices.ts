import { type SQL, sql } from 'drizzle-orm';
import type { Transaction } from '../../postgres/executor.ts';
import { FIRST_UUID, instants, uuids } from '../../postgres/sql/arrays.ts';
import { databaseNow, onlyColumnOf, rowsOf } from '../../postgres/sql/rows.ts';
import { writeOverlapEffects } from '../effects/insert-effects.ts';
import { abandonedAsDeleted, openRunsOf } from '../runs/ends/abandon-runs.ts';
import { IS_REPLACEABLE, isReplaceable } from '../runs/guarded-runs.ts';
import { lockOpenRuns, saveLockedRuns } from '../runs/lock-and-save.ts';
import { markLocked } from '../runs/runs-of-edits.ts';
import { replacedBy } from '../runs/overlaps.ts';
import type { Backlog } from './backlog-rows.ts';

/** What one transaction may do of a backlog. */
export interface SliceSize {
  /** Runs at most. */
  limit: number;
  /** Ids of runs that the database has refused to change: they are left out for now. */
  besides: readonly string[];
  /** Called with the ids of the runs that it is about to change. */
  noteRuns: (ids: readonly string[]) => void;
}

export interface Slice {
  /** How many runs were ended or marked. */
  changed: number;
  effects: number;
  /** Some of them may have given up the place of a limit. */
  toAdmit: boolean;
  position: string | null;
  isDone: boolean;
  /** Other transactions have the rows locked that are next, or another backlog comes first. */
  isBlocked: boolean;
}

/**
 * Ends the next open runs of a backlog: abandons those of a deleted schedule, cancels those that a newer run has replaced. Rows that other
 * transactions have locked are left for another slice.
 */
export async function endSlice(
  tx: Transaction,
  backlog: Backlog,
  { limit, besides, noteRuns }: SliceSize,
): Promise<Slice> {
  const { kind, scheduleUid, position } = backlog;
  const found = await onlyColumnOf<string>(tx)(sql`-- endSlice
    ${kind === 'deleted' ? openRunsOf(scheduleUid, limit + besides.length) : replaceableOf(backlog, limit + besides.length)}`);
  const ids = found.filter((id) => !besides.includes(id)).slice(0, limit);
  noteRuns(ids);
  const locked = await lockOpenRuns(tx, ids, 'skipLocked');
  const now = await databaseNow(tx);
  const changes =
    kind === 'deleted'
      ? locked.map((run) => abandonedAsDeleted(run, now))
      : locked.filter(isReplaceable).map((run) => replacedBy(run, now));
  const saved = await saveLockedRuns(tx, changes);
  const stays = found.length > ids.length || locked.length < ids.length || besides.length > 0;
  const isDone = !stays && ids.length < limit && !(kind === 'replaced' && (await isBeingMarked(tx, scheduleUid)));
  // What is waiting may start once nothing is active: these ends cause no judgement of their own.
  const judged = isDone && kind === 'replaced' ? await writeOverlapEffects(tx, [scheduleUid]) : 0;
  return {
    changed: changes.length,
    effects: saved + judged,
    toAdmit: locked.some(({ limitId }) => limitId !== null),
    position,
    isDone,
    isBlocked: changes.length === 0,
  };
}

/** The oldest first. */
function replaceableOf({ scheduleUid, askedAt, keptRun }: Backlog, limit: number): SQL {
  return sql`SELECT id FROM runs WHERE schedule_uid = ${scheduleUid} AND ${IS_REPLACEABLE}
    AND created_at <= (${instants([askedAt])})[1] AND id <> (${uuids([keptRun])})[1]
    ORDER BY created_at, id LIMIT ${limit}`;
}

/** Runs of it that are not marked yet may have to give way as well. */
async function isBeingMarked(tx: Transaction, scheduleUid: string): Promise<boolean> {
  const rows = await rowsOf(tx)(sql`-- isBeingMarked
    SELECT FROM backlogs WHERE schedule_uid = ${scheduleUid} AND kind = 'marked' LIMIT 1`);
  return rows.length > 0;
}

/**
 * Marks the open runs of edited schedules among the next of all open runs, in the order of ids: so each is looked at once, however many
 * schedules are to be marked, and those of other schedules are passed over by thousands. A run that is recorded meanwhile is recorded by
 * the edited definition. Before a row that another transaction has locked it stops, and comes back to it.
 */
export async function markSlice(
  tx: Transaction,
  backlogs: readonly Backlog[],
  { limit, besides, noteRuns }: SliceSize,
): Promise<Slice> {
  const uids = backlogs.map(({ scheduleUid }) => scheduleUid);
  const from = backlogs[0]?.position ?? FIRST_UUID;
  const all = await onlyColumnOf<string>(tx)(sql`-- markSlice
    SELECT id FROM (SELECT id, schedule_uid FROM runs WHERE id > ${from}::uuid ORDER BY id LIMIT ${MOST_VISITED}) AS visited
    WHERE schedule_uid = ANY (${uuids(uids)}) ORDER BY id LIMIT ${limit}`);
  const ids = all.filter((id) => !besides.includes(id));
  noteRuns(ids);
  const { marked, locked } = await markLocked(tx, ids);
  const seen = locked === null ? all : all.filter((id) => id < locked);
  const isThrough = locked === null && all.length < limit;
  const visited = isThrough ? await lastVisited(tx, from) : null;
  const isDone = isThrough && visited === null;
  return {
    changed: marked,
    effects: isDone ? await writeOverlapEffects(tx, uids) : 0,
    toAdmit: false,
    position: visited ?? seen.at(-1) ?? backlogs[0]?.position ?? null,
    isDone,
    isBlocked: locked !== null,
  };
}

/** Open runs of all schedules that one slice passes over. */
const MOST_VISITED = 5_000;

/** Null: it has come to the last of them. */
async function lastVisited(tx: Transaction, from: string): Promise<string | null> {
  const [last = null] = await onlyColumnOf<string>(tx)(sql`-- lastVisited
    SELECT id FROM runs WHERE id > ${from}::uuid ORDER BY id OFFSET ${MOST_VISITED - 1} LIMIT 1`);
  return last;
}
