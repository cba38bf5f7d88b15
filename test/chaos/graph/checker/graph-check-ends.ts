import type { GraphHistory } from './graph-history.ts';
import { type Traced, hasEnded, nameOf } from './graph-trace.ts';
import type { GraphReport } from './graph-violations.ts';

/** That every run ends, once, and as it was said. */
export function checkEnds(history: GraphHistory, traced: readonly Traced[], report: GraphReport): void {
  const seen = Map.groupBy(history.sightings, ({ runId }) => runId);
  for (const one of traced) {
    const { row } = one;
    const statuses = new Set([...(seen.get(row.id) ?? []).map(({ status }) => status), row.status]);
    if (statuses.size > 1) report.add('endedTwice', `${nameOf(one)}: ${[...statuses].join(', ')}`);
    if (!hasEnded(one)) {
      report.add('stuck', `${nameOf(one)} is ${row.status} after ${row.attempts} attempts`);
    } else if (one.inVain) checkFailedForIt(one, report);
    else checkEnd(one, report);
  }
}

function checkFailedForIt(one: Traced, report: GraphReport): void {
  const { row, deliveries } = one;
  if (deliveries.length > 0) report.add('startedInVain', `${nameOf(one)} was started`);
  else if (row.status !== 'failed' || row.errorKind !== 'dependency') {
    report.add('startedInVain', `${nameOf(one)} is ${row.status}, ${row.errorKind ?? 'no error'}`);
  }
}

function checkEnd(one: Traced, report: GraphReport): void {
  const { asked, row } = one;
  if (row.status !== asked.fate || row.errorKind === 'dependency') {
    const error = row.errorKind ?? 'no error';
    report.add('wrongEnd', `${nameOf(one)} is ${row.status}, ${error}, and should be ${asked.fate}`);
  } else if (saidToEndAt(one) === Infinity) {
    report.add('wrongEnd', `${nameOf(one)} is ${row.status}, and no answer said so`);
  }
}

/**
 * The earliest moment at which each run can have come to the end that it has, by those who knew: when the receiver began to answer so,
 * when it or a worker began to say so; where it failed for another, when that one can have ended. Infinity: no answer ever said so.
 */
export function endsNotBefore(traced: readonly Traced[]): (one: Traced) => number {
  const ends = new Map<Traced, number>();
  const endOf = (one: Traced): number => {
    const known = ends.get(one);
    if (known !== undefined) return known;
    const failed = one.dependsOn.filter(({ row }) => row.status !== 'succeeded');
    const end = one.inVain ? earliest(failed.map(endOf)) : saidToEndAt(one);
    ends.set(one, end);
    return end;
  };
  for (const one of traced) endOf(one);
  return endOf;
}

/** What was not answered, or in vain, may have been heard all the same. */
function saidToEndAt({ asked, row, deliveries, words }: Traced): number {
  const said = words.filter(({ say, statusCode }) => say === row.status && mayBeHeard(statusCode));
  const answered = deliveries.flatMap(({ answer }) =>
    answer && asked.kind === 'http' && meaning(answer.statusCode) === row.status ? [answer.at] : [],
  );
  return earliest([...said.map(({ sentAt }) => sentAt), ...answered]);
}

function mayBeHeard(statusCode: number | null): boolean {
  return statusCode === null || statusCode < 300 || statusCode >= 500;
}

function meaning(statusCode: number): string {
  if (statusCode < 300) return 'succeeded';
  return statusCode === 503 ? 'pending' : 'failed';
}

function earliest(moments: readonly number[]): number {
  return moments.reduce((first, moment) => Math.min(first, moment), Infinity);
}
