import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { sendGood } from '../support/calls.ts';
import { type Verdict, check } from './checker/checker.ts';
import { type FaultCluster, dumpDatabase, FOLLOWER_ID, POISON_ID, startFaultCluster } from './cluster/cluster.ts';
import { identitiesOf, observeCommands, startPulse, statsOf, ticksOf } from './cluster/observe.ts';
import { type TargetProxy, startTargetProxy } from './cluster/fault-proxy.ts';
import { type FaultDeps, healAll } from './faults/faults.ts';
import type { Definition, Disturbance, History, InstanceCheck } from './checker/history.ts';
import { type Instance, createInstances } from './cluster/instance.ts';
import { type Load, CANARY, createLoad } from './load/load.ts';
import { NOTIFIER } from './load/load-definitions.ts';
import { createRandom } from './random.ts';
import { type Rates, type Receiver, FAULTLESS, startReceiver } from './cluster/receiver.ts';
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
    await begin(stage);
    const disturbances: Disturbance[] = [];
    await disturb(stage, disturbances);
    const { healedAt, checks } = await heal(stage);
    await quiet(stage);
    const stats = await statsOf(stage.instances);
    const dump = await dumpDatabase(stage.cluster.url);
    const commands = stage.workers.length > 0 ? await commandsOf(stage, disturbances) : null;
    await options.afterwards?.(faultDepsOf(stage));
    for (const one of [...stage.workers, ...stage.instances]) one.signal('SIGTERM');
    await Promise.all([...stage.workers, ...stage.instances].map((one) => one.gone()));
    await pulse.stop();
    const { arrivals, lookups, notices } = await stage.receiver.end();
    const { edits, fires, limits } = stage.load;
    const { beats } = pulse;
    const seen = { arrivals, lookups, notices, notifier: NOTIFIER };
    const observed = { edits, limits, fires, ...seen, disturbances, commands, beats, dump, stats };
    const settings = settingsOf(options.times ?? SHORT);
    const history = { settings, healedAt, ...observed, instances: checks };
    const verdict = check(history);
    const identities = await identitiesOf(stage.instances, directory);
    if (verdict.ok) await rm(directory, { recursive: true, force: true });
    else await writeFile(join(directory, 'history.json'), JSON.stringify(history));
    return { history, verdict, identities, directory };
  } finally {
    for (const close of closing.reverse()) await close().catch(() => undefined);
  }
}

async function setUp(options: CampaignOptions, directory: string, closing: (() => Promise<unknown>)[]): Promise<Stage> {
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
  const { root, program } = options;
  const given = {
    ...{ root, ...(program === undefined ? {} : { program }), directory },
    ...{ databaseUrl: cluster.url, receiverPort: target.port },
    variables: { ...variablesOf(options.times ?? SHORT), ...options.variables },
  };
  const instances = await createInstances(options.instances, given, closing);
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

async function begin({ options, cluster, instances, workers, load }: Stage): Promise<void> {
  for (const instance of instances) instance.start();
  const ready = await Promise.all(instances.map((instance) => instance.becomesReady(HUNG_AFTER_MS)));
  if (ready.includes(false)) throw new Error('the instances did not become ready');
  if (options.sql !== undefined && (await cluster.admin(options.sql)) === undefined) {
    throw new Error(`refused: ${options.sql}`);
  }
  await createFollower(instances);
  await load.create();
  for (const worker of workers) worker.start();
  if ((await cluster.admin(POISON)) === undefined) throw new Error('the poisoned row could not be made');
  options.say(`${options.schedules} schedules at ${instances.length} instances`);
  await sleep(WARM_UP_MS);
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

/** How often a daemon does what it does, and how long it waits. */
interface Times {
  ttlSeconds: number;
  /**
   * With a timeout this is how long another instance waits before it believes that an attempt at most once did not arrive.
   * An instance that is frozen for longer, just before its first byte, defeats that; so no freeze here lasts as long.
   */
  lockTtlSeconds: number;
  tickMs: number;
  heartbeatSeconds: number;
  recoverySeconds: number;
}

/** A twentieth of the usual ones, as far as the configuration goes down. */
const SHORT: Times = {
  ttlSeconds: 4,
  lockTtlSeconds: 12,
  tickMs: 200,
  heartbeatSeconds: 1,
  recoverySeconds: 1,
};
/** As a daemon has them by itself. */
export const USUAL: Times = {
  ttlSeconds: 10,
  lockTtlSeconds: 120,
  tickMs: 1_000,
  heartbeatSeconds: 2,
  recoverySeconds: 5,
};

const MAX_RECOVERIES = 20;
const variablesOf = (times: Times): Record<string, string> => ({
  LOG_LEVEL: 'info',
  FIRELOCK_TICK_INTERVAL_MS: String(times.tickMs),
  FIRELOCK_HEARTBEAT_INTERVAL_SECONDS: String(times.heartbeatSeconds),
  FIRELOCK_INSTANCE_TTL_SECONDS: String(times.ttlSeconds),
  FIRELOCK_LOCK_TTL_SECONDS: String(times.lockTtlSeconds),
  FIRELOCK_RECOVERY_INTERVAL_SECONDS: String(times.recoverySeconds),
  FIRELOCK_MAX_RECOVERIES: String(MAX_RECOVERIES),
  FIRELOCK_SHUTDOWN_SECONDS: '5',
  FIRELOCK_SECRET_KEYS: `chaos:${Buffer.alloc(32, 7).toString('base64')}`,
});
const settingsOf = ({ ttlSeconds, lockTtlSeconds }: Times): History['settings'] => ({
  canaryId: CANARY,
  ttlSeconds,
  lockTtlSeconds,
  maxRecoveries: MAX_RECOVERIES,
  maxRecoveryAgeSeconds: 86_400,
});
