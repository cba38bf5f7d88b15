import { readFileSync } from 'node:fs';
import type { Recurring } from '../contestant.ts';
import type { Probe } from '../herd.ts';
import { cpuSecondsOfTree } from '../support/measures/cpu.ts';
import type { Cell } from './cell.ts';

const TICKS_PER_SECOND = 100;

interface CoreTime {
  /** CPU of the target. */
  targetSeconds: number;
  /** Of the time of the cell's cores, the share that processes had which do not belong to it: 0 on a quiet machine. */
  othersShare: number;
}

/** Watches the cores of a cell while something is measured. */
export function watchCores(cell: Cell, contestant: Recurring): Probe & { read(): CoreTime } {
  const pids = [contestant.pid, ...(contestant.others ?? [])];
  const look = () => {
    const target = cpuSecondsOfTree(cell.receiver.pid) ?? NaN;
    const own = pids.map((pid) => cpuSecondsOfTree(pid) ?? NaN).reduce((sum, one) => sum + one, 0);
    return {
      at: performance.now() / 1000,
      busy: busySeconds(readFileSync('/proc/stat', 'utf8'), cell.cores),
      own: own + (cell.server.cpuSeconds() ?? NaN) + (cell.sharesCores ? target : 0),
      target,
    };
  };
  let [before, after] = [look(), look()];
  return {
    start: () => {
      before = look();
      return Promise.resolve();
    },
    stop: () => {
      after = look();
      return Promise.resolve();
    },
    read: () => {
      const others = after.busy - before.busy - (after.own - before.own);
      return {
        targetSeconds: after.target - before.target,
        othersShare: Math.max(0, others / ((after.at - before.at) * cell.cores.length)),
      };
    },
  };
}

/** Seconds in which processes worked on these cores, by the text of /proc/stat; interrupts and stolen time are not in it. */
export function busySeconds(stat: string, cores: readonly number[]): number {
  const ticks = cores.map((core) => {
    const [user, nice, system] =
      new RegExp(`^cpu${core} (\\d+) (\\d+) (\\d+) `, 'm').exec(stat)?.slice(1) ?? [];
    return Number(user) + Number(nice) + Number(system);
  });
  return ticks.reduce((sum, one) => sum + one, 0) / TICKS_PER_SECOND;
}
