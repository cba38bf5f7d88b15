import { type AttemptSettlement, isPlainSuccess } from '../core/runs/attempts/settle-attempt.ts';
import { Line, type LineMember } from '../runtime/loop/line.ts';
import type { ClaimedRun } from '../store/runs/claims/claimed-run.ts';

/** What the caller learns of a run once its outcome is written. */
type SettledRun = Pick<ClaimedRun, 'id' | 'scheduleId' | 'notifierId' | 'firstClaimedAt' | 'isLimited'>;

/** An attempt that ended. */
export interface EndedAttempt extends LineMember<EndedAttempt> {
  outcome: AttemptSettlement;
  run: SettledRun;
  /** Called once, when the outcome is written or refused for good: its claim is over. */
  onSettled: () => void;
}

/** The place of its limit may be free once it is settled. */
export function isLimited({ run }: EndedAttempt): boolean {
  return run.isLimited;
}

/**
 * Outcomes in the order in which they came, in two queues: `plain` ones are written by one statement; the others, and plain ones that
 * the statement did not write, take a transaction that locks their rows first. An outcome stays until it is written or refused for good.
 */
export class SettleQueue {
  readonly #plain = new Line<EndedAttempt>();
  readonly #locking = new Line<EndedAttempt>();

  get sizes(): { plain: number; locking: number } {
    return { plain: this.#plain.length, locking: this.#locking.length };
  }

  add(ended: EndedAttempt): void {
    (isPlainSuccess(ended.outcome) ? this.#plain : this.#locking).push(ended);
  }

  /** The oldest of them. */
  plain(limit: number): EndedAttempt[] {
    return batchOf(this.#plain, limit);
  }

  locking(limit: number): EndedAttempt[] {
    return batchOf(this.#locking, limit);
  }

  /** From now on the outcome is written by a transaction: a statement may have committed it unseen, or did not write it. */
  lockFirst(ended: EndedAttempt): void {
    if (this.remove(ended)) this.#locking.push(ended);
  }

  /** Puts outcomes behind the others: one that cannot be written must not hold up the rest. */
  putBack(batch: readonly EndedAttempt[]): void {
    for (const ended of batch) this.lockFirst(ended);
  }

  has(ended: EndedAttempt): boolean {
    return ended.line !== null;
  }

  all(): EndedAttempt[] {
    return [...this.#plain.all(), ...this.#locking.all()];
  }

  /** Answers whether it was there. */
  remove(ended: EndedAttempt): boolean {
    const wasThere = ended.line !== null;
    ended.line?.remove(ended);
    return wasThere;
  }
}

/** No run twice: a statement can write a row once. In the order of ids: the order of all row locks. */
function batchOf(line: Line<EndedAttempt>, limit: number): EndedAttempt[] {
  const byRunId = new Map<string, EndedAttempt>();
  for (let ended = line.first; ended && byRunId.size < limit; ended = ended.behind) {
    if (!byRunId.has(ended.outcome.runId)) byRunId.set(ended.outcome.runId, ended);
  }
  return [...byRunId.values()].sort((a, b) => (a.outcome.runId < b.outcome.runId ? -1 : 1));
}

/** A statement costs as much as twenty of its rows; a run that ends alone does not wait. */
export const MIN_WAIT_MS = 15;
/**
 * When many attempts end, many more will end soon. While they do, the processors are for what is still to be sent: nothing waits for
 * the end of a plain success to be written.
 */
const WAIT_IF_MANY_MS = 250;
/** When many end and something waited for their ends: a place of a limit, schedules and runs that follow, the next fire of a schedule. */
const WAIT_IF_AWAITED_MS = 50;
const MANY_ENDS = 20;
/** For each slot. Until its end is written, a run takes room in which another one could be claimed; there is room for 32. */
const MANY_ENDS_PER_SLOT = 8;

interface WrittenSuccesses {
  count: number;
  wereAwaited: boolean;
  /** Attempts that may be under way at once. */
  slots: number;
}

/** How many ms lie at least between a pass that wrote these plain successes and the next one, from start to start. */
export function waitAfter({ count, wereAwaited, slots }: WrittenSuccesses): number {
  if (count < MANY_ENDS) return MIN_WAIT_MS;
  return wereAwaited || count >= MANY_ENDS_PER_SLOT * slots ? WAIT_IF_AWAITED_MS : WAIT_IF_MANY_MS;
}
