import type { ScopeShares } from '../../core/access/scope-shares.ts';
import type { Instant } from '../../core/instant.ts';
import { plannedRunId } from '../../core/runs/run.ts';
import { beginByOf, boundsOfBackfill } from '../../core/runs/bounds.ts';
import { newRun, runOfSchedule } from '../../core/runs/new-run.ts';
import { reopenRun } from '../../core/runs/transitions.ts';
import type { Schedule } from '../../core/schedules/schedule.ts';
import type { Transaction } from '../../postgres/executor.ts';
import { lockEndedRuns, presentAmong } from './lock-runs.ts';
import { recordRuns, saveLockedRuns } from './save-runs.ts';

/** An occurrence that is to have a run, and when that is due. */
export interface BackfillFire {
  scheduledFor: Instant;
  dueAt: Instant;
}

interface Backfilling {
  schedule: Schedule;
  scopeShares?: ScopeShares | undefined;
  now: Instant;
}

/** Occurrences in one round of statements. */
const MAX_AT_ONCE = 500;

/**
 * Records missing runs of a schedule, and opens again runs that were skipped or abandoned, under its present version. All others
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
  { schedule, scopeShares, now }: Backfilling,
  fires: readonly BackfillFire[],
): Promise<number> {
  const current = runOfSchedule(schedule, scopeShares);
  const ids = fires.map(({ scheduledFor }) => plannedRunId(schedule.uid, scheduledFor));
  const ended = await lockEndedRuns(tx, ids, 'wait');
  const givenUp = ended.filter(({ status }) => status === 'skipped' || status === 'abandoned');
  await saveLockedRuns(
    tx,
    givenUp.map((from) => ({
      from,
      to: { ...reopenRun(from, current, { status: 'pending', now }), trigger: 'backfill' },
    })),
  );
  const there = await presentAmong(tx, ids);
  const missing = fires.filter((_, index) => !there.has(ids[index] ?? ''));
  const bounds = boundsOfBackfill(schedule.definition.expect);
  const beginBy = beginByOf(current, now);
  const fixed = { ...current, ...bounds, beginBy, trigger: 'backfill', status: 'pending' } as const;
  const recorded = await recordRuns(
    tx,
    missing.map(({ scheduledFor, dueAt }) => {
      const id = plannedRunId(schedule.uid, scheduledFor);
      return newRun({ id, scheduledFor, dueAt, ...fixed }, now);
    }),
  );
  return givenUp.length + recorded.ids.size;
}
