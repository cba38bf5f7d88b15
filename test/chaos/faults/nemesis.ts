import { setTimeout as sleep } from 'node:timers/promises';
import {
  DATABASE_FAULTS,
  type FaultDeps,
  type FaultName,
  INSTANCE_FAULTS,
  WORKER_FAULTS,
  healAll,
  killAll,
  targetCut,
} from './faults.ts';
import type { Disturb } from '../campaign.ts';
import type { Disturbance } from '../checker/history.ts';
import { CLOCKS_CAN_BE_WRONG, type Instance } from '../cluster/instance.ts';

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
    else if (only)
      await recorded(deps, log, { kind: name, instance: only.name }, () => faultOf(name)(deps, only));
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
    ([name]) =>
      (name !== 'wrongClock' || CLOCKS_CAN_BE_WRONG) && (!(name in WORKER_FAULTS) || workers.length > 0),
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
