import type { Instant } from '../instant.ts';
import { type Bound, type Expect, type SuccessBounds } from '../schedules/expect.ts';
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
  /** When it passed; of one that was kept, or that only a success can break: when that was certain. */
  at: Instant;
  /** Of a broken `result`: why. */
  why?: string;
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

/** What judges the success of a run, with the verdict on its result, which is longer than what is kept of it. */
export interface JudgedSuccess extends Pick<SuccessBounds, 'atLeastSeconds'> {
  /** Why it does not hold; null: it does. Undefined: nothing must hold of it. */
  resultFault: string | null | undefined;
}

/** Null: nothing judges it. `faultOf`: what does not hold of its result. */
export function judgedSuccess(
  bounds: SuccessBounds | null | undefined,
  faultOf: (bounds: NonNullable<SuccessBounds['result']>) => string | null,
): JudgedSuccess | null {
  if (!bounds) return null;
  const { atLeastSeconds, result } = bounds;
  return { atLeastSeconds, resultFault: result === null ? undefined : faultOf(result) };
}

/** Another end says nothing of these bounds. */
export function judgeSuccess(run: RunRecord, judged: JudgedSuccess | null): BoundVerdict[] {
  const { status, finishedAt: at } = run;
  if (judged === null || status !== 'succeeded' || at === null) return [];
  const { atLeastSeconds, resultFault } = judged;
  const verdicts: BoundVerdict[] = [];
  const begunAt = firstBegunAt(run);
  if (atLeastSeconds !== null && begunAt !== null)
    verdicts.push({ bound: 'tooFast', isKept: at - begunAt >= atLeastSeconds * 1000, at });
  if (resultFault === null) verdicts.push({ bound: 'result', isKept: true, at });
  else if (resultFault !== undefined) verdicts.push({ bound: 'result', isKept: false, at, why: resultFault });
  return verdicts;
}

/** When its first attempt began, of those since it was last opened again. A first success, and the claim of a worker, are in no log. */
function firstBegunAt({ attemptLog, retriedAfter, handoffStartedAt, claimedAt }: RunRecord): Instant | null {
  const first = attemptLog?.find(({ attempt }) => attempt > (retriedAfter ?? 0));
  return first?.startedAt ?? handoffStartedAt ?? claimedAt;
}

/** The ended run with these verdicts: no bound of it is left. */
export function withVerdicts(run: RunRecord, verdicts: readonly BoundVerdict[]): RunRecord {
  const broken = verdicts.filter(({ isKept }) => !isKept);
  if (broken.length === 0) return { ...run, ...NO_BOUNDS };
  const unmet = [...(run.unmet ?? []), ...broken.map(({ bound }) => bound)];
  const unmetReason = broken.find(({ why }) => why !== undefined)?.why ?? run.unmetReason;
  return { ...run, ...NO_BOUNDS, unmet, unmetReason };
}

/** An open run whose first attempt begins now, and what that says of the bound until then: `setBegun` in TypeScript. */
export function beginBounds(run: RunRecord, now: Instant): { run: RunRecord; verdict: BoundVerdict | null } {
  const { nextBound, boundAt, finishWithinSeconds } = run;
  const isJudged = nextBound === 'start' && boundAt !== null;
  const isKept = !isJudged || boundAt >= now;
  const left = finishWithinSeconds === null ? NO_BOUNDS : finishBound(now, finishWithinSeconds);
  const unmet = isKept ? run.unmet : [...(run.unmet ?? []), 'start' as const];
  const verdict = isJudged ? { bound: nextBound, isKept, at: Math.min(boundAt, now) } : null;
  return { run: { ...run, ...left, unmet }, verdict };
}

function finishBound(now: Instant, seconds: number): OpenBounds {
  return { nextBound: 'finish', boundAt: now + seconds * 1000, finishWithinSeconds: null };
}
