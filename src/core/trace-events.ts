import type { Instant } from './instant.ts';
import type { Outcome } from './runs/attempts/outcome.ts';
import type { RunTrigger } from './runs/run.ts';
import type { HandoffTarget } from './schedules/schedule.ts';

/** Events about attempts, which become spans, and about the sending of spans. */
export type TraceEvent =
  | {
      type: 'attemptEnded';
      target: string;
      runId: string;
      attempt: number;
      outcome: Outcome['kind'];
      durationMs: number;
      /** By the database's clock. */
      startedAt: Instant;
      /** The span id that the target got; undefined: it got none. */
      spanId: string | undefined;
      scheduleId: string | null;
      trigger: RunTrigger;
      recoveries: number;
      to: HandoffTarget;
      result: Outcome;
    }
  | { type: 'spansExported'; count: number }
  | { type: 'spansDropped'; reason: (typeof SPANS_DROPPED)[number]; count: number }
  /** Spans wait until the collector is back; spans for which there is no room are dropped. */
  | { type: 'traceCollectorAway'; error: string }
  | { type: 'traceCollectorBack' };

/** `full`: too many wait; `refused`: the collector does not take them; `stopped`: the daemon stops. */
export const SPANS_DROPPED = ['full', 'refused', 'stopped'] as const;
