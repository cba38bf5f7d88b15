/** `npm run chaos:graph`: one campaign of runs that depend on each other. test/chaos/README.md tells more. */
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import { hostname } from 'node:os';
import { type GraphOptions, type GraphResult, runGraphCampaign } from './graph-campaign.ts';
import { type Traced, endsNotBefore, trace } from './graph-checker.ts';
import { GRAPH_VIOLATIONS } from './graph-history.ts';
import { createReport } from '../checker/violations.ts';
import { beginCommand, numberOf, seedOf, writeReport } from '../command.ts';
import { type Judged, commitOf, foundBy, judgement, list, quantiles, tally } from '../report.ts';

const { values } = parseArgs({
  options: {
    runs: { type: 'string', default: '10000' },
    seed: { type: 'string' },
    instances: { type: 'string', default: '3' },
    /** Seconds; 0: no kills. */
    'kill-every': { type: 'string', default: '5' },
    /** At most. */
    minutes: { type: 'string', default: '20' },
    /** Milliseconds for each run between two calls that ask for runs. */
    pace: { type: 'string', default: '4' },
    report: { type: 'string' },
    root: { type: 'string', default: join(import.meta.dirname, '..', '..', '..') },
    quiet: { type: 'boolean', default: false },
  },
});

const killEvery = numberOf('kill-every', values['kill-every']);
const options = {
  seed: seedOf(values.seed),
  runs: numberOf('runs', values.runs),
  shape: 'mixed' as const,
  instances: numberOf('instances', values.instances),
  killEveryMs: killEvery === 0 ? Infinity : killEvery * 1000,
  paceMs: numberOf('pace', values.pace),
  limitSeconds: numberOf('minutes', values.minutes) * 60,
  root: values.root,
  say: beginCommand(values.quiet),
};
options.say(`seed ${options.seed}`);
const summary = await summarizeGraph(options, await runGraphCampaign(options));
console.log(`\n${graphPage(summary)}`);
await writeReport(values.report, summary);
process.exitCode = summary.ok ? 0 : 1;

/** What a graph campaign says of itself: printed, and written as JSON. */
interface GraphSummary extends Judged {
  seed: number;
  commit: string;
  machine: string;
  seconds: number;
  asked: number;
  edges: number;
  kinds: Record<string, number>;
  instances: number;
  kills: number;
  /** Declared dead by the others while they lived. */
  replaced: number;
  ends: Record<string, number>;
  deliveries: { requests: number; claims: number; repeats: number; mostAttempts: number };
  /** Calls of /complete and /heartbeat, by what they were answered with. */
  words: Record<string, number>;
  /** From the commit of the last end that a run waited for to its first delivery. */
  releaseMs: Quantiles;
  /** The same of those whose first claim was delivered: no instance was killed between its claim and its request. */
  firstClaimMs: Quantiles;
  /** How many were delivered by a later claim only. */
  takenOver: number;
  /** The same since a target first tried to say that end, whether an instance heard it or not. */
  saidMs: Quantiles;
}

interface Quantiles {
  p50: number;
  p99: number;
  max: number;
}

async function summarizeGraph(options: GraphOptions, result: GraphResult): Promise<GraphSummary> {
  const { history, verdict, kills, seconds, directory } = result;
  const { asked, deliveries, words, rows, lives } = history;
  return {
    seed: options.seed,
    commit: await commitOf(options.root),
    machine: hostname(),
    seconds: Math.round(seconds),
    asked: asked.length,
    edges: asked.reduce((sum, { dependsOn }) => sum + dependsOn.length, 0),
    kinds: tally(asked.map(({ kind, manner }) => (manner === 'plain' ? kind : `${kind} (${manner})`))),
    instances: options.instances,
    kills,
    replaced: lives.filter(({ replaced }) => replaced).length,
    ends: tally(rows.map(({ status, errorKind }) => (errorKind === null ? status : `${status} (${errorKind})`))),
    deliveries: {
      requests: deliveries.filter(({ lease }) => lease === null).length,
      claims: deliveries.filter(({ lease }) => lease !== null).length,
      repeats: deliveries.length - new Set(deliveries.map(({ runId }) => runId)).size,
      mostAttempts: rows.reduce((most, { attempts }) => Math.max(most, attempts), 0),
    },
    words: tally(words.map(({ say, statusCode }) => `${say} ${statusCode ?? 'unanswered'}`)),
    ...releasesOf(result),
    ...foundBy(verdict, directory),
  };
}

type Releases = Pick<GraphSummary, 'releaseMs' | 'firstClaimMs' | 'takenOver' | 'saidMs'>;

function releasesOf({ history }: GraphResult): Releases {
  const traced = trace(history, createReport(GRAPH_VIOLATIONS));
  const saidAt = endsNotBefore(traced);
  const released = traced.flatMap(({ dependsOn, deliveries: [first] }) =>
    first && dependsOn.length > 0 ? [{ dependsOn, first }] : [],
  );
  const atOnce = released.filter(({ first }) => first.attempt === 1);
  const since = (runs: typeof released, endOf: (one: Traced) => number): Quantiles => {
    const took = runs.map(
      ({ dependsOn, first }) => first.at - dependsOn.reduce((last, one) => Math.max(last, endOf(one)), -Infinity),
    );
    const [p50 = 0, p99 = 0, max = 0] = quantiles(took, [0.5, 0.99, 1]).map(Math.round);
    return { p50, p99, max };
  };
  const endedAt = ({ row }: Traced) => row.endedAt ?? -Infinity;
  return {
    releaseMs: since(released, endedAt),
    firstClaimMs: since(atOnce, endedAt),
    takenOver: released.length - atOnce.length,
    saidMs: since(released, saidAt),
  };
}

/** One page, for a person. */
function graphPage(summary: GraphSummary): string {
  const { deliveries, releaseMs, firstClaimMs, takenOver, saidMs } = summary;
  const lines = [
    `seed ${summary.seed}, commit ${summary.commit}, ${summary.seconds} s, ${summary.instances} instances`,
    `runs        ${summary.asked}, ${summary.edges} dependencies`,
    `kinds       ${list(summary.kinds)}`,
    `kills       ${summary.kills}; ${summary.replaced} declared dead while they lived`,
    `ends        ${list(summary.ends)}`,
    `deliveries  ${deliveries.requests} requests, ${deliveries.claims} claims, ${deliveries.repeats} repeats; at most ${deliveries.mostAttempts} attempts`,
    `words       ${list(summary.words)}`,
    `release     ${inWords(releaseMs)} (from the commit of the last end to the first delivery, kills included)`,
    `            ${inWords(firstClaimMs)} (the same without the ${takenOver} whose first claim died with its instance)`,
    `            ${inWords(saidMs)} (since a target first tried to say that end, whether an instance heard it or not)`,
    ...judgement(summary, GRAPH_VIOLATIONS),
  ];
  return lines.join('\n');
}

function inWords({ p50, p99, max }: Quantiles): string {
  return `p50 ${p50} ms, p99 ${p99} ms, max ${max} ms`;
}
