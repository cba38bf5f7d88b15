import { setTimeout as sleep } from 'node:timers/promises';
import { until } from '../../support/until.ts';
import type { Disturb } from '../campaign.ts';
import type { FaultDeps } from '../faults/faults.ts';
import type { Random } from '../random.ts';
import type { PatroniCluster } from './patroni-cluster.ts';
import type { PatroniNode } from './patroni-node.ts';

/** What moves the primary. */
export const KINDS = ['kill', 'freeze', 'switchover', 'laggingKill'] as const;
export type Kind = (typeof KINDS)[number];

/** One change of the primary; moments in milliseconds since 1970. */
export interface Failover {
  kind: Kind;
  from: string;
  to: string;
  at: number;
  /** Another node said that it is the primary. */
  promotedAt: number;
  /** Fires arrived again, after that. */
  firingAt: number;
  /** All nodes followed the new primary. */
  wholeAt: number;
}

interface Plan {
  cluster: PatroniCluster;
  kinds: readonly Kind[];
  minutes: number;
  /** For how long standbys get nothing before a `laggingKill`. */
  lagMs: number;
  /** Gets each as it is over. */
  log: Failover[];
  /** What is asked of the daemons after the last one. */
  atEnd: (deps: FaultDeps) => Promise<void>;
}

const LIMIT_MS = 180_000;
/** Between two: long enough for the daemons to be calm again. */
const CALM_MS = [6_000, 10_000] as const;
/** The old primary stays away for so long after the new one works. */
const AWAY_MS = [2_000, 6_000] as const;

/** Moves the primary again and again, in each of the ways in turn, and at least once in each. */
export function failOver({ cluster, kinds, minutes, lagMs, log, atEnd }: Plan): Disturb {
  return async (deps, disturbances) => {
    const until = Date.now() + minutes * 60_000;
    for (let turn = 0; Date.now() < until || turn < kinds.length; turn += 1) {
      const kind = kinds[turn % kinds.length] ?? 'kill';
      const old = await primaryOf(cluster);
      await sleep(deps.random.between(...CALM_MS));
      // What thaws, comes back and is wound back is still part of it.
      const disturbance = { kind: `failover: ${kind}`, instance: '*', from: Date.now(), to: Infinity };
      disturbances.push(disturbance);
      const failover = await move(kind, { cluster, old, deps, lagMs });
      disturbance.to = failover.wholeAt;
      log.push(failover);
      deps.say(textOf(failover));
    }
    await sleep(CALM_MS[0]);
    await atEnd(deps);
  };
}

async function primaryOf(cluster: PatroniCluster): Promise<PatroniNode> {
  return until(() => cluster.primary(), LIMIT_MS);
}

interface Move {
  cluster: PatroniCluster;
  old: PatroniNode;
  deps: FaultDeps;
  lagMs: number;
}

async function move(kind: Kind, { cluster, old, deps, lagMs }: Move): Promise<Failover> {
  const { random, receiver } = deps;
  if (kind === 'laggingKill') {
    old.freezeSenders();
    await sleep(lagMs);
  }
  const at = Date.now();
  await WAYS[kind].leave(old, cluster);
  const next = await cluster.primaryBeside(old);
  const promotedAt = Date.now();
  await fires(receiver);
  const firingAt = Date.now();
  await WAYS[kind].back(old, random);
  await cluster.whole();
  return { kind, from: old.name, to: next.name, at, promotedAt, firingAt, wholeAt: Date.now() };
}

interface Way {
  leave(old: PatroniNode, cluster: PatroniCluster): Promise<void>;
  back(old: PatroniNode, random: Random): Promise<void>;
}

const KILL: Way = {
  leave: (old) => old.kill(),
  back: async (old, random) => {
    await sleep(random.between(...AWAY_MS));
    await old.start();
  },
};

const WAYS: Record<Kind, Way> = {
  kill: KILL,
  laggingKill: KILL,
  freeze: {
    leave: (old) => {
      old.freeze();
      return Promise.resolve();
    },
    back: async (old, random) => {
      await sleep(random.between(...AWAY_MS));
      old.thaw();
    },
  },
  switchover: { leave: (_, cluster) => cluster.switchOver(), back: () => Promise.resolve() },
};

/** Resolves when something has arrived since it was asked. */
async function fires(receiver: FaultDeps['receiver']): Promise<void> {
  const { arrivals } = await receiver.status();
  await until(async () => (await receiver.status()).arrivals > arrivals || null, LIMIT_MS);
}

function textOf({ kind, from, to, at, promotedAt, firingAt, wholeAt }: Failover): string {
  const after = (moment: number) => `${((moment - at) / 1000).toFixed(1)} s`;
  return `${kind} of ${from}: ${to} is the primary after ${after(promotedAt)}, fires after ${after(firingAt)}, all well after ${after(wholeAt)}`;
}
