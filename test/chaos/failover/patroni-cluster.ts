import { randomBytes } from 'node:crypto';
import { rmSync } from 'node:fs';
import { chmod, mkdir, mkdtemp, realpath } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { chooseAccount, giveTo } from '../../../src/local-postgres/binaries.ts';
import type { Program } from '../../support/programs.ts';
import { until } from '../../support/until.ts';
import { type FaultCluster, execute } from '../cluster/cluster.ts';
import type { Programs } from './needs.ts';
import { PORTS, type Replication } from './patroni-configuration.ts';
import { type PatroniNode, createNode } from './patroni-node.ts';
import { type Place, startEtcd, startHaproxy } from './services.ts';

/** How the daemons reach the primary: HAProxy asks each Patroni which one that is, or the URL names all servers. */
export type Mode = 'haproxy' | 'hosts';

/** Three nodes, the etcd that keeps their leader's lock, and a HAProxy before them. */
export interface PatroniCluster {
  readonly nodes: readonly PatroniNode[];
  urlOf(mode: Mode): string;
  /** The node that has the lock and answers; null: there is none now. */
  primary(): Promise<PatroniNode | null>;
  /** Resolves when another node than this one is the primary; answers which. */
  primaryBeside(old: PatroniNode): Promise<PatroniNode>;
  /** Resolves when all nodes follow one primary, and one of them takes over without a loss where that is promised. */
  whole(): Promise<void>;
  /** Patroni changes places in order. */
  switchOver(): Promise<void>;
  /** As a campaign knows its PostgreSQL; goes through HAProxy. */
  readonly database: FaultCluster;
  stop(): void;
}

interface ClusterOptions {
  programs: Programs;
  replication: Replication;
}

/** A cluster takes so long to be whole after the worst of what is done to it here. */
const LIMIT_MS = 180_000;
const NAMES = ['a', 'b', 'c'];

export async function startPatroniCluster({
  programs,
  replication,
}: ClusterOptions): Promise<PatroniCluster> {
  const directory = await realpath(await mkdtemp(join(tmpdir(), 'firelock-failover-')));
  // As root the servers run as someone else, who has to get in.
  await chmod(directory, 0o755);
  const account = await chooseAccount(join(directory, 'none'));
  const password = randomBytes(18).toString('hex');
  const addresses = addressesOfThisProcess();
  const etcd = `${addresses.etcd}:${PORTS.etcd}`;
  const nodes: PatroniNode[] = [];
  const services: Program[] = [];
  const stop = () => {
    process.off('exit', stop);
    for (const node of nodes) node.destroy();
    for (const service of services) service.signal('SIGKILL');
    rmSync(directory, { recursive: true, force: true, maxRetries: 5, retryDelay: 100 });
  };
  process.once('exit', stop);
  try {
    const place: Place = { directory, account };
    services.push(await startEtcd(programs.etcd, addresses.etcd, place));
    for (const [index, name] of NAMES.entries()) {
      const own = join(directory, name);
      await mkdir(own, { mode: 0o700 });
      await giveTo(account, own);
      const address = addresses.nodes[index] ?? '';
      const settings = { name, address, directory: own, etcd, binaries: programs.postgres };
      nodes.push(createNode({ ...settings, password, replication, account, program: programs.patroni }));
    }
    services.push(await startHaproxy(programs.haproxy, { address: addresses.etcd, nodes, place }));
    const cluster = clusterOf({ nodes, haproxy: addresses.etcd, password, replication, stop });
    const [first, ...others] = nodes;
    await first?.start();
    await until(() => cluster.primary(), LIMIT_MS);
    await createDatabase(cluster);
    for (const node of others) await node.start();
    await cluster.whole();
    return cluster;
  } catch (error) {
    stop();
    throw error;
  }
}

interface Parts {
  nodes: readonly PatroniNode[];
  haproxy: string;
  password: string;
  replication: Replication;
  stop: () => void;
}

function clusterOf({ nodes, haproxy, password, replication, stop }: Parts): PatroniCluster {
  const url = (servers: readonly string[], more = '') =>
    `postgres://postgres:${password}@${servers.join(',')}/${DATABASE}${more}`;
  const throughHaproxy = url([`${haproxy}:${PORTS.haproxy}`]);
  const primary = async (among = nodes): Promise<PatroniNode | null> => {
    const found = await Promise.all(among.map(async (node) => ((await node.isPrimary()) ? [node] : [])));
    return found.flat()[0] ?? null;
  };
  return {
    nodes,
    urlOf: (mode) =>
      mode === 'haproxy'
        ? throughHaproxy
        : url(
            nodes.map(({ address }) => `${address}:${PORTS.postgres}`),
            '?target_session_attrs=read-write',
          ),
    primary: () => primary(),
    primaryBeside: (old) => until(() => primary(nodes.filter((node) => node !== old)), LIMIT_MS),
    whole: async () => {
      await until(async () => isWhole(await membersSeenBy(nodes), replication) || null, LIMIT_MS);
    },
    switchOver: () => switchOver(nodes),
    database: {
      url: throughHaproxy,
      admin: (statement) => execute(throughHaproxy, statement).catch(() => undefined),
      crash: () => Promise.reject(new Error('nodes are crashed one by one')),
      restart: () => Promise.reject(new Error('nodes are started one by one')),
      stop: () => {
        stop();
        return Promise.resolve();
      },
    },
    stop,
  };
}

const DATABASE = 'firelock';

async function createDatabase({ database }: PatroniCluster): Promise<void> {
  const url = database.url.replace(`/${DATABASE}`, '/postgres');
  await until(
    () =>
      execute(url, `CREATE DATABASE ${DATABASE}`).then(
        () => true,
        () => null,
      ),
    LIMIT_MS,
  );
}

interface Member {
  name: string;
  role: string;
  state: string;
  timeline?: number;
}

async function membersSeenBy(nodes: readonly PatroniNode[]): Promise<Member[]> {
  for (const { address } of nodes) {
    // The time may also be over while the body arrives.
    const members = await fetch(`http://${address}:${PORTS.patroni}/cluster`, {
      signal: AbortSignal.timeout(1_000),
    })
      .then(async (answer) => (answer.ok ? ((await answer.json()) as { members: Member[] }).members : null))
      .catch(() => null);
    if (members) return members;
  }
  return [];
}

function isWhole(members: readonly Member[], replication: Replication): boolean {
  const [leader] = members.filter(({ role }) => role === 'leader');
  const follow = members.filter(
    ({ state, timeline }) => ['running', 'streaming'].includes(state) && timeline === leader?.timeline,
  );
  const isSafe = replication === 'async' || members.some(({ role }) => role === 'sync_standby');
  return leader !== undefined && follow.length === NAMES.length && isSafe;
}

/** Patroni refuses while it finds anything amiss. */
async function switchOver(nodes: readonly PatroniNode[]): Promise<void> {
  await until(async () => {
    const leader = (await membersSeenBy(nodes)).find(({ role }) => role === 'leader')?.name;
    const node = nodes.find(({ name }) => name === leader);
    if (!node) return null;
    const answer = await fetch(`http://${node.address}:${PORTS.patroni}/switchover`, {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: JSON.stringify({ leader }),
    }).catch(() => null);
    await answer?.text();
    return answer?.ok === true || null;
  }, LIMIT_MS);
}

/** Each keeps its usual ports, at addresses that no other run on this machine has. */
function addressesOfThisProcess(): { etcd: string; nodes: string[] } {
  const net = `127.${64 + (process.pid % 64)}.${Math.floor(process.pid / 64) % 256}`;
  return { etcd: `${net}.1`, nodes: NAMES.map((_, index) => `${net}.${index + 11}`) };
}
