/** An attempt that is under way for longer hangs, and a lane whose attempts take longer on average does not move. */
export const HANGS_AFTER_MS = 1_000;
/** An attempt of a slow lane hangs once it is under way for this many times the average. */
const SLOW_LANE_HANGS_AFTER = 3;

/**
 * How an attempt ended: `answered`, also by a refused connection; `timedOut`, when its time was up; `unsent`, which says nothing of
 * the target.
 */
export type AttemptEnd = 'answered' | 'timedOut' | 'unsent';

/** What the pace notes of an attempt under way. */
export interface PacedAttempt {
  /** How often the lane had answered when it began. */
  answersBefore: number;
  hangs: boolean;
}

const CLAIM_AHEAD_MS = 1_000;
/** Per slot. Limits what a killed process leaves for recovery, and what it takes from the other instances. */
const MAX_CLAIMS_AHEAD = 127;
/** For a lane without any answer yet. */
const CLAIMS_AHEAD_IF_NEW = 1;
/** Weight of the newest duration in the average; and of a quick answer after slow ones. */
const NEWEST = 0.1;
const NEWEST_IF_QUICK_AGAIN = 0.5;

/**
 * What the attempts of one lane have shown. It counts as moving only while they end by answers, and soon; one whose attempts hang stops
 * within a second. A lane that answers later than that is slow, and stalled once it takes far longer than before.
 */
export class LanePace {
  #answers = 0;
  #averageMs: number | null = null;
  #stalled = false;
  #unanswered = 0;
  #hanging = 0;

  /** No attempt has ended yet, and none hangs. */
  get isNew(): boolean {
    return this.#averageMs === null && !this.#stalled;
  }

  get isMoving(): boolean {
    return !this.#stalled && this.#averageMs !== null && this.#averageMs < HANGS_AFTER_MS;
  }

  /** It answers, but takes long. */
  get isSlow(): boolean {
    return !this.#stalled && this.#averageMs !== null && this.#averageMs >= HANGS_AFTER_MS;
  }

  /** An attempt hangs, or ended without an answer, and no answer came since it began. */
  get isStalled(): boolean {
    return this.#stalled;
  }

  /** An attempt that is under way for longer hangs. */
  get hangsAfterMs(): number {
    return this.isSlow ? SLOW_LANE_HANGS_AFTER * (this.#averageMs ?? 0) : HANGS_AFTER_MS;
  }

  /** Slots that the lane has taken and shown no answer for. */
  get unansweredSlots(): number {
    return this.#unanswered + this.#hanging;
  }

  began(attempt: PacedAttempt): void {
    attempt.answersBefore = this.#answers;
    this.#unanswered += 1;
  }

  hangs(attempt: PacedAttempt): void {
    attempt.hangs = true;
    this.#hanging += 1;
    if (attempt.answersBefore === this.#answers) this.#stalled = true;
  }

  ended(attempt: PacedAttempt, end: AttemptEnd, durationMs: number): void {
    if (attempt.hangs) this.#hanging -= 1;
    const isUnanswered = attempt.answersBefore === this.#answers;
    if (end === 'answered') {
      this.#answers += 1;
      this.#unanswered = 0;
      // What it was before it stood still says nothing of what it is now.
      this.#learn(durationMs, this.#stalled);
      this.#stalled = false;
      return;
    }
    if (isUnanswered) this.#unanswered -= 1;
    if (end === 'unsent') return;
    if (isUnanswered) this.#stalled = true;
    if (this.#averageMs !== null) this.#learn(durationMs, false);
  }

  /**
   * Runs that may be claimed beyond the slots: about a second of work at the pace shown. A quick target never waits for a round
   * trip to the database. The waiting runs of a slow target stay unclaimed, for any instance with a slot, and are not stranded when
   * this one is killed.
   */
  ahead(slots: number): number {
    if (this.#stalled) return 0;
    if (this.#averageMs === null) return slots * CLAIMS_AHEAD_IF_NEW;
    return Math.min(slots * MAX_CLAIMS_AHEAD, Math.floor((slots * CLAIM_AHEAD_MS) / Math.max(1, this.#averageMs)));
  }

  #learn(durationMs: number, anew: boolean): void {
    const before = this.#averageMs;
    if (before === null || anew) {
      this.#averageMs = durationMs;
      return;
    }
    const isQuickAgain = before >= HANGS_AFTER_MS && durationMs < HANGS_AFTER_MS;
    const weight = isQuickAgain ? NEWEST_IF_QUICK_AGAIN : NEWEST;
    this.#averageMs = before * (1 - weight) + durationMs * weight;
  }
}
