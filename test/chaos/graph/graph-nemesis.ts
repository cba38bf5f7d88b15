import { setTimeout as sleep } from 'node:timers/promises';
import type { WorkerLifetime } from './graph-history.ts';
import type { Instance } from '../cluster/instance.ts';
import type { Random } from '../random.ts';

/** Kills instances, starts them again, and keeps book of which process lived when. */
export interface GraphNemesis {
  readonly lives: (WorkerLifetime & { pid: number })[];
  readonly kills: () => number;
  /** What ended by itself. */
  readonly endings: string[];
  start(instance: Instance): void;
  /** Starts to kill one after the other. */
  unleash(): void;
  /** Resolves when all that runs is alive and left alone. */
  calm(): Promise<void>;
}

interface GraphNemesisDeps {
  instances: readonly Instance[];
  random: Random;
  everyMs: number;
  say: (line: string) => void;
}

/** A longer timer would fire at once. */
const MAX_SLEEP_MS = 2 ** 31 - 1;
/** What is not ready by then hangs; the campaign tells of it in the end. */
const READY_LIMIT_MS = 60_000;

export function createGraphNemesis({ instances, random, everyMs, say }: GraphNemesisDeps): GraphNemesis {
  const lives: (WorkerLifetime & { pid: number })[] = [];
  const endings: string[] = [];
  const counts = new Map<string, number>();
  const underWay = new Set<Promise<void>>();
  const calmed = new AbortController();
  let kills = 0;
  /** How long the one that took longest was away until it worked again. */
  let longestStartMs = 0;
  let raging: Promise<void> | undefined;

  const lifeOf = (instance: Instance) =>
    lives.find(({ sender }) => sender === `${instance.name}.${counts.get(instance.name) ?? 0}`);

  function start(instance: Instance): void {
    const process = (counts.get(instance.name) ?? 0) + 1;
    counts.set(instance.name, process);
    instance.start();
    const from = performance.now();
    lives.push({
      sender: `${instance.name}.${process}`,
      from,
      to: Infinity,
      replaced: false,
      pid: instance.pid(),
    });
  }

  async function kill(instance: Instance): Promise<void> {
    kills += 1;
    instance.busy = 'kill';
    say(`kill ${instance.name}`);
    const life = lifeOf(instance);
    if (life) life.to = performance.now();
    instance.signal('SIGKILL');
    await instance.gone();
    // Now and then it is back before anybody missed it.
    await wait(random.chance(0.4) ? random.between(0, 300) : random.between(300, 6_000));
    start(instance);
    const from = performance.now();
    await instance.becomesReady(READY_LIMIT_MS);
    longestStartMs = Math.max(longestStartMs, performance.now() - from);
    instance.busy = null;
  }

  /** Answers whether all is to be calm, from then on at once. */
  async function wait(ms: number): Promise<boolean> {
    return await sleep(Math.min(ms, MAX_SLEEP_MS), false, { signal: calmed.signal }).catch(() => true);
  }

  async function rage(): Promise<void> {
    for (;;) {
      // Where starts take long there are fewer kills, or there would be nothing but starts.
      if (await wait(Math.max(everyMs, longestStartMs) * random.between(0.7, 1.3))) return;
      startEnded();
      const free = instances.filter(({ busy }) => busy === null);
      if (free.length > 0) {
        const one: Promise<void> = kill(random.pick(free)).finally(() => underWay.delete(one));
        underWay.add(one);
      }
    }
  }

  function startEnded(): void {
    for (const instance of instances) {
      if (instance.busy !== null || instance.running()) continue;
      endings.push(`instance ${instance.name} ended by itself`);
      start(instance);
    }
  }

  return {
    lives,
    endings,
    kills: () => kills,
    start,
    unleash: () => {
      raging = rage();
    },
    calm: async () => {
      calmed.abort();
      await raging;
      await Promise.all(underWay);
      startEnded();
    },
  };
}
