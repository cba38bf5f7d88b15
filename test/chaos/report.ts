import { execFile } from 'node:child_process';
import { hostname } from 'node:os';
import { promisify } from 'node:util';
import type { CampaignOptions, CampaignResult } from './campaign.ts';
import { type Found, VIOLATIONS, foundIn } from './checker/violations.ts';

/** What a campaign says of itself: printed, and written as JSON. */
interface Summary extends Judged {
  seed: number;
  commit: string;
  machine: string;
  seconds: number;
  schedules: number;
  faults: Record<string, number>;
  edits: { acked: number; refused: number; unknown: number };
  /** By hand. */
  fired: { acked: number; refused: number; unknown: number };
  fires: number;
  firesPerSecond: number;
  arrivals: number;
  /** How often one began; null: there were no workers. */
  commands: number | null;
  runs: Record<string, number>;
  lookups: number;
  repeats: { explained: number; unexplained: number };
  latenessMs: { p50: number; p99: number; max: number };
  lost: { found: number; recovered: number };
  /** From the kill to its being declared dead, and to the first lost run taken over after that; in s. */
  takeover: { kills: number; declared: Spread; takenOver: Spread };
}

/** What the checker says, and where to look then. */
export interface Judged extends ReturnType<typeof foundIn> {
  logs: string | null;
}

interface Spread {
  count: number;
  p50: number | null;
  max: number | null;
}

export async function summarize(options: CampaignOptions, result: CampaignResult): Promise<Summary> {
  const { history, verdict } = result;
  const { dump, edits, arrivals, disturbances, commands } = history;
  // Not spread over Math.min: half an hour has more arrivals than a call may have arguments.
  const began = arrivals.reduce((first, { at }) => Math.min(first, at), Infinity);
  const ended = arrivals.reduce((last, { at }) => Math.max(last, at), -Infinity);
  return {
    seed: options.seed,
    commit: await commitOf(options.root),
    machine: hostname(),
    seconds: round((ended - began) / 1000),
    schedules: options.schedules,
    faults: tally([...disturbances, ...(commands?.faults ?? [])].map(({ kind }) => kind)),
    commands: commands === null ? null : commands.executions.length,
    edits: { acked: 0, refused: 0, unknown: 0, ...tally(edits.map(({ outcome }) => outcome)) },
    fired: { acked: 0, refused: 0, unknown: 0, ...tally(history.fires.map(({ outcome }) => outcome)) },
    fires: verdict.expectedFires,
    firesPerSecond: round((verdict.expectedFires * 1000) / (ended - began)),
    arrivals: arrivals.length,
    runs: tally(dump.runs.map(({ status, reason }) => (reason === null ? status : `${status} (${reason})`))),
    lookups: history.lookups.length,
    repeats: verdict.repeats,
    latenessMs: lateness(result),
    lost: {
      found: dump.runs.filter(({ lostAt }) => lostAt !== null).length,
      recovered: dump.runs.filter(({ lostAt, handedOffAt }) => lostAt !== null && handedOffAt !== null).length,
    },
    takeover: takeover(result),
    ...foundBy(verdict, result.directory),
  };
}

/** One page, for a person. */
export function page(summary: Summary): string {
  const { takeover: took, repeats, latenessMs } = summary;
  const lines = [
    `seed ${summary.seed}, commit ${summary.commit}, ${summary.seconds} s, ${summary.schedules} schedules`,
    `faults      ${list(summary.faults)}`,
    `edits       ${list(summary.edits)}`,
    `by hand     ${list(summary.fired)}`,
    `fires       ${summary.fires} due (${summary.firesPerSecond}/s), ${summary.arrivals} arrivals, ${summary.lookups} lookups, ${summary.commands ?? 0} commands`,
    `runs        ${list(summary.runs)}`,
    `repeats     ${repeats.explained} explained, ${repeats.unexplained} not`,
    `lateness    p50 ${latenessMs.p50} ms, p99 ${latenessMs.p99} ms, max ${latenessMs.max} ms (first arrivals, faults included)`,
    `lost runs   ${summary.lost.found} found, ${summary.lost.recovered} recovered`,
    `take-over   declared dead ${spread(took.declared)}; first run taken over ${spread(took.takenOver)}`,
    ...judgement(summary, VIOLATIONS),
  ];
  return lines.join('\n');
}

/** By how often each is there. */
export function list(counts: Record<string, number>): string {
  return Object.entries(counts)
    .map(([name, count]) => `${name} ${count}`)
    .join(', ');
}

export function foundBy({ violations }: { violations: Found<string> }, directory: string): Judged {
  const found = foundIn(violations);
  return { ...found, logs: found.ok ? null : directory };
}

/** The end of a page. */
export function judgement(judged: Judged, kinds: Record<string, string>): string[] {
  return [
    '',
    ...Object.entries(judged.violations).map(([name, count]) =>
      count === 0 ? `ok   ${name} 0` : `FAIL ${name} ${count}  (${kinds[name] ?? ''})`,
    ),
    ...Object.entries(judged.examples).flatMap(([name, examples]) =>
      examples.map((example) => `     ${name}: ${example}`),
    ),
    '',
    judged.ok ? 'PASS' : `FAIL; logs in ${judged.logs ?? ''}`,
  ];
}

function spread({ count, p50, max }: Spread): string {
  return count === 0 ? '–' : `p50 ${p50 ?? 0} s, max ${max ?? 0} s of ${count}`;
}

function lateness({ history }: CampaignResult): Summary['latenessMs'] {
  const seen = new Set<string>();
  const late = history.arrivals
    .filter(({ runId }) => !seen.has(runId) && seen.add(runId))
    .map(({ at, scheduledFor }) => at - scheduledFor);
  const [p50 = 0, p99 = 0, max = 0] = quantiles(late, [0.5, 0.99, 1]);
  return { p50, p99, max };
}

function takeover({ history, identities }: CampaignResult): Summary['takeover'] {
  const kills = history.disturbances.flatMap((disturbance) =>
    disturbance.kind === 'kill'
      ? [disturbance]
      : disturbance.kind === 'killAll'
        ? [...identities.keys()].map((instance) => ({ ...disturbance, instance }))
        : [],
  );
  const declared: number[] = [];
  const takenOver: number[] = [];
  for (const { instance, from } of kills) {
    const own = history.dump.instances.filter(({ id }) => identities.get(instance)?.includes(id));
    const [last] = own.filter(({ startedAt }) => startedAt <= from).sort((a, b) => b.startedAt - a.startedAt);
    const diedAt = last?.diedAt ?? -Infinity;
    if (diedAt < from) continue;
    declared.push((diedAt - from) / 1000);
    const [first] = quantiles(
      history.dump.runs.flatMap(({ lostAt }) =>
        lostAt !== null && lostAt >= diedAt && lostAt < diedAt + 30_000 ? [lostAt] : [],
      ),
      [0],
    );
    if (first !== undefined) takenOver.push((first - from) / 1000);
  }
  return { kills: kills.length, declared: spreadOf(declared), takenOver: spreadOf(takenOver) };
}

function spreadOf(values: number[]): Spread {
  const [p50, max] = quantiles(values, [0.5, 1]);
  return {
    count: values.length,
    p50: p50 === undefined ? null : round(p50),
    max: max === undefined ? null : round(max),
  };
}

export function quantiles(values: number[], shares: number[]): number[] {
  const sorted = [...values].sort((a, b) => a - b);
  return shares.flatMap((share) => sorted[Math.min(sorted.length - 1, Math.floor(share * sorted.length))] ?? []);
}

export function tally(items: readonly string[]): Record<string, number> {
  const counts: Record<string, number> = {};
  for (const item of items) counts[item] = (counts[item] ?? 0) + 1;
  return counts;
}

function round(value: number): number {
  return Math.round(value * 10) / 10;
}

export async function commitOf(root: string): Promise<string> {
  const git = async (...given: string[]) => (await promisify(execFile)('git', ['-C', root, ...given])).stdout.trim();
  try {
    const changed = await git('status', '--porcelain', '--', 'src', 'drizzle');
    return `${await git('rev-parse', '--short', 'HEAD')}${changed === '' ? '' : ' and changes'}`;
  } catch {
    return 'unknown';
  }
}
