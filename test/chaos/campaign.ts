import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { sendGood } from '../support/calls.ts';
import { type Verdict, check } from './checker/checker.ts';
import { type FaultCluster, startFaultCluster } from './cluster/cluster.ts';
import { observeCommands } from './cluster/command-observer.ts';
import { FOLLOWER_ID, POISON_ID, dumpDatabase } from './cluster/dump.ts';
import { startFaultProxy } from './cluster/fault-proxy.ts';
import { type FaultDeps, healAll } from './faults/faults.ts';
import type { Definition, Disturbance, History, InstanceCheck } from './checker/history.ts';
import { type Instance, createInstance } from './cluster/instance.ts';
import { CANARY, type Load, createLoad } from './load/load.ts';
import { type Features, NOTIFIER } from './load/load-definitions.ts';
import { identitiesOf, statsOf, ticksOf } from './cluster/observe.ts';
import { createRandom } from './random.ts';
import { FAULTLESS, type Rates, type Receiver, startReceiver } from './cluster/receiver.ts';
import { startPulse } from './cluster/pulse.ts';
import { SHORT, type Times, settingsOf, variablesOf } from './times.ts';
import { type TargetProxy, startTargetProxy } from './cluster/target-proxy.ts';
import { type Worker, createWorker } from './cluster/workers.ts';

export interface CampaignOptions {
  seed: number;
  schedules: number;
  instances: number;
  /** `firelock work`, which run commands; unless given, none. */
  workers?: number;
  editEveryMs: number;
  /** Wait between two schedules fired by hand; Infinity: none are. */
  fireEveryMs: number;
  /** What is done to it meanwhile, and how long that takes. */
  disturb: Disturb;
  rates: Rates;
  /** Whose src/ is run. */
  root: string;
  /** How long the last open runs are waited for while none of them comes any further. */
  drainSeconds: number;
  /** The program of each instance, where it is not the daemon's own, and what its environment has in addition. */
  program?: string;
  variables?: Record<string, string>;
  /** Changes the schema behind the daemon's back, once the migrations are through. */
  sql?: string;
  /** The PostgreSQL, where it is not one server of the campaign's own; it is stopped at the end. */
  cluster?: FaultCluster;
  /** The times of the daemons, where they are not the short ones. */
  times?: Times;
  /** The schedules, where they are not of every kind; by their number. */
  definitionOf?: (index: number) => Definition;
  /** What is tried after all that is judged, with every schedule paused. */
  afterwards?: (deps: FaultDeps) => Promise<void>;
  say: (line: string) => void;
}

export interface CampaignResult {
  history: History;
  verdict: Verdict;
  features: Features;
  /** Ids that each instance registered under, oldest first. */
  identities: Map<string, string[]>;
  /** Logs of receiver and instances, and the history that was judged; removed where nothing was found. */
  directory: string;
}

/** Logs what it does, and puts all of it right before it resolves. */
export type Disturb = (deps: FaultDeps, log: Disturbance[]) => Promise<void>;

/** A row that no instance can plan, due at once, and no edit of a caller's: it must not hold up the others. */
const POISON = `INSERT INTO schedules (uid, id, version, enabled, timing, zoned, overlap, lane, priority, next_occurrence_at,
    next_fire_at, created_at, updated_at)
  SELECT gen_random_uuid(), '${POISON_ID}', 1, true, '{"cron":"no cron"}', false, 'allow', lane, priority, next_occurrence_at, next_fire_at,
    created_at, updated_at FROM schedules WHERE id = '${CANARY}'`;
const WARM_UP_MS = 3_000;
/** What does not come about in this time, with everything healed, hangs. */
const HUNG_AFTER_MS = 120_000;

/** Everything that a campaign consists of, running. */
interface Stage {
  options: CampaignOptions;
  cluster: FaultCluster;
  receiver: Receiver;
  target: TargetProxy;
  instances: Instance[];
  workers: Worker[];
  /** Of the commands. */
  journal: string;
  load: Load;
}

/** One campaign from an empty directory to a verdict; nothing of it is left running. */
export async function runCampaign(options: CampaignOptions): Promise<CampaignResult> {
  const directory = await mkdtemp(join(tmpdir(), 'firelock-chaos-'));
  const closing: (() => Promise<unknown>)[] = [];
  try {
    const stage = await setUp(options, directory, closing);
    const pulse = startPulse(() => stage.receiver.status());
    closing.push(() => pulse.stop());
    const features = await begin(stage);
    const disturbances: Disturbance[] = [];
    await disturb(stage, disturbances);
    const { healedAt, checks } = await heal(stage);
    await quiet(stage);
    const stats = await statsOf(stage.instances);
    const dump = await dumpDatabase(stage.cluster.url);
    const commands = features.commands ? await commandsOf(stage, disturbances) : null;
    await options.afterwards?.(faultDepsOf(stage));
    for (const one of [...stage.workers, ...stage.instances]) one.signal('SIGTERM');
    await Promise.all([...stage.workers, ...stage.instances].map((one) => one.gone()));
    await pulse.stop();
    const { arrivals, lookups, notices } = await stage.receiver.end();
    const { edits, fires, limits } = stage.load;
    const { beats } = pulse;
    const seen = { arrivals, lookups, notices, notifier: features.notifiers ? NOTIFIER : null };
    const observed = { edits, limits, fires, ...seen, disturbances, commands, beats, dump, stats };
    const settings = settingsOf(options.times ?? SHORT);
    const history = { settings, healedAt, ...observed, instances: checks };
    const verdict = check(history);
    const identities = await identitiesOf(stage.instances, directory);
    if (verdict.ok) await rm(directory, { recursive: true, force: true });
    else await writeFile(join(directory, 'history.json'), JSON.stringify(history));
    return { history, verdict, features, identities, directory };
  } finally {
    for (const close of closing.reverse()) await close().catch(() => undefined);
  }
}

async function setUp(
  options: CampaignOptions,
  directory: string,
  closing: (() => Promise<unknown>)[],
): Promise<Stage> {
  const cluster = options.cluster ?? (await startFaultCluster());
  closing.push(() => cluster.stop());
  const receiver = await startReceiver({
    seed: options.seed,
    rates: options.rates,
    stallMs: 5_000,
    logFile: join(directory, 'receiver.ndjson'),
    canaryId: CANARY,
  });
  closing.push(() => receiver.end());
  const target = await startTargetProxy(receiver.port);
  closing.push(() => target.close());
  const instances: Instance[] = [];
  for (let number = 1; number <= options.instances; number += 1) {
    const proxy = await startFaultProxy(cluster.url);
    closing.push(() => proxy.close());
    const { root, program } = options;
    const instance = await createInstance({
      number,
      root,
      ...(program === undefined ? {} : { program }),
      proxy,
      receiverPort: target.port,
      directory,
      variables: { ...variablesOf(options.times ?? SHORT), ...options.variables },
    });
    instances.push(instance);
    closing.push(async () => {
      instance.signal('SIGKILL');
      await instance.gone();
    });
  }
  const workers: Worker[] = [];
  const urls = instances.map(({ url }) => url);
  for (let number = 1; number <= (options.workers ?? 0); number += 1) {
    const worker = await createWorker({ name: `w${number}`, root: options.root, urls, directory });
    workers.push(worker);
    closing.push(() => worker.close());
  }
  const journal = join(directory, 'commands');
  const random = createRandom(options.seed, 'load');
  const { schedules, editEveryMs, fireEveryMs, definitionOf } = options;
  const load = createLoad({
    schedules,
    editEveryMs,
    fireEveryMs,
    ...(definitionOf === undefined ? {} : { definitionOf }),
    receiverPort: target.port,
    journal: workers.length === 0 ? null : journal,
    random,
    instances,
  });
  return { options, cluster, receiver, target, instances, workers, journal, load };
}

async function begin({ options, cluster, instances, workers, load }: Stage): Promise<Features> {
  for (const instance of instances) instance.start();
  const ready = await Promise.all(instances.map((instance) => instance.becomesReady(HUNG_AFTER_MS)));
  if (ready.includes(false)) throw new Error('the instances did not become ready');
  if (options.sql !== undefined && (await cluster.admin(options.sql)) === undefined) {
    throw new Error(`refused: ${options.sql}`);
  }
  await createFollower(instances);
  const features = await load.features();
  await load.create(features);
  if (!features.commands) workers.splice(0);
  for (const worker of workers) worker.start();
  if ((await cluster.admin(POISON)) === undefined) throw new Error('the poisoned row could not be made');
  options.say(`${options.schedules} schedules at ${instances.length} instances; ${JSON.stringify(features)}`);
  await sleep(WARM_UP_MS);
  return features;
}

/** Before all others, so that it follows every end there is. */
async function createFollower([first]: readonly Instance[]): Promise<void> {
  const on = ['succeeded', 'failed', 'unknown', 'abandoned', 'skipped', 'cancelled'];
  const follower = { after: { scheduleId: '*', on }, target: { type: 'pull', queue: FOLLOWER_ID } };
  await sendGood(`${first?.url ?? ''}/api/v1/schedules/${FOLLOWER_ID}`, 'PUT', follower);
}

async function disturb({ options, load, ...stage }: Stage, disturbances: Disturbance[]): Promise<void> {
  const editing = options.editEveryMs === Infinity ? undefined : load.startEditing();
  const firing = options.fireEveryMs === Infinity ? undefined : load.startFiring();
  await options.disturb(faultDepsOf({ options, load, ...stage }), disturbances);
  await firing?.stop();
  await editing?.stop();
}

/** What befell workers is no disturbance of the instances. */
async function commandsOf({ workers, journal, instances }: Stage, disturbances: Disturbance[]) {
  const names = new Set(workers.map(({ name }) => name));
  const commands = await observeCommands(workers, journal, instances[0]?.url ?? '');
  const isOfWorker = ({ instance }: Disturbance) => names.has(instance);
  const faults = disturbances.filter(isOfWorker);
  disturbances.splice(0, Infinity, ...disturbances.filter((one) => !isOfWorker(one) || one.kind === 'ended'));
  return { ...commands, faults };
}

function faultDepsOf({ options, cluster, receiver, target, instances, workers }: Stage): FaultDeps {
  const random = createRandom(options.seed, 'nemesis');
  const { ttlSeconds } = options.times ?? SHORT;
  const { say } = options;
  return { cluster, receiver, target, instances, workers, random, ttlMs: ttlSeconds * 1000, say };
}

/** Afterwards every instance should work; whether it does is part of what is checked. */
async function heal(stage: Stage): Promise<{ healedAt: number; checks: InstanceCheck[] }> {
  const { options, receiver, instances } = stage;
  await healAll(faultDepsOf(stage));
  receiver.setRates(FAULTLESS);
  const ready = await Promise.all(instances.map((instance) => instance.becomesReady(HUNG_AFTER_MS)));
  const healedAt = Date.now();
  options.say('healed');
  const limit = healedAt + HUNG_AFTER_MS;
  const ticking = await Promise.all(instances.map((instance) => ticksBefore(instance, limit)));
  while (Date.now() < limit && (await receiver.status()).lastCanaryAt <= healedAt) await sleep(200);
  const checks = instances.map(({ name }, index) => ({
    name,
    ready: ready[index] ?? false,
    ticking: ticking[index] ?? false,
  }));
  return { healedAt, checks };
}

/** Whether it ticks once more. */
async function ticksBefore(instance: Instance, limit: number): Promise<boolean> {
  const before = await ticksOf(instance);
  while (Date.now() < limit) {
    const after = await ticksOf(instance);
    if (after > before || (Number.isNaN(before) && after > 0)) return true;
    await sleep(200);
  }
  return false;
}

/**
 * Pauses every schedule and waits until nothing is open and the dead are declared; what then still is, is stuck. Daemons that are at
 * fault may never come to that: it ends after some time, and the checker says what is left.
 */
async function quiet({ options, cluster, load }: Stage): Promise<void> {
  const one = async (statement: string) => Number((await cluster.admin(statement))?.[0]?.['count']);
  const limit = Date.now() + 4 * options.drainSeconds * 1000;
  while (Date.now() < limit) {
    const enabled = await cluster.admin(
      `SELECT id FROM schedules WHERE enabled AND id NOT IN ('${POISON_ID}', '${FOLLOWER_ID}')`,
    );
    if (enabled?.length === 0) break;
    if (enabled)
      await load.pauseAll(
        enabled.map(({ id }) => String(id)),
        limit,
      );
  }
  let [last, since] = ['', Date.now()];
  const silent = `SELECT count(*) FROM instances WHERE died_at IS NULL
    AND heartbeat_at < clock_timestamp() - interval '${(options.times ?? SHORT).ttlSeconds} s'`;
  while (Date.now() < Math.min(limit, since + options.drainSeconds * 1000)) {
    const open = await one(`SELECT count(*) FROM runs WHERE schedule_id <> '${FOLLOWER_ID}'`);
    const effects = await one('SELECT count(*) FROM effects');
    const unheard = await one(silent);
    if (open === 0 && effects === 0 && unheard === 0) break;
    const now = `${open} ${effects} ${unheard}`;
    if (last !== now) [last, since] = [now, Date.now()];
    await sleep(500);
  }
  options.say('drained');
}
