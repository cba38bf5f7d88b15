import { setTimeout as sleep } from 'node:timers/promises';
import { nextSecond } from '../herd.ts';
import { sleepUntil } from '../support/measures/vitals.ts';
import type { Daemon } from '../support/processes/daemon.ts';
import { putSchedules } from '../support/schedules.ts';
import { type Cell, openCell, startInstance, startInstances } from './cell.ts';
import {
  type Running,
  type SteadyFires,
  countedFrom,
  fireOnce,
  fireSteadily,
  isDisturbed,
  othersText,
  TRIES,
} from './steady-fires.ts';
import type { Plan } from './sustained.ts';

/** What comes after the herd and the kill must be over before the next round. */
const RECOVERY_LIMIT_MS = 120_000;
const POLL_MS = 500;
/** Before the first herd was seen; afterwards twice what it took. */
const MS_PER_SCHEDULE = 3;

/** A cell's fires while the other cell only fires steadily too, and while it has a herd and loses its instance. */
export interface Disturbed {
  quiet: SteadyFires;
  beside: SteadyFires;
  /** Of the other cell's herd: each must arrive, after the restart at the latest. */
  herdMissing: number;
}

interface DisturbedPlan extends Plan {
  /** Fires a second of each cell. */
  steady: number;
}

interface Victim {
  cell: Cell;
  daemon: Daemon;
  msPerSchedule: number;
}

export async function measureDisturbed(plan: DisturbedPlan): Promise<Disturbed[]> {
  const [first, second] = plan.cores;
  if (first === undefined || second === undefined) throw new Error('two cores are needed');
  const cell = await openCell('cell A', [first], plan);
  try {
    const other = await openCell('cell B', [second], plan);
    try {
      return await measureBeside(cell, other, plan);
    } finally {
      await other.close();
    }
  } finally {
    await cell.close();
  }
}

async function measureBeside(cell: Cell, other: Cell, plan: DisturbedPlan): Promise<Disturbed[]> {
  const victim = {
    cell: other,
    daemon: await startInstance(other, plan.main),
    msPerSchedule: MS_PER_SCHEDULE,
  };
  const contestant = await startInstances(cell, plan.main, 1);
  try {
    await putSchedules(victim.daemon.url, steadyOf(plan.steady, other));
    const rounds: Disturbed[] = [];
    // A round in which others had a part of the cores does not count, unless it is always so.
    for (let number = 1; rounds.length < plan.rounds; number += 1) {
      const one = await oneRound({ cell, contestant }, victim, plan, number);
      const counts = number >= TRIES * plan.rounds || !isDisturbed([one.beside]);
      if (counts) rounds.push(one);
      plan.say(`${counts ? '' : 'does not count: '}${lineOf(one)}`);
    }
    return rounds;
  } finally {
    await Promise.all([contestant.stop(), victim.daemon.stop()]);
  }
}

function lineOf({ quiet, beside, herdMissing }: Disturbed): string {
  const text = (one: SteadyFires) =>
    `p50 ${Math.round(one.latenessMs.p50)} ms, p99 ${Math.round(one.latenessMs.p99)} ms (others ${othersText([one])})`;
  return `cell A: ${text(quiet)}; beside a herd and a kill ${text(beside)}; ${herdMissing} of B's herd missing`;
}

async function oneRound(witness: Running, victim: Victim, plan: DisturbedPlan, round: number): Promise<Disturbed> {
  const { steady: count, seconds, herd } = plan;
  const [quiet] = await fireSteadily([witness], { ...plan, count });
  const from = nextSecond(Date.now() + 5_000 + herd * victim.msPerSchedule);
  const dueAt = countedFrom(from) + nextSecond(seconds * 250);
  const armedAt = performance.now();
  await putSchedules(victim.daemon.url, herdOf(herd, round, dueAt, victim.cell));
  victim.msPerSchedule = (2 * (performance.now() - armedAt)) / herd;
  const killAt = countedFrom(from) + seconds * 500;
  const [[beside]] = await Promise.all([
    fireOnce([witness], { count, seconds }, from),
    killAndRestart(victim, killAt, plan.main),
  ]);
  if (quiet === undefined || beside === undefined) throw new Error('nothing was measured');
  return { quiet, beside, herdMissing: await missingOfHerd(victim.cell, herd, dueAt) };
}

async function killAndRestart(victim: Victim, at: number, main: string): Promise<void> {
  await sleepUntil(at);
  await victim.daemon.end('SIGKILL');
  victim.daemon = await startInstance(victim.cell, main);
}

async function missingOfHerd({ receiver }: Cell, herd: number, dueAt: number): Promise<number> {
  const until = Date.now() + RECOVERY_LIMIT_MS;
  for (;;) {
    const { sources, scheduledFor } = await receiver.arrivals();
    const arrived = sources.filter(
      (source, index) => source.includes('/herd-') && Date.parse(scheduledFor[index] ?? '') === dueAt,
    );
    const missing = herd - new Set(arrived).size;
    if (missing === 0 || Date.now() > until) return missing;
    await sleep(POLL_MS);
  }
}

function steadyOf(count: number, { receiver }: Cell) {
  return Array.from({ length: count }, (_, index) => ({
    id: `steady-${index}`,
    cron: '* * * * * *',
    target: { type: 'http', url: receiver.url },
  }));
}

function herdOf(count: number, round: number, dueAt: number, { receiver }: Cell) {
  return Array.from({ length: count }, (_, index) => ({
    id: `herd-${round}-${index}`,
    at: new Date(dueAt).toISOString(),
    target: { type: 'http', url: receiver.url },
  }));
}
