import { secondsInWords } from '../describe/describe.ts';
import { type Instant, isoInstant } from '../instant.ts';
import type { AttemptError } from '../runs/attempts/outcome.ts';
import type { RunStatus } from '../runs/run.ts';
import type { Expect } from '../schedules/expect.ts';
import type { AlertKind, EndingCalendar } from './alert.ts';

/** What is known of the run that opened an episode. */
export interface BreakingRun {
  status: RunStatus;
  reason: string | null;
  error: AttemptError | null;
  /** What does not hold of its result. */
  unmetReason: string | null;
  scheduledFor: Instant;
  coalescedFrom: Instant | null;
}

/** What is known of its schedule. */
export interface BrokenSchedule {
  pauseReason: string | null;
  /** Why it cannot be planned. */
  error: string | null;
  successWithinSeconds: number | null;
  expect: Expect | null;
  calendar: EndingCalendar | null;
}

/** Why an episode was opened, in words for a person who was woken by it; null: nothing more is known than its kind. */
export function whatIsWrong(
  kind: AlertKind,
  { run, count }: { run: BreakingRun | null; count: number },
  { pauseReason, error, successWithinSeconds, expect, calendar }: BrokenSchedule,
): string | null {
  switch (kind) {
    case 'failed':
      return run && (run.error?.message ?? `the run ended ${run.status}${run.reason ? ` (${run.reason})` : ''}`);
    case 'late':
      return within('no run has succeeded', successWithinSeconds);
    case 'unstarted':
      return within('the run has not started', expect?.startWithinSeconds);
    case 'slow':
      return within('the run has not ended', expect?.finishWithinSeconds);
    case 'tooFast':
      return within('the run has succeeded', expect?.atLeastSeconds);
    case 'result':
      return run?.unmetReason ?? null;
    case 'missed':
      return run && missedFires(run, count);
    case 'paused':
      return pauseReason;
    case 'error':
      return error;
    case 'calendar':
      return calendar && `the calendar ${calendar.id} says nothing of days after ${calendar.validUntil}`;
  }
}

/** `run`: the record of the first of them. */
function missedFires({ coalescedFrom, scheduledFor }: BreakingRun, count: number): string {
  const first = isoInstant(coalescedFrom ?? scheduledFor);
  if (count <= 1) return `the fire of ${first} was missed`;
  return `${count} fires were missed, the first of them that of ${first}`;
}

function within(what: string, seconds: number | null | undefined): string | null {
  return typeof seconds === 'number' ? `${what} within ${secondsInWords(seconds)}` : null;
}
