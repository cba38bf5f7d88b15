/**
 * Guarantees: an outcome stays here until it is written or refused for good; of one run at most one outcome is in a batch.
 * Transaction: none; this is memory.
 * If the process dies here: the outcomes are gone; their runs are still pending under this instance's claim.
 */
import { type AttemptSettlement, isPlainSuccess } from '../../core/runs/attempts/settle-attempt.ts';
import type { ClaimedRun } from '../../store/runs/claims/claimed-run.ts';

/** What the caller learns of a run once its outcome is written. */
type SettledRun = Pick<ClaimedRun, 'id' | 'scheduleId' | 'firstClaimedAt' | 'isLimited'>;

/** An attempt that ended. */
export interface EndedAttempt {
  outcome: AttemptSettlement;
  run: SettledRun;
  /** Called once, when the outcome is written or refused for good: its claim is no longer held. */
  onSettled: () => void;
}

/**
 * Outcomes in the order in which they came, in two queues: `plain` ones are written by one statement; the others, and plain ones that
 * the statement did not write, take a transaction that locks their rows first.
 */
export interface SettleQueue {
  add(ended: EndedAttempt): void;
  /** The oldest of them. */
  plain(limit: number): EndedAttempt[];
  locking(limit: number): EndedAttempt[];
  sizes(): { plain: number; locking: number };
  /** From now on the outcome is written by a transaction: a statement may have committed it unseen, or did not write it. */
  lockFirst(ended: EndedAttempt): void;
  /** Puts outcomes behind the others: one that cannot be written must not hold up the rest. */
  putBack(batch: readonly EndedAttempt[]): void;
  has(ended: EndedAttempt): boolean;
  all(): EndedAttempt[];
  remove(ended: EndedAttempt): void;
}

/** The place of its limit may be free once it is settled. */
export function isLimited({ run }: EndedAttempt): boolean {
  return run.isLimited;
}

export function createSettleQueue(): SettleQueue {
  const plain = new Set<EndedAttempt>();
  const locking = new Set<EndedAttempt>();
  return {
    add: (ended) => {
      (isPlainSuccess(ended.outcome) ? plain : locking).add(ended);
    },
    plain: (limit) => batchOf(plain, limit),
    locking: (limit) => batchOf(locking, limit),
    sizes: () => ({ plain: plain.size, locking: locking.size }),
    lockFirst: (ended) => {
      plain.delete(ended);
      locking.add(ended);
    },
    putBack: (batch) => {
      for (const ended of batch) locking.delete(ended);
      for (const ended of batch) locking.add(ended);
    },
    has: (ended) => plain.has(ended) || locking.has(ended),
    all: () => [...plain, ...locking],
    remove: (ended) => {
      plain.delete(ended);
      locking.delete(ended);
    },
  };
}

/** No run twice: a statement can write a row once. In the order of ids: the order of all row locks. */
function batchOf(from: ReadonlySet<EndedAttempt>, limit: number): EndedAttempt[] {
  const byRunId = new Map<string, EndedAttempt>();
  for (const ended of from) {
    if (byRunId.size >= limit) break;
    if (!byRunId.has(ended.outcome.runId)) byRunId.set(ended.outcome.runId, ended);
  }
  return [...byRunId.values()].sort((a, b) => (a.outcome.runId < b.outcome.runId ? -1 : 1));
}
