import { setTimeout as sleep } from 'node:timers/promises';
import type { Contestant } from './contestant.ts';
import { cpuSecondsOfTree } from './support/cpu.ts';
import type { BenchDatabase, Server } from './support/postgres.ts';
import type { Arrivals, Receiver } from './support/receiver.ts';
import { percentile } from './support/statistics.ts';

export interface Stage {
  server: Server;
  database: BenchDatabase;
  receiver: Receiver;
}

export interface Measured {
  /** From the due moment to the last delivery; without deliveries, to the last commit. */
  seconds: number;
  firesPerSecond: number;
  /** From the due moment to the arrival at the receiver. */
  latenessMs: { p50: number; p99: number } | null;
  /** Per 1,000 fires, until the last one is settled. */
  cpuSeconds: { node: number | null; postgres: number | null };
}

/** The last moments before a herd belong to nobody: what was armed must be in place, and the database calm. */
const QUIET_MS = 300;
const DUPLICATES_WAIT_MS = 500;
const HERD_LIMIT_MS = 120_000;

/** Makes `count` fires due in one moment, waits for all of them, and checks that each came exactly once. */
export async function runHerd(contestant: Contestant, stage: Stage, count: number): Promise<Measured> {
  const { server, database, receiver } = stage;
  const dueAt = nextSecond(Date.now() + contestant.leadSeconds(count) * 1000);
  await contestant.arm(count, dueAt);
  await database.calm();
  const left = dueAt - QUIET_MS - Date.now();
  if (left < 0) throw new Error(`${contestant.name}: armed ${-left} ms too late`);
  await sleep(left);
  const node = cpuSecondsOfTree(contestant.pid);
  const postgres = server.cpuSeconds();
  const arrived = contestant.posts ? receiver.expect(count) : Promise.resolve();
  const [settledAt] = await within(
    Promise.all([contestant.settled(count, dueAt), arrived]),
    `${contestant.name} did not finish the herd`,
  );
  const cpuSeconds = {
    node: perThousand(cpuSecondsOfTree(contestant.pid), node, count),
    postgres: perThousand(server.cpuSeconds(), postgres, count),
  };
  await sleep(DUPLICATES_WAIT_MS);
  const arrivals = contestant.posts ? await receiver.arrivals() : null;
  const history = await contestant.history(count, dueAt);
  if (arrivals !== null) checkExactlyOnce(contestant.name, arrivals, history);
  const seconds = ((arrivals?.at.at(-1) ?? settledAt) - dueAt) / 1000;
  return {
    seconds,
    firesPerSecond: count / seconds,
    latenessMs: arrivals && latenessOf(arrivals, dueAt),
    cpuSeconds,
  };
}

function nextSecond(at: number): number {
  return Math.ceil(at / 1000) * 1000;
}

function perThousand(after: number | null, before: number | null, count: number): number | null {
  return after === null || before === null ? null : ((after - before) * 1000) / count;
}

function latenessOf({ at }: Arrivals, dueAt: number): { p50: number; p99: number } {
  const lateness = at.map((arrivedAt) => arrivedAt - dueAt);
  return { p50: percentile(lateness, 0.5), p99: percentile(lateness, 0.99) };
}

function checkExactlyOnce(name: string, { runIds }: Arrivals, history: ReadonlySet<string>): void {
  const distinct = new Set(runIds);
  if (distinct.size !== runIds.length) {
    throw new Error(`${name}: ${runIds.length - distinct.size} runs arrived more than once`);
  }
  if (distinct.size !== history.size || runIds.some((id) => !history.has(id))) {
    throw new Error(`${name}: what arrived is not what history says`);
  }
}

async function within<T>(work: Promise<T>, otherwise: string): Promise<T> {
  const timer = new AbortController();
  try {
    return await Promise.race([
      work,
      sleep(HERD_LIMIT_MS, undefined, { signal: timer.signal }).then(() => {
        throw new Error(`${otherwise} within ${HERD_LIMIT_MS / 1000} s`);
      }),
    ]);
  } finally {
    timer.abort();
  }
}
