import type { Commands, Execution, History, LogRead, WorkerCall } from './history.ts';
import { slackOf } from './slack.ts';
import { grouped } from './timeline.ts';
import type { Report } from './violations.ts';

/** A worker waits so long with its report until its log has gone out. */
const LOG_WITHIN_MS = 10_000;
/** Of a log that is longer, somewhat less than what is kept of its beginning, and of its end. */
const [HEAD_BYTES, TAIL_BYTES] = [192 * 1024, 700 * 1024];
/** The code of a command that was ended in the middle of a line, as often as not. */
const TERMINATED = 143;
/** A worker whose daemon is away keeps so much of what is printed. */
const WAITING_BYTES = 256 * 1024;

/**
 * Each attempt's log says what its command has printed, in order. What was acknowledged is there, but for the middle of a long one; of a
 * short one nothing is left out; and if its worker reported soon after the end, all of it is there.
 */
export function checkRunLogs(history: History, { logs, calls, executions }: Commands, report: Report): void {
  const callsOf = grouped(calls, ({ runId, attempt }) => `${runId ?? ''} ${attempt}`);
  const executionOf = new Map(executions.map((one) => [`${one.runId} ${one.attempt}`, one]));
  for (const log of logs) {
    const name = `${log.runId} ${log.attempt}`;
    const about = { log, own: callsOf.get(name) ?? [], execution: executionOf.get(name) };
    for (const fault of faultsOf(history, about))
      report.add('runLog', `${log.runId}, attempt ${log.attempt}: ${fault}`);
  }
}

interface Logged {
  log: LogRead;
  own: readonly WorkerCall[];
  execution: Execution | undefined;
}

function faultsOf(history: History, { log, own, execution }: Logged): string[] {
  const { parts, fault } = log;
  const faults = fault === null ? [] : [fault];
  const last = parts.at(-1);
  const end = last === undefined ? 0 : last.offset + last.bytes;
  const appended = own.flatMap(({ action, status, offset = 0, bytes = 0 }) =>
    action === 'log' && status === 200 ? [{ from: offset, to: offset + bytes }] : [],
  );
  const acknowledged = Math.max(0, ...appended.map(({ to }) => to));
  if (end < acknowledged) faults.push(`ends at ${end}, and ${acknowledged} bytes were acknowledged`);
  let at = 0;
  for (const { offset, bytes } of parts) {
    const gap = { from: at, to: offset };
    if (gap.from < gap.to && !mayBeLeftOut(gap, end, appended))
      faults.push(`lacks ${gap.from} to ${gap.to} of ${end}`);
    at = offset + bytes;
  }
  const ended = execution?.ended;
  const isReportedSoon = own.some(
    ({ action, status, askedAt }) =>
      action === 'complete' &&
      status === 200 &&
      askedAt < (ended?.at ?? 0) + LOG_WITHIN_MS - slackOf(history, askedAt, 1_000),
  );
  if (ended && ended.code !== TERMINATED && isReportedSoon && end !== ended.bytes)
    faults.push(`has ${end} of ${ended.bytes} bytes`);
  return faults;
}

interface Gap {
  from: number;
  to: number;
}

function mayBeLeftOut(gap: Gap, end: number, appended: readonly Gap[]): boolean {
  if (end <= WAITING_BYTES) return false;
  const isKept = ({ from, to }: Gap) => from < HEAD_BYTES || to > end - TAIL_BYTES;
  return !appended.some(({ from, to }) => {
    const lost = { from: Math.max(from, gap.from), to: Math.min(to, gap.to) };
    return lost.from < lost.to && isKept(lost);
  });
}
