import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { setTimeout as sleep } from 'node:timers/promises';
import { type Hosts, latenessOf, startHosts } from '../../../bench/support/processes/hosts.ts';
import { type ScheduleItem, putSchedules } from '../../../bench/support/schedules.ts';
import { type FaultCluster, startFaultCluster } from '../cluster/cluster.ts';
import { startFaultProxy } from '../cluster/fault-proxy.ts';
import { type Instance, createInstance } from '../cluster/instance.ts';
import { QUICK_START } from '../../support/runner/quick-start.ts';
import { openNameServer } from '../../support/open-name-server.ts';
import { percentile } from '../../../bench/support/measures/statistics.ts';
import { nextWhole, sleepUntil } from '../../../bench/support/measures/vitals.ts';

/** Two daemons on one PostgreSQL, the witnesses' targets, and targets for the burden. */
export interface IsolationStage {
  cluster: FaultCluster;
  instances: readonly Instance[];
  /** Of one of the instances. */
  url: string;
  witnesses: Hosts;
  /** Three targets that take requests and never answer. */
  silent: Hosts;
  /** A target that answers after two seconds. */
  slow: Hosts;
  /** What the burden may need a lot of: 1 is the full size. */
  scale: number;
  root: string;
  close(): Promise<void>;
}

export const WITNESS_HOSTS = 10;
const INSTANCES = 2;
const SLOW_MS = 2_000;
const PRELOAD = pathToFileURL(join(import.meta.dirname, 'names-preload.ts')).href;
const NODE_OPTIONS = `${QUICK_START.NODE_OPTIONS} --import=${PRELOAD}`;
const VARIABLES = { NODE_OPTIONS, LOG_LEVEL: 'info', FIRELOCK_SHUTDOWN_SECONDS: '1' };

/** Names of this domain are never answered for; those of the other are this machine. */
export const SILENT_DOMAIN = 'silent.test';
export const ANSWERING_DOMAIN = 'answering.test';

export async function startStage(
  root: string,
  scale: number,
  further: Record<string, string> = {},
): Promise<IsolationStage> {
  const closing: (() => Promise<unknown>)[] = [];
  const close = async () => {
    for (const step of closing.splice(0).reverse()) await step().catch(() => undefined);
  };
  try {
    const directory = await mkdtemp(join(tmpdir(), 'firelock-isolation-'));
    closing.push(() => rm(directory, { recursive: true, force: true }));
    const names = await openNameServer(({ name }) =>
      name.endsWith(SILENT_DOMAIN) ? null : { addresses: name.endsWith(ANSWERING_DOMAIN) ? ['127.0.0.1'] : [] },
    );
    closing.push(() => names.close());
    const cluster = await startFaultCluster();
    closing.push(() => cluster.stop());
    const [witnesses, silent, slow] = await Promise.all([
      startHosts(WITNESS_HOSTS + 1),
      startHosts(3),
      startHosts(1, SLOW_MS),
    ]);
    for (const hosts of [witnesses, silent, slow]) closing.push(() => hosts.stop());
    silent.silence(0);
    const instances: Instance[] = [];
    for (let number = 1; number <= INSTANCES; number += 1) {
      const proxy = await startFaultProxy(cluster.url);
      closing.push(() => proxy.close());
      const variables = { ...VARIABLES, CHAOS_NAME_SERVER: names.servers.join(), ...further };
      const instance = await createInstance({
        ...{ number, root, proxy, directory, variables },
        receiverPort: 0,
      });
      instances.push(instance);
      closing.push(async () => {
        instance.signal('SIGKILL');
        await instance.gone();
      });
      instance.start();
    }
    const ready = await Promise.all(instances.map((instance) => instance.becomesReady(60_000)));
    if (ready.includes(false)) throw new Error('the instances did not become ready');
    const url = instances[0]?.url ?? '';
    const [last = ''] = witnesses.urls.slice(-1);
    await putSchedules(url, witnessesOf(witnesses.urls.slice(0, -1)));
    await putSchedules(url, followingWitnesses(last, WITNESS_HOSTS));
    return { cluster, instances, url, witnesses, silent, slow, scale, root, close };
  } catch (error) {
    await close();
    throw error;
  }
}

/** How late the witnesses' fires arrived in a period, in ms. A fire that did not arrive counts as late as it was waited for. */
export interface Period {
  fires: number;
  missing: number;
  p50: number;
  p99: number;
  max: number;
}

/** Every second each: recorded by one statement, or under locks (`queue`: a late end must not cost a fire), or judged by its day. */
const KINDS = ['plain', 'plain', 'queue', 'queue', 'dated', 'plain', 'plain', 'queue', 'dated', 'plain'];
const PER_HOST = KINDS.length;
const LATEST_MS = 30_000;
const POLL_MS = 200;

/** Schedules that have nothing to do with what burdens the daemons, ten for each URL: the burden must not change how late they fire. */
function witnessesOf(urls: readonly string[]): ScheduleItem[] {
  return urls.flatMap((url, host) =>
    KINDS.map((kind, index) => ({
      id: `witness-${host}-${index}`,
      cron: '* * * * * *',
      timezone: 'Europe/Paris',
      ...(kind === 'dated' ? { exclude: { dates: ['2001-01-01'] } } : {}),
      ...(kind === 'queue' ? { overlap: kind } : {}),
      target: { type: 'http', url },
    })),
  );
}

/** One that follows the end of a witness of each host: how late they arrive says how long effects take. */
function followingWitnesses(url: string, witnessHosts: number): ScheduleItem[] {
  return Array.from({ length: witnessHosts }, (_, host) => ({
    id: `witness-after-${host}`,
    after: { scheduleId: `witness-${host}-0` },
    target: { type: 'http', url },
  }));
}

/** Measures for so many seconds. The last host is that of the followers, and all others have ten fires a second. */
export async function measure(
  hosts: Hosts,
  witnessHosts: number,
  seconds: number,
): Promise<{ fires: Period; followers: Period }> {
  const from = nextWhole(1000, 500);
  const to = from + seconds * 1000;
  await sleepUntil(from - 1);
  await hosts.take();
  await sleepUntil(to);
  const followerHost = witnessHosts;
  const fires: number[] = [];
  const followers: number[] = [];
  const expected = witnessHosts * PER_HOST * seconds;
  // A follower's moment is the end of its parent's run, which may lie on either side of the period's ends.
  const expectedFollowers = witnessHosts * (seconds - 1);
  for (let waited = 0; waited < LATEST_MS; waited += POLL_MS) {
    const arrived = await hosts.take();
    fires.push(...latenessOf(arrived, { from, to }, (host) => host < followerHost));
    followers.push(...latenessOf(arrived, { from, to }, (host) => host === followerHost));
    if (fires.length >= expected && followers.length >= expectedFollowers) break;
    await sleep(POLL_MS);
  }
  return { fires: periodOf(fires, expected), followers: periodOf(followers, expectedFollowers) };
}

function periodOf(arrived: readonly number[], expected: number): Period {
  const missing = Math.max(0, expected - arrived.length);
  const lateness = [...arrived, ...new Array<number>(missing).fill(LATEST_MS)];
  const [p50 = NaN, p99 = NaN, max = NaN] = [0.5, 0.99, 1].map((share) => percentile(lateness, share));
  return { fires: arrived.length, missing, p50, p99, max };
}
