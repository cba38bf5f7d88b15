import { setTimeout as sleep } from 'node:timers/promises';
import type { FaultCluster } from '../cluster/cluster.ts';
import type { ProxyMode } from '../cluster/fault-proxy.ts';
import { BLOCK_MS, type Instance } from '../cluster/instance.ts';
import type { Receiver } from '../cluster/receiver.ts';
import type { Random } from '../random.ts';
import type { TargetProxy } from '../cluster/target-proxy.ts';
import type { GatewayMode } from '../cluster/worker-gateway.ts';
import type { Worker } from '../cluster/workers.ts';

export interface FaultDeps {
  cluster: FaultCluster;
  receiver: Pick<Receiver, 'status'>;
  target: TargetProxy;
  instances: readonly Instance[];
  workers: readonly Worker[];
  random: Random;
  ttlMs: number;
  say: (line: string) => void;
}

/** The limit for an instance that hangs; the report names it in the end. */
const READY_LIMIT_MS = 60_000;

/** One thing that goes wrong, from its beginning until it is put right; resolves then. */
type InstanceFault = (deps: FaultDeps, instance: Instance) => Promise<void>;
type WorkerFault = (deps: FaultDeps, worker: Worker) => Promise<void>;
type DatabaseFault = (deps: FaultDeps) => Promise<void>;

/** What befalls one instance. */
export const INSTANCE_FAULTS = {
  kill: async ({ random, ttlMs }, instance) => {
    instance.signal('SIGKILL');
    await instance.gone();
    // Now and then it is back before anybody missed it.
    await sleep(random.chance(0.4) ? random.between(0, 500) : random.between(500, 2 * ttlMs));
    instance.start();
    await instance.becomesReady(READY_LIMIT_MS);
  },
  terminate: async (_, instance) => {
    instance.signal('SIGTERM');
    await instance.gone();
    instance.start();
    await instance.becomesReady(READY_LIMIT_MS);
  },
  freeze: ({ random, ttlMs }, instance) => stopFor(instance, random.between(1.2, 2.5) * ttlMs),
  shortFreeze: ({ random, ttlMs }, instance) => stopFor(instance, random.between(0.2, 0.8) * ttlMs),
  block: async (_, instance) => {
    instance.signal('SIGUSR2');
    await sleep(BLOCK_MS);
  },
  cut: async (_, instance) => {
    instance.proxy.cut();
    await sleep(500);
  },
  refuse: (deps, instance) => mode(deps, instance, 'refuse', [1_000, 9_000]),
  hang: (deps, instance) => mode(deps, instance, 'hang', [1_000, 12_000]),
  mute: (deps, instance) => mode(deps, instance, 'mute', [500, 9_000]),
  loseAnswers: (deps, instance) => mode(deps, instance, 'lose', [100, 1_500]),
  delay: async ({ random }, instance) => {
    instance.proxy.delay(random.between(50, 400));
    await sleep(random.between(3_000, 8_000));
    instance.proxy.delay(0);
  },
  wrongClock: async ({ random }, instance) => {
    instance.signal('SIGKILL');
    await instance.gone();
    instance.skew(random.pick([3600, -3600, 90, -90, 5, -5]));
    instance.start();
    await instance.becomesReady(READY_LIMIT_MS);
    await sleep(random.between(2_000, 6_000));
    instance.skew(random.pick([-3600, 3600, -600, 600]));
    await sleep(random.between(2_000, 6_000));
  },
} satisfies Record<string, InstanceFault>;

/** What befalls one worker; its lease is 5 s. */
export const WORKER_FAULTS = {
  killWorker: ({ random }, worker) => replaced(worker, 'SIGKILL', random.between(0, 6_000)),
  stopWorker: (_, worker) => replaced(worker, 'SIGTERM', 0),
  freezeWorker: async ({ random }, worker) => {
    worker.signal('SIGSTOP');
    await sleep(random.between(500, 9_000));
    worker.signal('SIGCONT');
  },
  cutWorker: ({ random }, worker) => gatewayMode(worker, 'cut', random.between(500, 9_000)),
  loseWorker: ({ random }, worker) => gatewayMode(worker, 'lose', random.between(200, 3_000)),
} satisfies Record<string, WorkerFault>;

/** What befalls the database, and so all of them. */
export const DATABASE_FAULTS = {
  restart: ({ cluster, random }) => outage(cluster, random.between(0, 1_500)),
  outage: ({ cluster, random }) => outage(cluster, random.between(5_000, 20_000)),
  terminateBackends: async ({ cluster, random }) => {
    const share = random.pick([0.3, 1]);
    await cluster.admin(
      `SELECT pg_terminate_backend(pid) FROM pg_stat_activity
       WHERE application_name = 'firelock' AND random() < ${share}`,
    );
    await sleep(300);
  },
  readOnly: async ({ cluster, random }) => {
    await cluster.admin('ALTER SYSTEM SET default_transaction_read_only = on');
    await cluster.admin('SELECT pg_reload_conf()');
    await sleep(random.between(2_000, 9_000));
    await writable(cluster);
  },
} satisfies Record<string, DatabaseFault>;

/** What befalls the way to the receiver. */
export const targetCut = async ({ target, random }: FaultDeps): Promise<void> => {
  target.hold(true);
  await sleep(random.between(1_000, 7_000));
  target.hold(false);
};

/** What befalls all instances at once. */
export const killAll = async ({ instances, random, ttlMs }: FaultDeps): Promise<void> => {
  for (const instance of instances) instance.signal('SIGKILL');
  await Promise.all(instances.map((instance) => instance.gone()));
  await sleep(random.between(0, 1.5 * ttlMs));
  for (const instance of instances) instance.start();
  await Promise.all(instances.map((instance) => instance.becomesReady(READY_LIMIT_MS)));
};

export type FaultName =
  | keyof typeof INSTANCE_FAULTS
  | keyof typeof WORKER_FAULTS
  | keyof typeof DATABASE_FAULTS
  | 'killAll'
  | 'targetCut';

/** Whatever the faults left behind: afterwards everything runs and every way is open. */
export async function healAll({ cluster, target, instances, workers }: FaultDeps): Promise<void> {
  target.hold(false);
  await writable(cluster);
  for (const instance of instances) {
    instance.proxy.set('open');
    instance.proxy.delay(0);
    instance.signal('SIGCONT');
    if (!instance.running()) instance.start();
  }
  for (const worker of workers) {
    worker.gateway.set('open');
    worker.signal('SIGCONT');
    if (!worker.running()) worker.start();
  }
}

async function replaced(worker: Worker, signal: NodeJS.Signals, awayMs: number): Promise<void> {
  worker.signal(signal);
  await worker.gone();
  await sleep(awayMs);
  worker.start();
}

async function gatewayMode({ gateway }: Worker, wanted: GatewayMode, ms: number): Promise<void> {
  gateway.set(wanted);
  await sleep(ms);
  gateway.set('open');
}

async function stopFor(instance: Instance, ms: number): Promise<void> {
  instance.signal('SIGSTOP');
  await sleep(ms);
  instance.signal('SIGCONT');
}

async function mode(
  { random }: FaultDeps,
  { proxy }: Instance,
  wanted: ProxyMode,
  [shortest, longest]: [number, number],
): Promise<void> {
  proxy.set(wanted);
  await sleep(random.between(shortest, longest));
  proxy.set('open');
}

async function outage(cluster: FaultCluster, ms: number): Promise<void> {
  await cluster.crash();
  await sleep(ms);
  await cluster.restart();
}

async function writable(cluster: FaultCluster): Promise<void> {
  await cluster.admin('ALTER SYSTEM RESET default_transaction_read_only');
  await cluster.admin('SELECT pg_reload_conf()');
}
