import type { Instant } from '../../core/instant.ts';
import { plannedRunId } from '../../core/runs/run.ts';
import { beginByOf, boundsOfBackfill } from '../../core/runs/bounds.ts';
import { type OfSchedule, newRun } from '../../core/runs/new-run.ts';
import { reopenRun } from '../../core/runs/transitions.ts';
import type { Expect } from '../../core/schedules/expect.ts';
import { type Observe, isObservedAt } from '../../core/schedules/schedule.ts';
import type { Transaction } from '../../postgres/executor.ts';
import { lockEndedRuns, presentAmong, recordRuns, saveLockedRuns } from './lock-and-save.ts';

/** An occurrence that is to have a run, when that is due, and the version of the schedule whose run it is. */
export interface BackfillFire {
  scheduledFor: Instant;
  dueAt: Instant;
  version: number;
}

/** What a run takes from a version of its schedule. */
export interface VersionRules {
  ofSchedule: OfSchedule;
  expect: Expect | null;
  /** Moments that were observed are not made up for: another scheduler ran them. */
  observe: Observe | null;
}

interface Backfilling {
  uid: string;
  /** Of each of these versions. */
  rulesOf: (versions: readonly number[]) => Promise<ReadonlyMap<number, VersionRules>>;
  now: Instant;
}

/** Occurrences in one round of statements. */
const MAX_AT_ONCE = 500;

/**
 * Records missing runs of a schedule, and opens again runs that were skipped or abandoned, under the versions given. All others
 * stay as they are. The caller has the schedule's row locked, from an earlier statement, under which no other transaction
 * records or opens runs of its occurrences. Answers how many are to be handed off now.
 */
export async function recordBackfillUnderLock(
  tx: Transaction,
  backfilling: Backfilling,
  fires: readonly BackfillFire[],
): Promise<number> {
  let created = 0;
  for (let first = 0; first < fires.length; first += MAX_AT_ONCE)
    created += await recordSome(tx, backfilling, fires.slice(first, first + MAX_AT_ONCE));
  return created;
}

async function recordSome(
  tx: Transaction,
  { uid, rulesOf, now }: Backfilling,
  fires: readonly BackfillFire[],
): Promise<number> {
  const rules = await rulesOf([...new Set(fires.map(({ version }) => version))]);
  const wanted = new Map(
    fires.flatMap((fire) => {
      const ofVersion = rules.get(fire.version);
      if (!ofVersion || isObservedAt(ofVersion.observe, fire.scheduledFor)) return [];
      return [[plannedRunId(uid, fire.scheduledFor), { ...fire, ...ofVersion }] as const];
    }),
  );
  const ids = [...wanted.keys()];
  const ended = await lockEndedRuns(tx, ids, 'wait');
  const givenUp = ended.filter(({ status }) => status === 'skipped' || status === 'abandoned');
  await saveLockedRuns(
    tx,
    givenUp.map((from) => {
      const current = wanted.get(from.id)?.ofSchedule ?? null;
      return { from, to: { ...reopenRun(from, current, { status: 'pending', now }), trigger: 'backfill' } };
    }),
  );
  const there = await presentAmong(tx, ids);
  const missing = [...wanted].filter(([id]) => !there.has(id));
  const recorded = await recordRuns(
    tx,
    missing.map(([id, { scheduledFor, dueAt, ofSchedule, expect }]) => {
      const fixed = { ...ofSchedule, ...boundsOfBackfill(expect), beginBy: beginByOf(ofSchedule, now) };
      return newRun({ id, scheduledFor, dueAt, ...fixed, trigger: 'backfill', status: 'pending' }, now);
    }),
  );
  return givenUp.length + recorded.ids.size;
}
