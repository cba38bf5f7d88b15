import type { Instant } from '../../instant.ts';
import type { AttemptError } from '../attempts/outcome.ts';
import { type BoundVerdict, NO_BOUNDS, beginBounds } from '../bounds.ts';
import { isEnd } from '../run.ts';
import type { RunRecord } from '../run-record.ts';
import { entryOf, withAttempt } from '../transitions.ts';
import { type Report, hasTimedOut } from './match-report.ts';

/** A report with what it says in words. */
export interface ToldReport extends Report {
  /** The beginning of its body; empty: it had none. */
  text: string;
  /** All of it, for what is expected of a result. */
  whole: string;
  /** Of a failure without a body. */
  why: string;
}

interface Applied {
  to: RunRecord;
  /** What its beginning made of its bound; null: nothing. */
  verdict: BoundVerdict | null;
}

/** What a report makes of the run that it is for; null: nothing, since the first word wins, and a start reopens nothing. */
export function applyReport(run: RunRecord, report: ToldReport, now: Instant): Applied | null {
  const { kind, text } = report;
  const isOver = isEnd(run.status);
  if (kind === 'log')
    return isOver ? null : { to: { ...heard(run, report, now), resultBody: text }, verdict: null };
  if (kind === 'start') return run.status === 'pending' ? begun(heard(run, report, now), now) : null;
  if (isOver && !hasTimedOut(run)) return null;
  const { to, verdict } = run.attempts > 0 ? { to: run, verdict: null } : begun(run, now);
  // How long its work took is not known without a start.
  const judged = run.attempts > 0 ? to : { ...to, ...NO_BOUNDS };
  return { to: ended(heard(judged, report, now), report, { now, isLate: isOver }), verdict };
}

function heard(run: RunRecord, { rid }: Report, now: Instant): RunRecord {
  return {
    ...run,
    executionId: run.executionId ?? rid,
    handedOffAt: run.handedOffAt ?? now,
    expiresAt: now + (run.leaseSeconds ?? 0) * 1000,
    updatedAt: now,
  };
}

function begun(run: RunRecord, now: Instant): Applied {
  const { run: to, verdict } = beginBounds(run, now);
  const since = { handoffStartedAt: now, firstClaimedAt: now, latenessMs: now - run.dueAt };
  return { to: { ...to, ...since, status: 'running', attempts: 1 }, verdict };
}

function ended(
  run: RunRecord,
  { kind, text, why }: ToldReport,
  { now, isLate }: { now: Instant; isLate: boolean },
): RunRecord {
  const isFailure = kind === 'failure';
  const error: AttemptError | null = isFailure
    ? { kind: 'reported', message: text === '' ? why : text }
    : null;
  return {
    ...run,
    status: isFailure ? 'failed' : 'succeeded',
    error,
    resultBody: isFailure || text === '' ? run.resultBody : text,
    finishedAt: now,
    expiresAt: null,
    attemptLog: isLate
      ? withAttempt(
          run.attemptLog,
          entryOf(run, { outcome: 'acceptedLate', statusCode: null, error }, now),
          () => true,
        )
      : run.attemptLog,
  };
}
