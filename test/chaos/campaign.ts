import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { type Verdict, check } from './checker.ts';
import { type FaultCluster, startFaultCluster } from './cluster.ts';
import { POISON_ID, dumpDatabase } from './dump.ts';
import { startFaultProxy } from './fault-proxy.ts';
import { type FaultDeps, healAll } from './faults.ts';
import type { Disturbance, History, InstanceCheck } from './history.ts';
import { type Instance, createInstance } from './instance.ts';
import { CANARY, type Load, createLoad } from './load.ts';
import type { Features } from './load-definitions.ts';
import { identitiesOf, statsOf, ticksOf } from './observe.ts';
import { createRandom } from './random.ts';
import { FAULTLESS, type Rates, type Receiver, startReceiver } from './receiver.ts';
import { type TargetProxy, startTargetProxy } from './target-proxy.ts';

export interface CampaignOptions {
  seed: number;
  schedules: number;
  instances: number;
  editEveryMs: number;
  /** Pause between two schedules fired by hand; Infinity: none are. */
  fireEveryMs: number;
  /** What is done to it meanwhile, and how long that takes. */
  disturb: Disturb;
  rates: Rates;
  /** Whose src/ is run. */
  root: string;
  /** How long to wait for the last open run. */
  drainSeconds: number;
  /** The program of each instance, where it is not the daemon's own, and what its environment has in addition. */
  program?: string;
  variables?: Record<string, string>;
  /** Changes the schema behind the daemon's back, once the migrations are through. */
  sql?: string;
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

/** Times of the daemons: a twentieth of the usual ones, as far as the configuration goes down. */
const TTL_SECONDS = 4;
/**
 * With a timeout this is how long another instance waits before it believes that an attempt at most once did not arrive.
 * Whoever is frozen for longer, just before its first byte, defeats that; so no freeze here lasts as long.
 */
const LOCK_TTL_SECONDS = 12;
const MAX_RECOVERIES = 20;
const VARIABLES = {
  LOG_LEVEL: 'info',
  FIRELOCK_TICK_INTERVAL_MS: '200',
  FIRELOCK_HEARTBEAT_INTERVAL_SECONDS: '1',
  FIRELOCK_INSTANCE_TTL_SECONDS: String(TTL_SECONDS),
  FIRELOCK_LOCK_TTL_SECONDS: String(LOCK_TTL_SECONDS),
  FIRELOCK_RECOVERY_INTERVAL_SECONDS: '1',
  FIRELOCK_MAX_RECOVERIES: String(MAX_RECOVERIES),
  FIRELOCK_SHUTDOWN_SECONDS: '5',
};
const SETTINGS = {
  canaryId: CANARY,
  ttlSeconds: TTL_SECONDS,
  lockTtlSeconds: LOCK_TTL_SECONDS,
  maxRecoveries: MAX_RECOVERIES,
  maxRecoveryAgeSeconds: 86_400,
};
/** A row that no instance can plan, due at once and by nobody's edit: it must not hold up the others. */
const POISON = `INSERT INTO schedules (uid, id, version, enabled, cron, lane, priority, next_occurrence_at, next_fire_at,
    created_at, updated_at)
  SELECT gen_random_uuid(), '${POISON_ID}', 1, true, 'no cron', lane, priority, next_occurrence_at, next_fire_at,
    created_at, updated_at FROM schedules WHERE id = '${CANARY}'`;
const WARM_UP_MS = 3_000;
const READY_LIMIT_MS = 30_000;
const CANARY_LIMIT_MS = 20_000;

/** Everything that a campaign consists of, running. */
interface Stage {
  options: CampaignOptions;
  cluster: FaultCluster;
  receiver: Receiver;
  target: TargetProxy;
  instances: Instance[];
  load: Load;
}

/** One campaign from an empty directory to a verdict; nothing of it is left running. */
export async function runCampaign(options: CampaignOptions): Promise<CampaignResult> {
  const directory = await mkdtemp(join(tmpdir(), 'firelock-chaos-'));
  const closing: (() => Promise<unknown>)[] = [];
  try {
    const stage = await setUp(options, directory, closing);
    const features = await begin(stage);
    const disturbances: Disturbance[] = [];
    await disturb(stage, disturbances);
    const { healedAt, checks } = await heal(stage);
    await quiet(stage);
    const stats = await statsOf(stage.instances);
    const dump = await dumpDatabase(stage.cluster.url);
    for (const instance of stage.instances) instance.signal('SIGTERM');
    await Promise.all(stage.instances.map((instance) => instance.gone()));
    const { arrivals, lookups } = await stage.receiver.end();
    const { edits, fires } = stage.load;
    const observed = { edits, fires, arrivals, lookups, disturbances, dump, stats };
    const history = { settings: SETTINGS, healedAt, ...observed, instances: checks };
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
  const cluster = await startFaultCluster();
  closing.push(() => cluster.remove());
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
      variables: { ...VARIABLES, ...options.variables },
    });
    instances.push(instance);
    closing.push(async () => {
      instance.signal('SIGKILL');
      await instance.gone();
    });
  }
  const random = createRandom(options.seed, 'load');
  const { schedules, editEveryMs, fireEveryMs } = options;
  const load = createLoad({
    schedules,
    editEveryMs,
    fireEveryMs,
    receiverPort: target.port,
    random,
    instances,
  });
  return { options, cluster, receiver, target, instances, load };
}

async function begin({ options, cluster, instances, load }: Stage): Promise<Features> {
  for (const instance of instances) instance.start();
  const ready = await Promise.all(instances.map((instance) => instance.becomesReady(READY_LIMIT_MS)));
  if (ready.includes(false)) throw new Error('the instances did not become ready');
  if (options.sql !== undefined && (await cluster.admin(options.sql)) === undefined) {
    throw new Error(`refused: ${options.sql}`);
  }
  const features = await load.features();
  await load.create(features);
  if ((await cluster.admin(POISON)) === undefined) throw new Error('the poisoned row could not be made');
  options.say(`${options.schedules} schedules at ${instances.length} instances; ${JSON.stringify(features)}`);
  await sleep(WARM_UP_MS);
  return features;
}

async function disturb({ options, load, ...stage }: Stage, disturbances: Disturbance[]): Promise<void> {
  const editing = options.editEveryMs === Infinity ? undefined : load.startEditing();
  const firing = options.fireEveryMs === Infinity ? undefined : load.startFiring();
  await options.disturb(faultDepsOf({ options, load, ...stage }), disturbances);
  await firing?.stop();
  await editing?.stop();
}

function faultDepsOf({ options, cluster, target, instances }: Stage): FaultDeps {
  const random = createRandom(options.seed, 'nemesis');
  return { cluster, target, instances, random, ttlMs: TTL_SECONDS * 1000, say: options.say };
}

/** Afterwards every instance should work; whether it does is part of what is checked. */
async function heal(stage: Stage): Promise<{ healedAt: number; checks: InstanceCheck[] }> {
  const { options, receiver, instances } = stage;
  await healAll(faultDepsOf(stage));
  receiver.setRates(FAULTLESS);
  const ready = await Promise.all(instances.map((instance) => instance.becomesReady(READY_LIMIT_MS)));
  const healedAt = Date.now();
  options.say('healed');
  const before = await Promise.all(instances.map(ticksOf));
  const limit = healedAt + CANARY_LIMIT_MS;
  while (Date.now() < limit && (await receiver.status()).lastCanaryAt <= healedAt) await sleep(200);
  await sleep(1_000);
  const after = await Promise.all(instances.map(ticksOf));
  const checks = instances.map(({ name }, index) => ({
    name,
    ready: ready[index] ?? false,
    ticking: (after[index] ?? 0) > (before[index] ?? 0),
  }));
  return { healedAt, checks };
}

/** Pauses every schedule and waits until nothing is open and the dead are declared; what then still is, is stuck. */
async function quiet({ options, cluster, load }: Stage): Promise<void> {
  const one = async (statement: string) => Number((await cluster.admin(statement))?.[0]?.['count']);
  for (;;) {
    const enabled = await cluster.admin(`SELECT id FROM schedules WHERE enabled AND id <> '${POISON_ID}'`);
    if (enabled?.length === 0) break;
    if (enabled) await load.pauseAll(enabled.map(({ id }) => String(id)));
  }
  const limit = Date.now() + options.drainSeconds * 1000;
  const silent = `SELECT count(*) FROM instances WHERE died_at IS NULL
    AND heartbeat_at < clock_timestamp() - interval '${TTL_SECONDS} s'`;
  while (Date.now() < limit) {
    const open = await one(`SELECT count(*) FROM runs WHERE status IN ('waiting', 'pending')`);
    if (open === 0 && (await one(silent)) === 0) break;
    await sleep(500);
  }
  options.say('drained');
}
