import type { Instant } from '../../../core/instant.ts';
import type { DemoInstance } from '../cluster/three-instances.ts';

/** Everything that the screen shows of one moment. */
export interface Snapshot {
  /** What the demo is doing, in words. */
  phase: string;
  /** Since the first fire was due, in milliseconds; before that 0. */
  elapsedMs: number;
  totalMs: number;
  schedules: number;
  instances: readonly Pick<DemoInstance, 'number' | 'pid' | 'url' | 'state' | 'kills'>[];
  due: number;
  delivered: number;
  skipped: number;
  open: number;
  /** Held by an instance that is dead, or taken over from it and not handed off since. */
  lostNow: number;
  lost: number;
  recovered: number;
  /** Runs that were open, and lost at that moment: a pair for each second, the latest last. */
  curve: readonly { open: number; lost: number }[];
  /** Of first deliveries; null: there is none yet. */
  lateness: { medianMs: number; p99Ms: number; mostMs: number } | null;
  /** What happened, the latest last. */
  events: readonly DemoEvent[];
}

export interface DemoEvent {
  /** As elapsedMs. */
  atMs: number;
  at: Instant;
  text: string;
}

/** By nearest rank. */
export function latenessOf(values: readonly number[]): Snapshot['lateness'] {
  if (values.length === 0) return null;
  const sorted = Float64Array.from(values).sort();
  const rank = (part: number) => sorted[Math.max(0, Math.ceil(part * sorted.length) - 1)] ?? 0;
  return { medianMs: rank(0.5), p99Ms: rank(0.99), mostMs: rank(1) };
}
