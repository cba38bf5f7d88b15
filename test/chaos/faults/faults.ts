import { setTimeout as sleep } from 'node:timers/promises';
import type { FaultCluster } from '../cluster/cluster.ts';
import type { ProxyMode, TargetProxy } from '../cluster/fault-proxy.ts';
import { type Instance, BLOCK_MS, CLOCKS_CAN_BE_WRONG } from '../cluster/instance.ts';
import type { Receiver } from '../cluster/receiver.ts';
import type { Random } from '../random.ts';
import type { GatewayMode, Worker } from '../cluster/workers.ts';
import type { Disturb } from '../campaign.ts';
import type { Disturbance } from '../checker/history.ts';

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
const INSTANCE_FAULTS = {
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
const WORKER_FAULTS = {
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
const DATABASE_FAULTS = {
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
const targetCut = async ({ target, random }: FaultDeps): Promise<void> => {
  target.hold(true);
  await sleep(random.between(1_000, 7_000));
  target.hold(false);
};

/** What befalls all instances at once. */
const killAll = async ({ instances, random, ttlMs }: FaultDeps): Promise<void> => {
  for (const instance of instances) instance.signal('SIGKILL');
  await Promise.all(instances.map((instance) => instance.gone()));
  await sleep(random.between(0, 1.5 * ttlMs));
  for (const instance of instances) instance.start();
  await Promise.all(instances.map((instance) => instance.becomesReady(READY_LIMIT_MS)));
};

type FaultName =
  keyof typeof INSTANCE_FAULTS | keyof typeof WORKER_FAULTS | keyof typeof DATABASE_FAULTS | 'killAll' | 'targetCut';

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

export interface NemesisOptions {
  /** How often each is drawn, against the others. */
  weights: Partial<Record<FaultName, number>>;
  /** Between the beginnings of two faults, in the middle. */
  everyMs: number;
  seconds: number;
  /** On a slow machine it goes on, for twice as long at most, until there were so many. */
  least?: number;
}

/** All of them, at the rates of a long campaign. */
export const FULL_WEIGHTS: Record<FaultName, number> = {
  kill: 20,
  killAll: 1,
  terminate: 3,
  freeze: 6,
  shortFreeze: 3,
  block: 2,
  cut: 5,
  refuse: 2,
  hang: 3,
  mute: 3,
  loseAnswers: 5,
  delay: 1,
  wrongClock: 3,
  restart: 5,
  outage: 1,
  terminateBackends: 3,
  readOnly: 1,
  targetCut: 2,
  killWorker: 8,
  stopWorker: 2,
  freezeWorker: 3,
  cutWorker: 4,
  loseWorker: 5,
};

/**
 * Draws faults until its time is up, then heals everything. Faults of different instances and of the database overlap;
 * one instance, and the database, have one at a time.
 */
export function randomly(options: NemesisOptions): Disturb {
  return (deps, log) => runNemesis(options, deps, log);
}

/** Does one thing and logs when it began and ended. */
export async function recorded(
  { say }: FaultDeps,
  log: Disturbance[],
  { kind, instance }: Pick<Disturbance, 'kind' | 'instance'>,
  work: () => Promise<void>,
): Promise<void> {
  const disturbance: Disturbance = { kind, instance, from: Date.now(), to: Infinity };
  log.push(disturbance);
  say(`${kind} ${instance}`);
  await work();
  disturbance.to = Date.now();
}

async function runNemesis(options: NemesisOptions, deps: FaultDeps, log: Disturbance[]): Promise<void> {
  const { random, instances } = deps;
  const began = Date.now();
  const lasts = () => 1000 * options.seconds * (log.length < (options.least ?? 0) ? 2 : 1);
  const underWay = new Set<Promise<void>>();
  let databaseIsBusy = false;
  let targetIsBusy = false;

  async function unleash(name: FaultName): Promise<void> {
    if (name in DATABASE_FAULTS) {
      if (databaseIsBusy) return;
      databaseIsBusy = true;
      const fault = DATABASE_FAULTS[name as keyof typeof DATABASE_FAULTS];
      await recorded(deps, log, { kind: name, instance: '*' }, () => fault(deps));
      databaseIsBusy = false;
      return;
    }
    if (name === 'targetCut') {
      if (targetIsBusy) return;
      targetIsBusy = true;
      await recorded(deps, log, { kind: name, instance: '*' }, () => targetCut(deps));
      targetIsBusy = false;
      return;
    }
    if (name in WORKER_FAULTS) {
      const worker = random.pick(deps.workers);
      if (worker.busy !== null) return;
      worker.busy = name;
      const fault = WORKER_FAULTS[name as keyof typeof WORKER_FAULTS];
      await recorded(deps, log, { kind: name, instance: worker.name }, () => fault(deps, worker));
      worker.busy = null;
      return;
    }
    const chosen = name === 'killAll' ? instances : [random.pick(instances)];
    if (chosen.some(({ busy }) => busy !== null)) return;
    for (const instance of chosen) instance.busy = name;
    const [only] = chosen;
    if (name === 'killAll') await recorded(deps, log, { kind: name, instance: '*' }, () => killAll(deps));
    else if (only) await recorded(deps, log, { kind: name, instance: only.name }, () => faultOf(name)(deps, only));
    for (const instance of chosen) instance.busy = null;
  }

  while (Date.now() < began + lasts()) {
    startEnded(deps, log);
    const name = draw(options, deps);
    const one: Promise<void> = unleash(name).finally(() => underWay.delete(one));
    underWay.add(one);
    await sleep(options.everyMs * random.between(0.3, 1.7));
  }
  await Promise.all(underWay);
  startEnded(deps, log);
  await healAll(deps);
}

/** Starts an instance again that ended by itself, as a supervisor would. */
function startEnded({ instances, workers, say }: FaultDeps, log: Disturbance[]): void {
  for (const instance of [...instances, ...workers]) {
    if (instance.busy !== null || instance.running()) continue;
    say(`ended ${instance.name}`);
    log.push({ kind: 'ended', instance: instance.name, from: instance.endedAt(), to: Date.now() });
    instance.start();
  }
}

function draw({ weights }: NemesisOptions, { random, workers }: FaultDeps): FaultName {
  const possible = (Object.entries(weights) as [FaultName, number][]).filter(
    ([name]) => (name !== 'wrongClock' || CLOCKS_CAN_BE_WRONG) && (!(name in WORKER_FAULTS) || workers.length > 0),
  );
  let drawn = random.next() * possible.reduce((sum, [, weight]) => sum + weight, 0);
  for (const [name, weight] of possible) {
    drawn -= weight;
    if (drawn < 0) return name;
  }
  throw new Error(
    `none of these faults can be made here (wrongClock needs libfaketime): ${Object.keys(weights).join()}`,
  );
}

function faultOf(name: FaultName): (deps: FaultDeps, instance: Instance) => Promise<void> {
  return INSTANCE_FAULTS[name as keyof typeof INSTANCE_FAULTS];
}
