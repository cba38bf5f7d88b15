/**
 * Guarantees: what was due when it began is not fired: it stands as skipped, one record a schedule, and one for each fire that a caller
 *   asked to skip; at-most-once runs that may have been sent are not sent again.
 * Transaction: one a batch of schedules, guarded by version and cursor; before them one for the pending runs.
 * If the process dies here: what was committed is done, the rest is as it was; run again, it goes on.
 */
import type { Calendars } from '../core/exclusions/exclusion.ts';
import { LONGEST_REACH_MS } from '../core/days/day-times.ts';
import { type Instant, isoInstant } from '../core/instant.ts';
import type { Database } from '../postgres/database.ts';
import { databaseNow } from '../postgres/sql/rows.ts';
import { calendarIdsIn } from '../core/schedules/stored-definition.ts';
import type { Executor, Transaction } from '../postgres/executor.ts';
import { FIRST_UUID } from '../postgres/sql/arrays.ts';
import { readCalendars } from '../store/calendars/calendar-histories.ts';
import {
  countRestingSchedules,
  type DueSchedule,
  listDueSchedules,
  type RestingSchedules,
  skipDueIfUnmoved,
} from '../store/schedules/skip-to-now.ts';
import { skipsOf } from '../store/schedules/skips.ts';
import { lockSchedules } from '../store/schedules/search/find-schedules.ts';
import { findEndedPauses, lockEndedPauses } from '../store/schedules/watches.ts';
import { type LivingInstance, livingInstances } from '../store/instances/instances.ts';
import { type PendingAfterResume, resumeOpenRuns } from '../store/runs/claims/resume-open-runs.ts';
import { OperationRefused } from './operation-refused.ts';
import { createCounter, skipsOfPage, type Unplannable } from './count-skips.ts';
import { resumeEnded, type StillPaused, writeResumed } from './schedules/ended-pauses.ts';
import { shareCalendarsOf } from './calendars/named-calendars.ts';

export interface ResumeDeps {
  database: Database;
  /** A request of a dead instance may still arrive this long after its own time limit. */
  lockTtlSeconds: number;
  /** Ends the work between two batches, or in the middle of a long count. */
  signal: AbortSignal;
}

export interface Resumed {
  /** What is due after that fires. */
  now: Instant;
  /** Schedules that were moved on. */
  moved: number;
  /** Occurrences that the skipped runs stand for. */
  skipped: number;
  /** Schedules that another process edited or planned meanwhile; they are left to it. */
  fenced: number;
  unplannable: Unplannable[];
  runs: PendingAfterResume;
  resting: RestingSchedules;
}

/** A living instance may be planning the fires that are to be skipped. */
export class InstancesLive extends OperationRefused {
  readonly instances: readonly LivingInstance[];

  constructor(instances: readonly LivingInstance[]) {
    const each = instances.map(
      ({ id, host, heartbeatAt, livesForSeconds }) =>
        `${id} on ${host} (last heartbeat ${isoInstant(heartbeatAt)}, counts for another ${livesForSeconds} s)`,
    );
    super(409, `instances work on this database: ${each.join(', ')}; stop them, or cut them off, first`);
    this.instances = instances;
  }
}

const BATCH = 500;
/** No statement waits for these rows: no instance lives. */
const BATCH_LIMIT_MS = 60_000;
/** Does the work in a transaction, unless an instance lives. @throws InstancesLive */
export type Alone = <T>(work: (tx: Transaction) => Promise<T>, limitMs: number) => Promise<T>;

/** @throws InstancesLive */
export async function checkNoneLives(tx: Transaction): Promise<void> {
  const instances = await livingInstances(tx);
  if (instances.length > 0) throw new InstancesLive(instances);
}

/**
 * Moves the schedules to this moment.
 * @throws InstancesLive, also in the middle, if an instance has started since
 */
export async function resumeFromNow(deps: ResumeDeps): Promise<Resumed> {
  const alone: Alone = (work, limitMs) =>
    deps.database.transaction(async (tx) => {
      await checkNoneLives(tx);
      return work(tx);
    }, limitMs);
  return skipThrough({ ...deps, alone, reason: IN_DOUBT }, await alone(databaseNow, BATCH_LIMIT_MS));
}

/**
 * Moves the schedules past a moment that is not in the future: what was due until then stands as skipped. `reason`: what at-most-once
 * runs say that may have been sent. Counts before it locks: a week of missed seconds takes many seconds to count, and counting locks
 * nothing.
 */
export async function skipThrough(
  { database, alone, reason, lockTtlSeconds, signal }: ResumeDeps & { alone: Alone; reason: string },
  now: Instant,
): Promise<Resumed> {
  const runs = await resumeRuns(alone, { reason, lockTtlSeconds, signal });
  const count = createCounter(now, signal);
  const done = { moved: 0, skipped: 0, fenced: 0, unplannable: await resumeEndedNow(alone, signal) };
  for (let after = FIRST_UUID; ;) {
    signal.throwIfAborted();
    const page = await database.run((db) => listDueSchedules(db, now, { after, limit: BATCH }), BATCH_LIMIT_MS);
    const last = page.at(-1);
    if (!last) break;
    after = last.uid;
    const { onRequest, calendars } = await database.run((db) => leftOutOf(db, page, now), BATCH_LIMIT_MS);
    const { skips, unplannable } = await skipsOfPage(
      page,
      (one) => count(one, { onRequest: onRequest.get(one.uid), calendars }),
      { now, signal },
    );
    done.unplannable.push(...unplannable);
    const moved = await alone((tx) => skipDueIfUnmoved(tx, skips), BATCH_LIMIT_MS);
    const written = skips.filter(({ schedule }) => moved.has(schedule.uid));
    done.moved += written.length;
    const recorded = written.flatMap(({ fires }) => fires);
    done.skipped += recorded.reduce((sum, { coalesced }) => sum + coalesced + 1, 0);
    done.fenced += skips.length - written.length;
  }
  return { now, ...done, runs, resting: await database.run(countRestingSchedules, BATCH_LIMIT_MS) };
}

/** What excludes occurrences of these schedules. */
async function leftOutOf(db: Executor, page: readonly DueSchedule[], now: Instant) {
  const uids = page.flatMap(({ uid, hasSkips }) => (hasSkips ? [uid] : []));
  return { onRequest: await skipsOf(db, uids, now), calendars: await calendarsOf(db, page) };
}

/**
 * Schedules whose pause is over are enabled first, so that what was due since is skipped as well. Answers those that
 * could not be enabled.
 */
async function resumeEndedNow(alone: Alone, signal: AbortSignal): Promise<Unplannable[]> {
  const still: StillPaused[] = [];
  for (let isMore = true; isMore;) {
    signal.throwIfAborted();
    const besides = still.map(({ schedule }) => schedule.uid);
    isMore = await alone(async (tx) => {
      const { ended } = await findEndedPauses(tx, { limit: BATCH, besides });
      const found = await lockSchedules(tx, await lockEndedPauses(tx, ended));
      const calendars = await shareCalendarsOf(tx, found.values());
      const now = await databaseNow(tx);
      const endings = resumeEnded(found, now, calendars.histories);
      await writeResumed(tx, endings, now);
      still.push(...endings.stillPaused);
      return ended.length === BATCH && found.size > 0;
    }, BATCH_LIMIT_MS);
  }
  return still.map(({ schedule, error }) => ({ scheduleId: schedule.id, error }));
}

async function resumeRuns(
  alone: Alone,
  { signal, ...given }: { reason: string; lockTtlSeconds: number; signal: AbortSignal },
): Promise<PendingAfterResume> {
  const done = { ended: 0, asked: 0, left: 0 };
  for (let after: string | null = FIRST_UUID; after !== null;) {
    signal.throwIfAborted();
    const from: string = after;
    const page = await alone((tx) => resumeOpenRuns(tx, { after: from, limit: BATCH, ...given }), BATCH_LIMIT_MS);
    done.ended += page.ended;
    done.asked += page.asked;
    done.left += page.left;
    after = page.next;
  }
  return done;
}

/** No instance lives, so no instance edits them meanwhile. */
async function calendarsOf(db: Executor, page: readonly DueSchedule[]): Promise<Calendars> {
  const ids = new Set(page.flatMap(({ timing }) => calendarIdsIn(timing)));
  const moments = page.map(({ nextOccurrenceAt }) => nextOccurrenceAt - LONGEST_REACH_MS).filter(Number.isFinite);
  return (await readCalendars(db, [...ids], Math.min(...moments))).histories;
}

const IN_DOUBT =
  'recorded before firelock was resumed from a restored database; it is not known whether the run was sent since then';
