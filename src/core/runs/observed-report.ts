import type { Instant } from '../instant.ts';
import type { AttemptError } from './attempts/outcome.ts';
import { type RunStatus, isEnd } from './run.ts';
import { type BoundVerdict, beginBounds, NO_BOUNDS } from './bounds.ts';
import type { RunRecord } from './run-record.ts';
import { entryOf, withAttempt } from './transitions.ts';

export type ReportKind = 'start' | 'success' | 'failure' | 'log';

/** What the job of an observed schedule says. `rid` joins the reports of one execution: a UUID in lower case; null: it has none. */
export interface Report {
  kind: ReportKind;
  rid: string | null;
}

/** What decides for which of the observed runs of a schedule a report is. */
export interface MatchedRun {
  scheduledFor: Instant;
  status: RunStatus;
  /** The `rid` that holds it. */
  executionId: string | null;
  error: AttemptError | null;
}

/** `next`: the moment ahead, which is made at once. `extra`: a run of its own. `dropped`: nothing. */
export type Match<Run> = { for: 'run'; run: Run } | { for: 'next' | 'extra' | 'dropped' };

/** A report may come so long before its moment. */
export const AHEAD_MS = 60_000;

interface Moment {
  now: Instant;
  /** Of the first moment that has no run yet, if it is observed. */
  nextDueAt: Instant | null;
}

/** What `matchReport` says of all runs; those that have ended are asked for only where they may decide. */
export async function matchOpenFirst<Run extends MatchedRun>(
  report: Report,
  { open, readEnded }: { open: readonly Run[]; readEnded: () => Promise<readonly Run[]> },
  moment: Moment,
): Promise<Match<Run>> {
  const { kind, rid } = report;
  const match = matchReport(report, open, moment);
  const mayBeKnown = rid !== null && !(match.for === 'run' && match.run.executionId === rid);
  const mayBeLate = match.for === 'extra' && kind !== 'start';
  return mayBeKnown || mayBeLate ? matchReport(report, [...open, ...(await readEnded())], moment) : match;
}

/** Which run a report is for. `runs`: all observed ones of the schedule, or of each rule the first; all that is due is among them. */
export function matchReport<Run extends MatchedRun>(
  { kind, rid }: Report,
  runs: readonly Run[],
  { now, nextDueAt }: Moment,
): Match<Run> {
  const own = rid === null ? undefined : runs.find(({ executionId }) => executionId === rid);
  if (own) return { for: 'run', run: own };
  const free = runs.filter(({ executionId }) => executionId === null).sort(byMoment);
  const isOpenFor = ({ status }: Run) => (kind === 'start' ? status === 'pending' : !isEnd(status));
  const open = free.find(isOpenFor);
  if (open) return { for: 'run', run: open };
  if (kind === 'log') return { for: 'dropped' };
  if (nextDueAt !== null && nextDueAt <= now + AHEAD_MS) return { for: 'next' };
  const expired = kind === 'start' ? undefined : free.findLast(hasTimedOut);
  return expired ? { for: 'run', run: expired } : { for: 'extra' };
}

/** Nobody had reported its end in time: a late report makes it right. */
export function hasTimedOut({ status, error }: Pick<MatchedRun, 'status' | 'error'>): boolean {
  return status === 'failed' && error?.kind === 'expired';
}

function byMoment(a: MatchedRun, b: MatchedRun): number {
  return a.scheduledFor - b.scheduledFor;
}

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
  if (kind === 'log') return isOver ? null : { to: { ...heard(run, report, now), resultBody: text }, verdict: null };
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
  const error: AttemptError | null = isFailure ? { kind: 'reported', message: text === '' ? why : text } : null;
  return {
    ...run,
    status: isFailure ? 'failed' : 'succeeded',
    error,
    resultBody: isFailure || text === '' ? run.resultBody : text,
    finishedAt: now,
    expiresAt: null,
    attemptLog: isLate
      ? withAttempt(run.attemptLog, entryOf(run, { outcome: 'acceptedLate', statusCode: null, error }, now), () => true)
      : run.attemptLog,
  };
}

/** `unknown`: of the key. `unchanged`: it had been said before. `dropped`: a text without a run. `late`: it made right what had expired. */
const REPORT_OUTCOMES = ['taken', 'early', 'late', 'extra', 'unchanged', 'dropped', 'unknown'] as const;
export type ReportOutcome = (typeof REPORT_OUTCOMES)[number];

/** `limited`: nothing was looked at. */
export const PING_OUTCOMES = [...REPORT_OUTCOMES, 'limited'] as const;
export type PingOutcome = (typeof PING_OUTCOMES)[number];
