import type { Instant } from '../../instant.ts';
import type { AttemptError } from '../attempts/outcome.ts';
import { type RunStatus, isEnd } from '../run.ts';

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
