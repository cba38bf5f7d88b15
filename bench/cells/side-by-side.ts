import { climb, stepOf } from '../every-second.ts';
import { dueFor, runHerd } from '../herd.ts';
import { openCell, startInstances } from './cell.ts';
import { type Running, fireSteadily, LIMIT_MS } from './steady-fires.ts';
import { type Plan, lineOf } from './sustained.ts';

const START = 2_000;
/** Of what one alone sustains: the first share at which both do counts. */
const SHARES = [1, 0.95, 0.9, 0.85, 0.8];
const TRIES = 2;

/** Fires/s of each cell while it has a herd, in one round. */
interface FullLoad {
  alone: [number, number];
  together: [number, number];
}

export interface SideBySide {
  cores: [number, number];
  rounds: FullLoad[];
  /** What one alone sustains, and the highest share of it that both sustain at once; 0 if none of those tried. */
  sustained: { alone: number; share: number };
}

/** Two installations, each on a core of its own, alone and at once. `sustains`: what one does alone, where that is known. */
export async function measureSideBySide(plan: Plan, sustains: number | null): Promise<SideBySide> {
  const [first, second] = plan.cores;
  if (first === undefined || second === undefined) throw new Error('two cores are needed');
  const running: Running[] = [];
  try {
    for (const [name, core] of [
      ['cell A', first],
      ['cell B', second],
    ] as const) {
      const cell = await openCell(name, [core], plan);
      running.push({ cell, contestant: await startInstances(cell, plan.main, 1) });
    }
    const [a, b] = running as [Running, Running];
    const alone = sustains ?? (await climbAlone(a, plan));
    const rounds = await atFullLoad(a, b, plan);
    const share = await shareOfBoth(a, b, alone, plan);
    return { cores: [first, second], rounds, sustained: { alone, share } };
  } finally {
    await Promise.all(running.map(({ contestant }) => contestant.stop()));
    await Promise.all(running.map(({ cell }) => cell.close()));
  }
}

/**
 * A herd is the one load at which a cell has work all the time and still ends: asked for more in each second than it can do, it falls
 * behind, and how far differs from one try to the next.
 */
async function atFullLoad(a: Running, b: Running, plan: Plan): Promise<FullLoad[]> {
  const haveHerd = async (running: readonly Running[]) => {
    const dueAt = Math.max(...running.map(({ contestant }) => dueFor(contestant, plan.herd)));
    const all = await Promise.all(running.map(({ cell, contestant }) => runHerd(contestant, cell, plan.herd, dueAt)));
    return all.map(({ firesPerSecond }) => firesPerSecond) as [number, number];
  };
  // Neither may be the first that has such a load.
  await haveHerd([a, b]);
  const rounds: FullLoad[] = [];
  while (rounds.length < plan.rounds) {
    const [aAlone] = await haveHerd([a]);
    const together = await haveHerd([a, b]);
    const [bAlone] = await haveHerd([b]);
    rounds.push({ alone: [aAlone, bAlone], together });
    const text = (values: readonly number[]) => values.map(Math.round).join(' and ');
    plan.say(`a herd of ${plan.herd}: alone ${text([aAlone, bAlone])} fires/s, at once ${text(together)}`);
  }
  return rounds;
}

async function climbAlone(a: Running, plan: Plan): Promise<number> {
  return climb({ start: START, top: Infinity }, async (count) => {
    const [step] = await fireSteadily([a], { ...plan, count });
    if (step === undefined) return 'lost';
    plan.say(lineOf(`${a.cell.name} alone`, step));
    return stepOf(step, LIMIT_MS);
  });
}

/** A slow moment of the machine does not decide: each share is tried twice. */
async function shareOfBoth(a: Running, b: Running, alone: number, plan: Plan): Promise<number> {
  for (const share of SHARES) {
    for (let tries = 0; tries < TRIES; tries += 1) {
      const count = Math.round(share * alone);
      const both = await fireSteadily([a, b], { ...plan, count });
      for (const [index, step] of both.entries())
        plan.say(lineOf(`${index === 0 ? a.cell.name : b.cell.name}, both at once`, step));
      if (both.every(({ isSustained }) => isSustained)) return share;
    }
  }
  return 0;
}
