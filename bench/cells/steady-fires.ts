import { setTimeout as sleep } from 'node:timers/promises';
import { readFileSync } from 'node:fs';
import type { Recurring } from '../contestant.ts';
import { type EverySecond, fireEverySecond, stepOf } from '../every-second.ts';
import { type Probe, nextSecond } from '../herd.ts';
import type { Cell } from './cell.ts';
import { cpuSecondsOfTree } from '../support/measures/cpu.ts';

/** More than a second late is not sustained. */
export const LIMIT_MS = 1_000;
const WARM_UP_SECONDS = 3;
const WAIT_LIMIT_MS = 60_000;
/** For the checkpoint before, and what arming takes longer than expected. */
const SPARE_MS = 5_000;
const OTHERS_AT_MOST = 0.1;
export const TRIES = 3;
const PAUSE_MS = 5_000;
const ERROR_LENGTH = 150;

export interface SteadyFires extends EverySecond {
  count: number;
  isSustained: boolean;
  /** CPU seconds of the target per 1,000 fires. */
  targetCpuSeconds: number;
  othersShare: number;
}

export interface Running {
  cell: Cell;
  contestant: Recurring;
}

interface Load {
  count: number;
  seconds: number;
  say(line: string): void;
}

/** `count` fires in each second in each cell, in the same seconds; again where others worked on these cores meanwhile. */
export async function fireSteadily(running: readonly Running[], load: Load): Promise<SteadyFires[]> {
  for (let left = TRIES; ; left -= 1) {
    try {
      const measured = await fireOnce(running, load, firstSecond(running, load.count));
      if (left === 1 || !isDisturbed(measured)) return measured;
      load.say(`others had ${othersText(measured)} of the cores: measured again`);
    } catch (error) {
      // On a busy machine the schedules are armed too late.
      if (left === 1) throw error;
      load.say(`${String(error).slice(0, ERROR_LENGTH)}: measured again`);
    }
    await sleep(PAUSE_MS);
  }
}

/** Where others had a good part of the cores, nothing is known of the cells. */
export function isDisturbed(measured: readonly SteadyFires[]): boolean {
  return measured.some(({ othersShare }) => othersShare > OTHERS_AT_MOST);
}

export function othersText(measured: readonly SteadyFires[]): string {
  return measured.map(({ othersShare }) => `${Math.round(100 * othersShare)} %`).join(' and ');
}

/** The next for which all can be armed. */
function firstSecond(running: readonly Running[], count: number): number {
  const lead = Math.max(...running.map(({ contestant }) => contestant.leadSeconds(count)));
  return nextSecond(Date.now() + lead * 1000 + SPARE_MS);
}

/** The same once, from this second on. */
export async function fireOnce(
  running: readonly Running[],
  { count, seconds }: Omit<Load, 'say'>,
  from: number,
): Promise<SteadyFires[]> {
  const plan = {
    count,
    seconds,
    from,
    warmUp: WARM_UP_SECONDS,
    waitLimitMs: WAIT_LIMIT_MS,
    checksHistory: false,
  };
  const all = await Promise.allSettled(
    running.map(async ({ cell, contestant }) => {
      const probe = watchCores(cell, contestant);
      const measured = await fireEverySecond(contestant, { ...cell, probe }, plan);
      const { targetSeconds, othersShare } = probe.read();
      return {
        ...measured,
        count,
        isSustained: stepOf(measured, LIMIT_MS) === 'good',
        targetCpuSeconds: (targetSeconds * 1000) / (count * seconds),
        othersShare,
      };
    }),
  );
  // Only when none is at work any more.
  return all.map((one) => {
    if (one.status === 'rejected') throw one.reason;
    return one.value;
  });
}

/** When the first second that counts begins. */
export function countedFrom(from: number): number {
  return from + WARM_UP_SECONDS * 1000;
}

const TICKS_PER_SECOND = 100;

interface CoreTime {
  /** CPU of the target. */
  targetSeconds: number;
  /** Of the time of the cell's cores, the share that processes had which do not belong to it: 0 on a quiet machine. */
  othersShare: number;
}

/** Watches the cores of a cell while something is measured. */
function watchCores(cell: Cell, contestant: Recurring): Probe & { read(): CoreTime } {
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
    const [user, nice, system] = new RegExp(`^cpu${core} (\\d+) (\\d+) (\\d+) `, 'm').exec(stat)?.slice(1) ?? [];
    return Number(user) + Number(nice) + Number(system);
  });
  return ticks.reduce((sum, one) => sum + one, 0) / TICKS_PER_SECOND;
}
