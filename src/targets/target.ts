import type { Instant } from '../core/instant.ts';
import type { Outcome } from '../core/outcome.ts';
import type { RunTrigger } from '../core/run.ts';
import type { Target } from '../core/schedule.ts';

/** One attempt of one run, as a target sees it. */
export interface Attempt {
  runId: string;
  runName: string | null;
  scheduleId: string | null;
  scheduledFor: Instant;
  trigger: RunTrigger;
  attempt: number;
  /** The client's JSON text, or null. */
  payload: string | null;
  timeoutSeconds: number;
  recovery: { recoveries: number; recoveredAt: Instant } | null;
}

/**
 * A kind of target. `deliver` answers with what became of the attempt and never throws; it ends at the latest
 * `timeoutSeconds` after it began. `signal` aborts it because the daemon is stopping: the outcome is then `unknown`
 * with `senderStopped`, or `transient` where provably nothing was sent.
 */
export interface TargetKind<T extends Target = Target> {
  readonly type: T['type'];
  /** Runs of one lane share a cap, so that a slow target delays only itself. */
  laneOf(target: T): string;
  deliver(target: T, attempt: Attempt, signal: AbortSignal): Promise<Outcome>;
  /** Waits for what is under way and closes kept connections. */
  close(): Promise<void>;
}
