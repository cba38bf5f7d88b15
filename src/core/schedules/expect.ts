/** Bounds by which each of its runs is judged once, when the bound passes. Never both null. */
export interface Expect {
  /** From `scheduledFor` + jitter until the first attempt begins; null: no bound. */
  startWithinSeconds: number | null;
  /** From the beginning of the first attempt until the run's end; null: no bound. */
  finishWithinSeconds: number | null;
}

/** 31 days. */
export const MAX_EXPECT_SECONDS = 31 * 86_400;

/** The bounds of `expect`, as a run's `unmet` names them. */
export const BOUNDS = ['start', 'finish'] as const;
export type Bound = (typeof BOUNDS)[number];
