import type { Contestant } from './contestant.ts';
import { cpuSecondsOfTree } from './support/measures/cpu.ts';
import type { Server } from './support/processes/postgres.ts';

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
