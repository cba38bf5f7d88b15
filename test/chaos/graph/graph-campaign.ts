import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { type FaultCluster, startFaultCluster } from '../cluster/cluster.ts';
import { type GraphApi, createGraphApi, submitGraph } from './graph-api.ts';
import { type GraphVerdict, checkGraph } from './graph-checker.ts';
import type { Asked, Delivery, GraphHistory } from './graph-history.ts';
import { type GraphNemesis, createGraphNemesis } from './graph-nemesis.ts';
import { finalRows, readLogs, startGraphObserver } from './graph-observer.ts';
import { type GraphPlanOptions, planGraph } from './graph-plan.ts';
import { startGraphReceiver, startGraphWorkers } from './graph-receiver.ts';
import { type Instance, createInstances } from '../cluster/instance.ts';
import { createRandom } from '../random.ts';

export interface GraphOptions extends GraphPlanOptions {
  instances: number;
  /** Between two kills; Infinity: none. */
  killEveryMs: number;
  /** Wait between two calls that ask for runs, for each run of the first. */
  paceMs: number;
  /** For how long runs are asked for and daemons killed, at most: on a slow machine there are fewer of both. */
  limitSeconds: number;
  /** Whose src/ is run. */
  root: string;
  say: (line: string) => void;
}

export interface GraphResult {
  history: GraphHistory;
  verdict: GraphVerdict;
  kills: number;
  /** From the first call to the last end. */
  seconds: number;
  /** Logs of the instances, and the history; removed where nothing was found. */
  directory: string;
}

const VARIABLES = {
  LOG_LEVEL: 'info',
  FIRELOCK_TICK_INTERVAL_MS: '200',
  FIRELOCK_HEARTBEAT_INTERVAL_SECONDS: '1',
  FIRELOCK_INSTANCE_TTL_SECONDS: '4',
  FIRELOCK_LOCK_TTL_SECONDS: '12',
  FIRELOCK_RECOVERY_INTERVAL_SECONDS: '1',
  FIRELOCK_MAX_RECOVERIES: '100',
  FIRELOCK_SHUTDOWN_SECONDS: '5',
};
/** A run that does not end in this time, after the last kill, hangs. */
const HUNG_AFTER_MS = 60_000;

/** One campaign from an empty directory to a verdict; nothing of it is left running. */
export async function runGraphCampaign(options: GraphOptions): Promise<GraphResult> {
  const directory = await mkdtemp(join(tmpdir(), 'firelock-graph-'));
  const closing: (() => Promise<unknown>)[] = [];
  try {
    const { history, kills, seconds } = await campaign(options, directory, closing);
    const verdict = checkGraph(history);
    if (verdict.ok) await rm(directory, { recursive: true, force: true });
    else await writeFile(join(directory, 'history.json'), JSON.stringify(history));
    return { history, verdict, kills, seconds, directory };
  } finally {
    for (const close of closing.reverse()) await close().catch(() => undefined);
  }
}

async function campaign(
  options: GraphOptions,
  directory: string,
  closing: (() => Promise<unknown>)[],
): Promise<Pick<GraphResult, 'history' | 'kills' | 'seconds'>> {
  const { seed, say } = options;
  const { batches } = planGraph(options);
  const asked = new Map(batches.flat().map((one) => [one.ref, one]));
  const deliveries: Delivery[] = [];
  const stage = await setUp(options, { asked, deliveries, directory }, closing);
  const { cluster, instances, api, nemesis, url } = stage;
  for (const instance of instances) nemesis.start(instance);
  if ((await notReady(instances)).length > 0) throw new Error('the instances did not become ready');

  const workers = startGraphWorkers({ asked, deliveries, api, random: createRandom(seed, 'workers') });
  const observer = startGraphObserver(cluster);
  const began = performance.now();
  nemesis.unleash();
  const until = began + options.limitSeconds * 1000;
  let submittedAt = Infinity;
  const giveUpAt = until + HUNG_AFTER_MS;
  const submitting = submitGraph(batches, { api, url, say, until, giveUpAt, paceMs: options.paceMs }).then(
    () => (submittedAt = performance.now()),
  );
  const allEnded = () => observer.open(submittedAt) === 0;
  const isOver = () => allEnded() || performance.now() > until;
  await waitFor(isOver, () => say(`${observer.ended()} of ${asked.size} ended`));
  await nemesis.calm();
  say('calm');
  await submitting;
  const unready = [...nemesis.endings, ...(await notReady(instances))];
  // As long as something happens they are on their way, however slow that is; what then is open is stuck.
  const happened = () => deliveries.length + api.words.length + observer.ended();
  await waitFor(orStandstill(allEnded, happened), () => undefined);
  const seconds = (performance.now() - began) / 1000;

  api.stop();
  await workers.stop();
  await observer.stop();
  const { rows, uncounted, deaths } = await finalRows(cluster);
  for (const instance of instances) instance.signal('SIGTERM');
  await Promise.all(instances.map((instance) => instance.gone()));
  const { lives } = nemesis;
  const releasedByBackstop = await readLogs(directory, instances, { lives, deaths });
  const { words, refusals } = api;
  const { sightings } = observer;
  const seen = {
    deliveries,
    words,
    sightings,
    rows,
    uncounted,
    refusals,
    unready,
    lives,
    releasedByBackstop,
  };
  return { history: { asked: [...asked.values()], ...seen }, kills: nemesis.kills(), seconds };
}

interface Stage {
  cluster: FaultCluster;
  instances: Instance[];
  api: GraphApi;
  nemesis: GraphNemesis;
  /** Of the receiver. */
  url: string;
}

async function setUp(
  { seed, instances: count, root, killEveryMs, say }: GraphOptions,
  { asked, deliveries, directory }: { asked: Map<string, Asked>; deliveries: Delivery[]; directory: string },
  closing: (() => Promise<unknown>)[],
): Promise<Stage> {
  const cluster = await startFaultCluster();
  closing.push(() => cluster.stop());
  const instances: Instance[] = [];
  const api = createGraphApi(instances, createRandom(seed, 'clients'));
  const random = createRandom(seed, 'receiver');
  const receiver = await startGraphReceiver({ asked, deliveries, api, random });
  closing.push(() => receiver.close());
  const given = {
    root,
    directory,
    databaseUrl: cluster.url,
    receiverPort: receiver.port,
    variables: VARIABLES,
  };
  instances.push(...(await createInstances(count, given, closing)));
  const nemesis = createGraphNemesis({
    instances,
    random: createRandom(seed, 'nemesis'),
    everyMs: killEveryMs,
    say,
  });
  return { cluster, instances, api, nemesis, url: `http://127.0.0.1:${receiver.port}/` };
}

async function notReady(instances: readonly Instance[]): Promise<string[]> {
  const ready = await Promise.all(instances.map((instance) => instance.becomesReady(HUNG_AFTER_MS)));
  return instances.filter((_, index) => ready[index] !== true).map(({ name }) => `instance ${name} is not ready`);
}

/** Until all is over, or nothing more has happened for so long that nothing will. */
function orStandstill(isOver: () => boolean, happened: () => number): () => boolean {
  let [last, since] = [happened(), performance.now()];
  return () => {
    const now = happened();
    if (now !== last) [last, since] = [now, performance.now()];
    return isOver() || performance.now() - since > HUNG_AFTER_MS;
  };
}

const REPORT_EVERY = 50;

async function waitFor(isOver: () => boolean, report: () => void): Promise<void> {
  for (let looks = 1; !isOver(); looks += 1) {
    if (looks % REPORT_EVERY === 0) report();
    await sleep(100);
  }
}
