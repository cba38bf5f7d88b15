import type { Instant } from '../instant.ts';
import type { Bound, Expect } from '../schedules/expect.ts';
import type { RunStatus } from './run.ts';
import type { RunRecord } from './run-record.ts';

/** What is left of the bounds of `expect` that an open run is judged by. */
type OpenBounds = Pick<RunRecord, 'nextBound' | 'boundAt' | 'finishWithinSeconds'>;

export const NO_BOUNDS = { nextBound: null, boundAt: null, finishWithinSeconds: null } satisfies OpenBounds;

/** Of a run that is recorded now. `recordIntentsIfLocked` and `recordAfterRuns` say the same; a test compares them. */
export function boundsOf(expect: Expect | null, dueAt: Instant): OpenBounds {
  if (expect === null) return NO_BOUNDS;
  const { startWithinSeconds, finishWithinSeconds } = expect;
  if (startWithinSeconds === null) return { ...NO_BOUNDS, finishWithinSeconds };
  return { nextBound: 'start', boundAt: dueAt + startWithinSeconds * 1000, finishWithinSeconds };
}

/** A run of the past could not have begun in time: only its end is judged. */
export function boundsOfBackfill(expect: Expect | null): OpenBounds {
  return { ...NO_BOUNDS, finishWithinSeconds: expect?.finishWithinSeconds ?? null };
}

/** Until when a run that is due at that moment may be claimed; null: it never expires. */
export function beginByOf(
  { expiresAfterSeconds }: Pick<RunRecord, 'expiresAfterSeconds'>,
  dueAt: Instant,
): Instant | null {
  return expiresAfterSeconds === null ? null : dueAt + expiresAfterSeconds * 1000;
}

/** What a run has made of a bound. */
export interface BoundVerdict {
  bound: Bound;
  isKept: boolean;
  /** When it passed; of one that was kept: when that was certain. */
  at: Instant;
}

/** A run that was called off says nothing about how long its work takes. */
const FINISHED: readonly RunStatus[] = ['succeeded', 'failed'];

/**
 * The end of a run judges the bound that was left, which the watch has not seen pass (`judgePassedBounds`). Null: there is none, or the
 * run was called off before it passed.
 */
export function judgeEnd({ nextBound, boundAt, finishedAt, status }: RunRecord): BoundVerdict | null {
  if (nextBound === null || boundAt === null || finishedAt === null) return null;
  if (finishedAt > boundAt) return { bound: nextBound, isKept: false, at: boundAt };
  const isKept = nextBound === 'finish' && FINISHED.includes(status);
  return isKept ? { bound: nextBound, isKept, at: finishedAt } : null;
}

/** The ended run with this verdict: no bound of it is left. */
export function withVerdict(run: RunRecord, verdict: BoundVerdict | null): RunRecord {
  const isBroken = verdict !== null && !verdict.isKept;
  return { ...run, ...NO_BOUNDS, unmet: isBroken ? [...(run.unmet ?? []), verdict.bound] : run.unmet };
}
