import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { type Hosts, startHosts } from '../../../bench/support/processes/hosts.ts';
import { putSchedules } from '../../../bench/support/schedules.ts';
import { type FaultCluster, startFaultCluster } from '../cluster/cluster.ts';
import { startFaultProxy } from '../cluster/fault-proxy.ts';
import { type Instance, createInstance } from '../cluster/instance.ts';
import { QUICK_START } from '../../support/runner/quick-start.ts';
import { openNameServer } from '../../support/open-name-server.ts';
import { followingWitnesses, witnessesOf } from './witnesses.ts';

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
      name.endsWith(SILENT_DOMAIN)
        ? null
        : { addresses: name.endsWith(ANSWERING_DOMAIN) ? ['127.0.0.1'] : [] },
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
