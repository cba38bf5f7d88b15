import { readFileSync } from 'node:fs';
import { setTimeout as sleep } from 'node:timers/promises';
import { cpuSecondsOfTree } from './cpu.ts';
import type { Server } from '../processes/postgres.ts';

/** CPU seconds since it began; null where the processes cannot be seen. */
interface CpuMeter {
  read(): { daemons: number | null; postgres: number | null };
}

export function startCpuMeter(server: Server, pids: readonly number[]): CpuMeter {
  const now = () => ({
    daemons: sum(pids.map(cpuSecondsOfTree)),
    postgres: server.cpuSeconds(),
  });
  const before = now();
  return {
    read: () => {
      const after = now();
      return {
        daemons: difference(after.daemons, before.daemons),
        postgres: difference(after.postgres, before.postgres),
      };
    },
  };
}

/** Memory of a process in MB (10^6); null where there is no /proc. */
export function residentMegabytes(pid: number): number | null {
  try {
    const found = /^VmRSS:\s+(\d+) kB$/m.exec(readFileSync(`/proc/${pid}/status`, 'utf8'));
    return found ? (Number(found[1]) * 1024) / 1e6 : null;
  } catch {
    return null;
  }
}

/** Sum and count of one of the daemon's histograms without labels. */
export async function readHistogram(daemonUrl: string, name: string): Promise<{ sum: number; count: number }> {
  const text = await (await fetch(`${daemonUrl}/metrics`)).text();
  const valueOf = (part: string) => {
    const found = new RegExp(`^${name}_${part} (\\S+)$`, 'm').exec(text);
    if (!found) throw new Error(`the daemon tells no ${name}_${part}`);
    return Number(found[1]);
  };
  return { sum: valueOf('sum'), count: valueOf('count') };
}

/** The moment of the next whole period, such as a minute, that is at least so far away. */
export function nextWhole(periodMs: number, atLeastMs: number): number {
  return Math.ceil((Date.now() + atLeastMs) / periodMs) * periodMs;
}

export async function sleepUntil(moment: number): Promise<void> {
  await sleep(Math.max(0, moment - Date.now()));
}

function sum(values: readonly (number | null)[]): number | null {
  return values.reduce((total, value) => (total === null || value === null ? null : total + value), 0);
}

function difference(after: number | null, before: number | null): number | null {
  return after === null || before === null ? null : after - before;
}
