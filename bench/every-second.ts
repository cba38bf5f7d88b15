import { setTimeout as sleep } from 'node:timers/promises';
import { type Recurring, type Seconds, secondsIn } from './contestant.ts';
import { type CpuTime, cpuTime, perThousand } from './support/measures/cpu.ts';
import {
  type Stage,
  checkExactlyOnce,
  DUPLICATES_WAIT_MS,
  makeCalm,
  nextSecond,
  QUIET_MS,
  untilQuiet,
} from './herd.ts';
import type { Arrivals } from './support/processes/receiver.ts';
import { percentile } from './support/measures/statistics.ts';
import { inTime } from '../test/support/within.ts';

interface Plan {
  /** Schedules that fire every second. */
  count: number;
  /** Seconds that come first and do not count. */
  warmUp: number;
  seconds: number;
  /** The first second (wall-clock ms), where several begin in the same; else the next for which all can be armed. */
  from?: number;
  /** How long after the last second all must have arrived. */
  waitLimitMs: number;
  /** Whether it is asked for each run; takes as long as that takes. */
  checksHistory: boolean;
}

export interface EverySecond {
  /** Of the seconds that count, from scheduledFor to the arrival at the receiver. */
  latenessMs: { p50: number; p99: number; max: number };
  /** In the last second by itself: it grows where one falls behind. */
  lastSecondP99Ms: number;
  /** Fires of a schedule in a second that did not arrive, and arrivals beyond the first. */
  missed: number;
  repeated: number;
  /** Per 1,000 fires, from the first second that counts until all is settled. */
  cpuSeconds: CpuTime;
  /** Whether all that was planned was settled when the wait ended. */
  settled: boolean;
}

/**
 * Fires `count` schedules in each second, and waits until all have arrived and are settled, or waitLimit ends. Throws if history
 * has other fires than those that arrived.
 */
export async function fireEverySecond(contestant: Recurring, stage: Stage, plan: Plan): Promise<EverySecond> {
  const { server, database, receiver } = stage;
  const { name } = contestant;
  const calmFrom = performance.now();
  await makeCalm(contestant, database);
  // It takes as long again once all are armed.
  const calmSeconds = (performance.now() - calmFrom) / 1000;
  const lead = (contestant.leadSeconds(plan.count) + calmSeconds) * 1000;
  const from = plan.from ?? nextSecond(Date.now() + lead);
  const counted = { from: from + plan.warmUp * 1000, until: from + (plan.warmUp + plan.seconds) * 1000 };
  const all = { from, until: counted.until };
  await contestant.armEverySecond(plan.count, all);
  await makeCalm(contestant, database);
  await untilQuiet(name, from);
  const waitLimit = counted.until + plan.waitLimitMs - Date.now();
  const ended = Promise.all([
    inTime(waitLimit, contestant.settledEverySecond(all)),
    inTime(waitLimit, receiver.expect(plan.count * secondsIn(all))),
  ]);
  // Not to be unhandled while the seconds pass.
  ended.catch(() => undefined);
  await sleep(counted.from - QUIET_MS - Date.now());
  await stage.probe?.start();
  const before = cpuTime(contestant, server);
  const [settled] = await ended;
  const fires = plan.count * plan.seconds;
  const cpuSeconds = perThousand(cpuTime(contestant, server), before, fires);
  await stage.probe?.stop();
  await sleep(DUPLICATES_WAIT_MS);
  const arrivals = await receiver.arrivals();
  const judged = judge(arrivals, fires, counted);
  if (plan.checksHistory && settled && judged.missed === 0 && judged.repeated === 0) {
    checkExactlyOnce(name, arrivals.runIds, await contestant.historyEverySecond(plan.count, all));
  }
  return { ...judged, cpuSeconds, settled };
}

/** Good: on time, in the last second too, and each fire once. */
export function stepOf({ latenessMs, lastSecondP99Ms, missed, repeated, settled }: EverySecond, limitMs: number): Step {
  if (!settled) return 'lost';
  const kept = latenessMs.p99 <= limitMs && lastSecondP99Ms <= limitMs;
  return kept && missed === 0 && repeated === 0 ? 'good' : 'bad';
}

function judge(
  arrivals: Arrivals,
  fires: number,
  { from, until }: Seconds,
): Omit<EverySecond, 'cpuSeconds' | 'settled'> {
  const seen = new Set<string>();
  const lateness: number[] = [];
  const lastSecond: number[] = [];
  let repeated = 0;
  for (const [index, at] of arrivals.at.entries()) {
    const scheduledFor = arrivals.scheduledFor[index] ?? '';
    const due = Date.parse(scheduledFor);
    if (!(due >= from && due < until)) continue;
    const fire = `${arrivals.sources[index] ?? ''}@${scheduledFor}`;
    if (seen.has(fire)) repeated += 1;
    else lateness.push(at - due);
    if (due === until - 1000) lastSecond.push(at - due);
    seen.add(fire);
  }
  const [p50 = NaN, p99 = NaN, max = NaN] = [0.5, 0.99, 1].map((share) => percentile(lateness, share));
  return {
    latenessMs: { p50, p99, max },
    lastSecondP99Ms: percentile(lastSecond, 0.99),
    missed: fires - seen.size,
    repeated,
  };
}

/** How a step ended; `lost`: so badly that no further one can be tried. */
type Step = 'good' | 'bad' | 'lost';

const UP = 1.5;
const DOWN = 2;
const LEAST = 10;
/** Each halves what is open between the last good step and the first bad one: the answer is right to 5 %. */
const HALVINGS = 3;

/**
 * The highest count up to `top` at which a step is good, looked for from `start` up, or down where that is bad already; 0 if
 * none is.
 * The step that ends the way up is tried twice, so that a slow moment of the machine does not end it.
 */
export async function climb(
  { start, top }: { start: number; top: number },
  step: (count: number) => Promise<Step>,
): Promise<number> {
  let [good, bad, lost] = [0, Infinity, false];

  async function attempt(count: number, tries: number): Promise<void> {
    for (let left = tries; left > 0 && !lost; left -= 1) {
      const outcome = await step(count);
      if (outcome === 'good') good = count;
      if (outcome === 'good') return;
      lost = outcome === 'lost';
    }
    bad = count;
  }

  for (let count = start; bad === Infinity && count <= top; count = Math.round(count * UP)) await attempt(count, 2);
  while (good === 0 && bad > LEAST && !lost) await attempt(Math.round(bad / DOWN), 1);
  for (let left = HALVINGS; left > 0 && good > 0 && bad < Infinity && !lost; left -= 1) {
    await attempt(Math.round(Math.sqrt(good * bad)), 1);
  }
  return good;
}
