import { readdirSync, readFileSync } from 'node:fs';
import type { Contestant } from '../../contestant.ts';
import type { Server } from '../processes/postgres.ts';

/** What Linux counts in, whatever its kernel's own tick. */
const TICKS_PER_SECOND = 100;

/**
 * CPU seconds (user and system) of a process and its descendants so far, those that exited and were waited for included:
 * short-lived backends of PostgreSQL live on in the postmaster's own count. Null where there is no /proc.
 */
export function cpuSecondsOfTree(root: number): number | null {
  const all = readProcesses();
  if (!all.has(root)) return null;
  let ticks = 0;
  for (const pid of all.keys()) if (descendsFrom(pid, root, all)) ticks += all.get(pid)?.ticks ?? 0;
  return ticks / TICKS_PER_SECOND;
}

/** Null where the process is not of this machine. */
export function parentOf(pid: number): number | null {
  return readStat(pid)?.parent ?? null;
}

/** A process and its descendants, parents before children; none where there is no such process. */
export function pidsOfTree(root: number): number[] {
  const all = readProcesses();
  const depthOf = (pid: number): number => (pid === root ? 0 : 1 + depthOf(all.get(pid)?.parent ?? root));
  const found = [...all.keys()].filter((pid) => descendsFrom(pid, root, all));
  return found.sort((one, other) => depthOf(one) - depthOf(other));
}

/** What a process was started with, or how it calls itself now; empty where it is gone. */
export function commandOf(pid: number): string {
  try {
    return readFileSync(`/proc/${pid}/cmdline`, 'utf8').replaceAll('\0', ' ');
  } catch {
    return '';
  }
}

interface Stat {
  parent: number;
  ticks: number;
}

function readProcesses(): Map<number, Stat> {
  const found = new Map<number, Stat>();
  for (const name of entriesOf('/proc')) {
    const stat = /^\d+$/.test(name) ? readStat(Number(name)) : null;
    if (stat !== null) found.set(Number(name), stat);
  }
  return found;
}

function descendsFrom(pid: number, root: number, all: ReadonlyMap<number, Stat>): boolean {
  for (let at: number | undefined = pid; at !== undefined && at > 0; at = all.get(at)?.parent) {
    if (at === root) return true;
  }
  return false;
}

function readStat(pid: number): Stat | null {
  try {
    const text = readFileSync(`/proc/${pid}/stat`, 'utf8');
    // The second field is the name in parentheses, whatever it holds; from the third on all is numbers but the state.
    const fields = text.slice(text.lastIndexOf(')') + 2).split(' ');
    const [user, system, waitedUser, waitedSystem] = fields.slice(11, 15).map(Number);
    return {
      parent: Number(fields[1]),
      ticks: (user ?? 0) + (system ?? 0) + (waitedUser ?? 0) + (waitedSystem ?? 0),
    };
  } catch {
    return null;
  }
}

function entriesOf(directory: string): string[] {
  try {
    return readdirSync(directory);
  } catch {
    return [];
  }
}

/** Seconds of a contestant's processes and of the database's; null where that cannot be seen. */
export interface CpuTime {
  node: number | null;
  postgres: number | null;
}

export function cpuTime({ pid, others = [] }: Contestant, server: Server): CpuTime {
  const all = [pid, ...others].map(cpuSecondsOfTree);
  const known = all.filter((one) => one !== null);
  return {
    node: known.length === all.length ? known.reduce((sum, one) => sum + one, 0) : null,
    postgres: server.cpuSeconds(),
  };
}

/** What was taken in between, per 1,000 of so many fires. */
export function perThousand(after: CpuTime, before: CpuTime, fires: number): CpuTime {
  const each = (end: number | null, start: number | null) =>
    end === null || start === null ? null : ((end - start) * 1000) / fires;
  return { node: each(after.node, before.node), postgres: each(after.postgres, before.postgres) };
}

/** Seconds per 1,000 fires, told per fire. */
export function microseconds(perThousandFires: number | null): string {
  return perThousandFires === null ? '?' : (perThousandFires * 1000).toFixed(0);
}

export function together({ node, postgres }: CpuTime): number | null {
  return node === null || postgres === null ? null : node + postgres;
}
