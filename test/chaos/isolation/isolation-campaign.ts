import { setTimeout as sleep } from 'node:timers/promises';
import { median } from '../../../bench/support/measures/statistics.ts';
import type { Burden, Fact } from './burdens.ts';
import { type Period, measure, startStage, WITNESS_HOSTS } from './isolation-stage.ts';

interface IsolationOptions {
  burdens: readonly Burden[];
  seconds: number;
  rounds: number;
  scale: number;
  root: string;
  say: (line: string) => void;
}

interface Round {
  alone: Measured;
  beside: Measured;
  facts: Fact[];
}

type Measured = Record<'fires' | 'followers', Period>;

interface IsolationResult {
  name: string;
  title: string;
  rounds: Round[];
  /** Median over the rounds of what the burden adds to the 99th percentile of lateness, in ms, and what it may add. */
  added: Record<'fires' | 'followers', { ms: number; allowedMs: number }>;
  ok: boolean;
}

/** The ratio or, where that is more, so many milliseconds: a fifth of some milliseconds cannot be told from noise. */
const ALLOWED = { ratio: 1.2, ms: 50 };
const WARM_UP_MS = 5_000;

/** Each burden in each round on daemons and a database of its own: first the witnesses alone, then beside it. */
export async function runIsolation(options: IsolationOptions): Promise<IsolationResult[]> {
  const results: IsolationResult[] = [];
  for (const burden of options.burdens) {
    const rounds: Round[] = [];
    for (let number = 1; number <= options.rounds; number += 1) {
      const round = await runRound(burden, options);
      rounds.push(round);
      options.say(`${burden.name}, round ${number}: ${lineOf(round)}`);
    }
    results.push(resultOf(burden, rounds));
  }
  return results;
}

async function runRound(burden: Burden, { root, scale, seconds }: IsolationOptions): Promise<Round> {
  const stage = await startStage(root, scale, burden.variables);
  try {
    await burden.prepare?.(stage);
    await sleep(WARM_UP_MS);
    const alone = await measure(stage.witnesses, WITNESS_HOSTS, seconds);
    const settled = await burden.begin(stage);
    const beside = await measure(stage.witnesses, WITNESS_HOSTS, seconds);
    return { alone, beside, facts: await settled() };
  } finally {
    await stage.close();
  }
}

function resultOf({ name, title, allowedMs = ALLOWED.ms }: Burden, rounds: Round[]): IsolationResult {
  const addedTo = (kind: 'fires' | 'followers') => {
    const ms = median(rounds.map(({ alone, beside }) => beside[kind].p99 - alone[kind].p99));
    const before = median(rounds.map(({ alone }) => alone[kind].p99));
    return { ms, allowedMs: Math.max(allowedMs, (ALLOWED.ratio - 1) * before) };
  };
  const added = { fires: addedTo('fires'), followers: addedTo('followers') };
  const isMissing = rounds.some(({ beside }) => beside.fires.missing + beside.followers.missing > 0);
  const isLate = Object.values(added).some(({ ms, allowedMs }) => ms > allowedMs);
  const fails = rounds.some(({ facts }) => facts.some(({ holds }) => !holds));
  return { name, title, rounds, added, ok: !isMissing && !isLate && !fails };
}

export function isolationPage(results: readonly IsolationResult[]): string {
  const lines = results.flatMap(({ title, rounds, added, ok }) => [
    `${ok ? 'PASS' : 'FAIL'}  ${title}`,
    `      p99 of the other schedules' lateness: ${more(added.fires)}; of a follower's: ${more(added.followers)}`,
    ...rounds.map((round, index) => `      round ${index + 1}: ${lineOf(round)}`),
  ]);
  return lines.join('\n');
}

function more({ ms, allowedMs }: { ms: number; allowedMs: number }): string {
  return `${ms >= 0 ? '+' : ''}${Math.round(ms)} ms (allowed: +${Math.round(allowedMs)} ms)`;
}

function lineOf({ alone, beside, facts }: Round): string {
  const fails = facts.map(({ what, holds }) => (holds ? what : `NOT AS IT SHOULD BE: ${what}`));
  return [
    `alone ${textOf(alone.fires)}, beside it ${textOf(beside.fires)}`,
    `followers ${textOf(alone.followers)}, beside it ${textOf(beside.followers)}`,
    ...fails,
  ].join('; ');
}

function textOf({ p50, p99, max, missing }: Period): string {
  const unsent = missing > 0 ? `, ${missing} MISSING` : '';
  return `p50 ${Math.round(p50)} p99 ${Math.round(p99)} max ${Math.round(max)} ms${unsent}`;
}
