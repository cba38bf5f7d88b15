import { setTimeout as sleep } from 'node:timers/promises';
import type { Contestant } from './contestant.ts';
import { type CpuTime, cpuTime, microseconds, perThousand, together } from './support/measures/cpu.ts';
import type { BenchDatabase, Server } from './support/processes/postgres.ts';
import type { Arrivals, Receiver } from './support/processes/receiver.ts';
import { median, medianOrNull, percentile } from './support/measures/statistics.ts';
import { residentMegabytes } from './support/measures/vitals.ts';
import { within } from '../test/support/within.ts';
import { type Round, allOf, namesOf } from './rounds.ts';
import type { Table } from './scenario.ts';

export interface Stage {
  server: Server;
  database: BenchDatabase;
  receiver: Receiver;
  /** Looks at what is measured, for as long as it is measured. */
  probe?: Probe;
}

export interface Probe {
  start(): Promise<void>;
  stop(): Promise<void>;
}

export interface Measured {
  /** From the due moment to the last delivery. */
  seconds: number;
  firesPerSecond: number;
  /** From the due moment to the arrival at the receiver. */
  latenessMs: { p50: number; p99: number };
  /** Per 1,000 fires, until the last one is settled. */
  cpuSeconds: CpuTime;
  /** What it took to arm them all. */
  armSeconds: number;
  /** Of the processes that work, after the herd; null where it cannot be seen. */
  residentMegabytes: number | null;
}

/** In the last moments before a herd nothing happens: what was armed must be in place, and the database calm. */
export const QUIET_MS = 300;
export const DUPLICATES_WAIT_MS = 500;
const HERD_LIMIT_MS = 120_000;

/** Makes `count` fires due in one moment, waits for all of them, and checks that each came exactly once. */
export async function runHerd(
  contestant: Contestant,
  stage: Stage,
  count: number,
  dueAt = dueFor(contestant, count),
): Promise<Measured> {
  const { server, database, receiver } = stage;
  const armedFrom = performance.now();
  await contestant.arm(count, dueAt);
  const armSeconds = (performance.now() - armedFrom) / 1000;
  await makeCalm(contestant, database);
  await untilQuiet(contestant.name, dueAt);
  await stage.probe?.start();
  const before = cpuTime(contestant, server);
  const arrived = receiver.expect(count);
  const [settledAt] = await within(
    HERD_LIMIT_MS,
    Promise.all([contestant.settled(count, dueAt, arrived), arrived]),
    `${contestant.name} did not finish the herd`,
  );
  const cpuSeconds = perThousand(cpuTime(contestant, server), before, count);
  const megabytes = residentMegabytesOf([contestant.pid, ...(contestant.others ?? [])]);
  await stage.probe?.stop();
  await sleep(DUPLICATES_WAIT_MS);
  const arrivals = await receiver.arrivals();
  const history = await contestant.history(count, dueAt);
  checkExactlyOnce(contestant.name, arrivals.runIds, history);
  const seconds = ((arrivals.at.at(-1) ?? settledAt) - dueAt) / 1000;
  return {
    seconds,
    firesPerSecond: count / seconds,
    latenessMs: latenessOf(arrivals, dueAt),
    cpuSeconds,
    armSeconds,
    residentMegabytes: megabytes,
  };
}

/** The next second for which all can be armed. */
export function dueFor(contestant: Contestant, count: number): number {
  return nextSecond(Date.now() + contestant.leadSeconds(count) * 1000);
}

/** The database as it is to be when the measurement begins. */
export async function makeCalm({ vacuumed }: Contestant, database: BenchDatabase): Promise<void> {
  await (vacuumed ? database.calm() : database.checkpoint());
}

export function nextSecond(at: number): number {
  return Math.ceil(at / 1000) * 1000;
}

/** Resolves shortly before `dueAt`; throws if that is over. */
export async function untilQuiet(name: string, dueAt: number): Promise<void> {
  const left = dueAt - QUIET_MS - Date.now();
  if (left < 0) throw new Error(`${name}: armed ${-left} ms too late`);
  await sleep(left);
}

export function checkExactlyOnce(name: string, runIds: readonly string[], history: ReadonlySet<string>): void {
  const distinct = new Set(runIds);
  if (distinct.size !== runIds.length) {
    throw new Error(`${name}: ${runIds.length - distinct.size} runs arrived more than once`);
  }
  if (distinct.size !== history.size || runIds.some((id) => !history.has(id))) {
    throw new Error(`${name}: what arrived is not what history says`);
  }
}

function residentMegabytesOf(pids: readonly number[]): number | null {
  const each = pids.map(residentMegabytes);
  return each.reduce((sum, one) => (sum === null || one === null ? null : sum + one), 0);
}

function latenessOf({ at }: Arrivals, dueAt: number): { p50: number; p99: number } {
  const lateness = at.map((arrivedAt) => arrivedAt - dueAt);
  return { p50: percentile(lateness, 0.5), p99: percentile(lateness, 0.99) };
}

const HEAD = [
  '',
  'fires/s',
  'due → last delivery',
  'lateness p50',
  'p99',
  'CPU µs a fire: Node',
  'PostgreSQL',
  'together',
  'memory',
];

/** The medians of each, one row each. */
export function herdTable(rounds: readonly Round<Measured>[]): Table {
  return { head: HEAD, rows: namesOf(rounds).map((name) => [name, ...cells(allOf(rounds, name))]) };
}

export function herdSummary({ firesPerSecond }: Measured): string {
  return `${Math.round(firesPerSecond).toLocaleString('en')} fires/s`;
}

export function secondsOf({ seconds }: Measured): number {
  return seconds;
}

/** The CPU of a herd per 1,000 fires, as figures to compare. */
export function cpuOf({ cpuSeconds }: Measured): number | null {
  return together(cpuSeconds);
}

export function nodeCpuOf({ cpuSeconds }: Measured): number | null {
  return cpuSeconds.node;
}

export function postgresCpuOf({ cpuSeconds }: Measured): number | null {
  return cpuSeconds.postgres;
}

function cells(all: readonly Measured[]): string[] {
  const { node, postgres } = {
    node: medianOrNull(all.map(({ cpuSeconds }) => cpuSeconds.node)),
    postgres: medianOrNull(all.map(({ cpuSeconds }) => cpuSeconds.postgres)),
  };
  const megabytes = medianOrNull(all.map(({ residentMegabytes }) => residentMegabytes));
  const lateness = (figure: 'p50' | 'p99') =>
    `${Math.round(median(all.map(({ latenessMs }) => latenessMs[figure])))} ms`;
  return [
    Math.round(median(all.map(({ firesPerSecond }) => firesPerSecond))).toLocaleString('en'),
    `${median(all.map(({ seconds }) => seconds)).toFixed(2)} s`,
    lateness('p50'),
    lateness('p99'),
    ...[node, postgres, together({ node, postgres })].map(microseconds),
    megabytes === null ? '?' : `${megabytes.toFixed(0)} MB`,
  ];
}
