import { climb, stepOf } from '../every-second.ts';
import { type Measured, runHerd } from '../herd.ts';
import { type Ground, openCell, startInstances } from './cell.ts';
import { type SteadyFires, fireSteadily, LIMIT_MS, othersText } from './steady-fires.ts';

const START_PER_CORE = 2_000;
/** A later round begins so far below what the one before it found. */
const BELOW = 1.5;

/** What one installation on these cores did in one round. */
export interface Sustained {
  cores: readonly number[];
  instances: number;
  /** The step of the highest rate that was sustained; null if none was. */
  best: SteadyFires | null;
  herd: Measured;
}

export interface Plan extends Ground {
  cores: readonly number[];
  seconds: number;
  rounds: number;
  herd: number;
  say(line: string): void;
}

/** The highest rate that one installation sustains on one of the cores, and on all of them; then a herd. */
export async function measureSustained(plan: Plan): Promise<Sustained[]> {
  const layouts = plan.cores.length > 1 ? [plan.cores.slice(0, 1), plan.cores] : [plan.cores];
  const found: Sustained[] = [];
  for (let round = 1; round <= plan.rounds; round += 1) {
    for (const cores of layouts) {
      const before = found.findLast((one) => one.cores === cores)?.best?.count;
      const start = before === undefined ? START_PER_CORE * cores.length : Math.round(before / BELOW);
      found.push(await measureLayout(plan, cores, start));
    }
  }
  return found;
}

async function measureLayout(plan: Plan, cores: readonly number[], start: number): Promise<Sustained> {
  const instances = cores.length;
  const cell = await openCell(`core ${cores.join()}`, cores, plan);
  try {
    const contestant = await startInstances(cell, plan.main, instances);
    try {
      let best: SteadyFires | null = null;
      await climb({ start, top: Infinity }, async (count) => {
        const [step] = await fireSteadily([{ cell, contestant }], { ...plan, count });
        if (step === undefined) return 'lost';
        if (step.isSustained && count > (best?.count ?? 0)) best = step;
        plan.say(lineOf(cell.name, step));
        return stepOf(step, LIMIT_MS);
      });
      const herd = await runHerd(contestant, cell, plan.herd);
      plan.say(`${cell.name}: a herd of ${plan.herd}: ${Math.round(herd.firesPerSecond)} fires/s`);
      return { cores, instances, best, herd };
    } finally {
      await contestant.stop();
    }
  } finally {
    await cell.close();
  }
}

export function lineOf(name: string, step: SteadyFires): string {
  const { count, latenessMs, isSustained, missed } = step;
  const [p50, p99] = [latenessMs.p50, latenessMs.p99].map(Math.round);
  const lost = missed === 0 ? '' : `, ${missed} missed`;
  const end = `${isSustained ? 'sustained' : 'too much'} (others had ${othersText([step])})`;
  return `${name}: ${count} fires/s: p50 ${p50} ms, p99 ${p99} ms${lost}: ${end}`;
}
