/** Bounds by which each of its runs is judged once. Never all null. */
export interface Expect extends SuccessBounds {
  /** From `scheduledFor` + jitter until the first attempt begins; null: no bound. */
  startWithinSeconds: number | null;
  /** From the beginning of the first attempt until the run's end; null: no bound. */
  finishWithinSeconds: number | null;
}

/** What judges a run that has succeeded. */
export interface SuccessBounds {
  /** From the beginning of the first attempt until the success: it must not come sooner; null: no bound. */
  atLeastSeconds: number | null;
  /** What must hold of its result; null: nothing. */
  result: readonly ResultBound[] | null;
}

/** About the value at a place of a result that is JSON. One of the three is there at least. */
export interface ResultBound {
  pointer: string;
  min: number | null;
  max: number | null;
  /** The text of `equals`, whose numbers keep their digits. */
  json: string | null;
}

/** 31 days. */
export const MAX_EXPECT_SECONDS = 31 * 86_400;
export const MAX_RESULT_BOUNDS = 16;
/** A result that is longer does not hold. */
export const MAX_JUDGED_BYTES = 64 * 1024;

/** The bounds of `expect`, as a run's `unmet` names them. */
export const BOUNDS = ['start', 'finish', 'tooFast', 'result'] as const;
export type Bound = (typeof BOUNDS)[number];

/** The field of `expect` that is each bound. */
export const FIELD_OF_BOUND = {
  start: 'startWithinSeconds',
  finish: 'finishWithinSeconds',
  tooFast: 'atLeastSeconds',
  result: 'result',
} as const satisfies Record<Bound, keyof Expect>;

/** Of the `expect` of a stored version: what judges a success; null: nothing does, or another program wrote what cannot be read. */
export function successBoundsIn(expect: unknown): SuccessBounds | null {
  const { atLeastSeconds, result } = (expect ?? {}) as Record<keyof SuccessBounds, unknown>;
  const seconds = typeof atLeastSeconds === 'number' ? atLeastSeconds : null;
  const bounds = Array.isArray(result) && result.every(isResultBound) ? result : null;
  return seconds === null && bounds === null ? null : { atLeastSeconds: seconds, result: bounds };
}

function isResultBound(value: unknown): value is ResultBound {
  const { pointer, min, max, json } = (value ?? {}) as Record<keyof ResultBound, unknown>;
  const numbers = [min, max].every((one) => one === null || typeof one === 'number');
  return typeof pointer === 'string' && numbers && (json === null || typeof json === 'string');
}
