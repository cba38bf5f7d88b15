import { median } from '../../../bench/support/measures/statistics.ts';
import type { CampaignResult } from '../campaign.ts';
import { VIOLATIONS, type Violation } from '../checker/violations.ts';
import type { EditsTrial, ResumeTrial, Told } from './trials.ts';
import type { Failover, Kind } from './failovers.ts';
import type { Mode } from './patroni-cluster.ts';
import type { Replication } from './patroni-node.ts';

/** What a drill says of itself: printed, and written as JSON. */
export interface FailoverReport {
  mode: Mode;
  replication: Replication;
  seed: number;
  minutes: number;
  failovers: Silence[];
  fires: number;
  lost: number;
  plannedTwice: number;
  atMostOnceRepeats: number;
  /** At most once, and nobody knows whether they arrived. */
  unknown: number;
  /** At least once, and came again; without a cause: in sync mode a fault. */
  repeats: { explained: number; unexplained: number };
  told: Told;
  /** Only with asynchronous replication, as `resumed`. */
  edits: EditsTrial | null;
  resumed: ResumeTrial | null;
  violations: Record<string, number>;
  examples: Record<string, string[]>;
  ok: boolean;
  logs: string;
}

/** A failover, and the longest time around it in which nothing arrived. Up to a second of that is in quiet times too. */
interface Silence extends Failover {
  silentMs: number;
}

/** From one failover to the next one; the end of the last one's time is open. */
export function silencesOf(failovers: readonly Failover[], arrivals: readonly { at: number }[]): Silence[] {
  return failovers.map((failover, index) => {
    const end = failovers[index + 1]?.at ?? failover.wholeAt;
    let [silentMs, last] = [0, NaN];
    for (const { at } of arrivals) {
      if (at > end) break;
      if (at >= failover.at) silentMs = Math.max(silentMs, at - last || 0);
      last = at;
    }
    return { ...failover, silentMs };
  });
}

interface Given {
  mode: Mode;
  replication: Replication;
  seed: number;
  failovers: readonly Failover[];
  told: Told;
  edits: EditsTrial | null;
  resumed: ResumeTrial | null;
}

export function reportOf({ history, verdict, directory }: CampaignResult, given: Given): FailoverReport {
  const { failovers, told, ...named } = given;
  const { violations, expectedFires: fires, repeats } = verdict;
  const names = Object.keys(VIOLATIONS) as Violation[];
  const [first, last] = [history.arrivals[0]?.at ?? NaN, history.arrivals.at(-1)?.at ?? NaN];
  const atMostOnceRepeats = violations.atMostOnceRepeat.count;
  const isKept = violations.lost.count === 0 && violations.plannedTwice.count === 0;
  const ok =
    named.replication === 'sync'
      ? verdict.ok && told.metric === 0
      : isKept &&
        isTold(told, repeats.unexplained + atMostOnceRepeats) &&
        areKept(named.edits) &&
        named.resumed?.atMostOnceRepeats === 0;
  return {
    ...named,
    minutes: Math.round((last - first) / 6_000) / 10,
    failovers: silencesOf(failovers, history.arrivals),
    fires,
    lost: violations.lost.count,
    plannedTwice: violations.plannedTwice.count,
    atMostOnceRepeats,
    unknown: history.dump.runs.filter(({ status }) => status === 'unknown').length,
    repeats,
    told,
    violations: Object.fromEntries(names.map((name) => [name, violations[name].count])),
    examples: Object.fromEntries(names.map((name) => [name, violations[name].examples])),
    ok,
    logs: directory,
  };
}

/** What was lost must not go unsaid. */
function isTold({ logLines, metric }: Told, repeated: number): boolean {
  return repeated === 0 || (logLines > 0 && metric > 0);
}

/** What was lost is sent no more, and what was edited anew is. */
function areKept(edits: EditsTrial | null): boolean {
  return edits !== null && edits.lostBefore > 0 && edits.lostAfter === 0 && edits.right > 0 && edits.wrong === 0;
}

export function failoverPage(report: FailoverReport): string {
  const { failovers, mode, replication, violations, examples, told, repeats } = report;
  const kinds = [...new Set(failovers.map(({ kind }) => kind))];
  const others = Object.entries(violations).filter(([name, count]) => count > 0 && !NAMED.has(name));
  return [
    `${WAY[mode]}, ${replication === 'sync' ? 'synchronous' : 'asynchronous'} replication, seed ${report.seed}: ` +
      `${failovers.length} failovers and ${report.fires} fires in ${report.minutes} minutes`,
    ...kinds.map((kind) =>
      lineOf(
        kind,
        failovers.filter((one) => one.kind === kind),
      ),
    ),
    `  lost ${report.lost}, planned twice ${report.plannedTwice}, at-most-once repeats ${report.atMostOnceRepeats}`,
    `  at least once, sent again: ${repeats.explained} with a cause, ${repeats.unexplained} without; at most once, unknown: ${report.unknown}`,
    `  lost commits: ${told.logLines} lines of the log, firelock_database_went_back_total ${told.metric}`,
    ...editsLines(report),
    ...resumedLines(report),
    ...others.map(([name, count]) => `  ${name}: ${count}, such as ${examples[name]?.[0] ?? ''}`),
    report.ok ? 'PASS' : `FAIL; the logs: ${report.logs}`,
  ].join('\n');
}

function editsLines({ edits }: FailoverReport): string[] {
  if (edits === null) return [];
  const { lostBefore, lostAfter, right, wrong } = edits;
  return [
    `  calls by edits that were lost: ${lostBefore} before, ${lostAfter} after; by what the database says: ${right}, otherwise: ${wrong}`,
  ];
}

function resumedLines({ resumed }: FailoverReport): string[] {
  if (resumed === null) return [];
  const { forgotten, atMostOnceRepeats, lines } = resumed;
  const text = `${forgotten} forgotten fires, then at-most-once repeats ${atMostOnceRepeats}`;
  return [
    `  with firelock resume --from-now before the daemons start: ${text}. It said:`,
    ...lines.map((line) => `    ${line}`),
  ];
}

const WAY: Record<Mode, string> = { haproxy: 'through HAProxy', hosts: 'several hosts in the URL' };
const NAMED = new Set(['lost', 'plannedTwice', 'atMostOnceRepeat']);

function lineOf(kind: Kind, own: readonly Silence[]): string {
  const seconds = (values: readonly number[]) =>
    `median ${(median(values) / 1000).toFixed(1)}, worst ${(Math.max(...values) / 1000).toFixed(1)}`;
  const silent = own.map(({ silentMs }) => silentMs);
  const promoted = own.map(({ at, promotedAt }) => promotedAt - at);
  return `  ${kind}, ${own.length} times: seconds without fires ${seconds(silent)}; a new primary after ${seconds(promoted)}`;
}
