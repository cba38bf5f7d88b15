import type { Instant } from './instant.ts';
import type { Outcome } from './runs/attempts/outcome.ts';
import type { RunTrigger } from './runs/run.ts';
import type { Target } from './schedules/schedule.ts';

/** An attempt, which is a span, and what becomes of spans. */
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
      /** Of the span that the target was told; undefined: it was told none. */
      spanId: string | undefined;
      scheduleId: string | null;
      trigger: RunTrigger;
      recoveries: number;
      to: Target;
      result: Outcome;
    }
  | { type: 'spansExported'; count: number }
  | { type: 'spansDropped'; reason: (typeof SPANS_DROPPED)[number]; count: number }
  /** Spans wait until the collector is back; what does not fit is dropped. */
  | { type: 'traceCollectorAway'; error: string }
  | { type: 'traceCollectorBack' };

/** `full`: too many wait; `refused`: the collector does not take them; `stopped`: the daemon has. */
export const SPANS_DROPPED = ['full', 'refused', 'stopped'] as const;
