import {
  type AttemptSettlement,
  type Settled,
  pausesSchedule,
  settleAttempt,
} from '../../../core/runs/attempts/settle-attempt.ts';
import { TO_FALLBACK_MS } from '../../../core/alerts/notifier.ts';
import type { Instant } from '../../../core/instant.ts';
import { databaseNow } from '../../../postgres/sql/rows.ts';
import type { Transaction } from '../../../postgres/executor.ts';
import {
  type MeetingLocks,
  type RunChange,
  lockEndedRuns,
  lockOpenRuns,
  presentAmong,
  saveLockedRuns,
} from '../lock-and-save.ts';

/** What became of a batch of outcomes, by run id. */
export interface SettledRuns {
  settled: ReadonlyMap<string, { wasLost: boolean }>;
  /** Runs that this instance no longer had a claim of; `alreadyEnded`: firelock, or a report of its worker or target, had ended it. */
  fenced: ReadonlyMap<string, { alreadyEnded: boolean }>;
  /** Other transactions have these rows locked, or are moving them. */
  passedOver: ReadonlySet<string>;
  /** How many effects there are to see to. */
  effects: number;
}

/**
 * Settles any outcome: locks the runs, decides (core/runs/attempts/settle-attempt.ts) and writes, in one transaction. An earlier statement
 * whose answer was lost may have settled some of them: these count as settled. No run may be in the batch twice.
 */
export async function settleLockedRuns(
  tx: Transaction,
  outcomes: readonly AttemptSettlement[],
  meeting: MeetingLocks,
): Promise<SettledRuns> {
  const ids = outcomes.map(({ runId }) => runId);
  const open = await lockOpenRuns(tx, ids, meeting);
  const ended = await lockEndedRuns(tx, without(ids, open), meeting);
  const passedOver = await presentAmong(tx, without(ids, [...open, ...ended]));
  const found = new Map([...open, ...ended].map((run) => [run.id, run]));
  const now = await databaseNow(tx);
  const settled = new Map<string, { wasLost: boolean }>();
  const fenced = new Map<string, { alreadyEnded: boolean }>();
  const changes: RunChange[] = [];
  for (const outcome of outcomes) {
    const run = found.get(outcome.runId);
    if (!run) {
      if (!passedOver.has(outcome.runId)) fenced.set(outcome.runId, { alreadyEnded: false });
      continue;
    }
    const verdict = settleAttempt(run, outcome, now);
    if (verdict.kind === 'fenced') fenced.set(run.id, verdict);
    else settled.set(run.id, { wasLost: run.lostAt !== null });
    const isGone = verdict.kind === 'settled' && pausesSchedule(run, outcome);
    const also = isUndelivered(verdict, now) ? (['undelivered'] as const) : isGone ? (['gone'] as const) : [];
    changes.push({ from: run, to: verdict.run, also, success: outcome.settlement.judged ?? null });
  }
  return { settled, fenced, passedOver, effects: await saveLockedRuns(tx, changes) };
}

/** A message that goes to the fallback while it is still retried. */
function isUndelivered({ kind, run }: Settled, now: Instant): boolean {
  const { trigger, status, scheduledFor } = run;
  return kind === 'settled' && trigger === 'notify' && status === 'pending' && now >= scheduledFor + TO_FALLBACK_MS;
}

function without(ids: readonly string[], runs: readonly { id: string }[]): string[] {
  const found = new Set(runs.map(({ id }) => id));
  return ids.filter((id) => !found.has(id));
}
