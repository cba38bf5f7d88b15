import { randomBytes } from 'node:crypto';
import { globSync, rmSync } from 'node:fs';
import { chmod, mkdir, mkdtemp, open, realpath, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { execFileSync } from 'node:child_process';
import { type Account, chooseAccount, giveTo, spawnAs } from '../../../src/local-postgres/binaries.ts';
import { type Program, startCommand } from '../../support/programs.ts';
import { until } from '../../support/until.ts';
import { type FaultCluster, execute } from '../cluster/cluster.ts';
import { type PatroniNode, type Replication, createNode, PORTS } from './patroni-node.ts';
import { findProgram, isExecutable } from '../../../scripts/support/programs-here.ts';

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

export async function startPatroniCluster({ programs, replication }: ClusterOptions): Promise<PatroniCluster> {
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

/** Where files go, and who owns them. */
interface Place {
  directory: string;
  account: Account | undefined;
}

async function startEtcd(program: string, address: string, { directory, account }: Place): Promise<Program> {
  const data = join(directory, 'etcd');
  await mkdir(data, { mode: 0o700 });
  await giveTo(account, data);
  const [clients, peers] = [PORTS.etcd, PORTS.etcdPeer].map((port) => `http://${address}:${port}`);
  const options = Object.entries({
    ...{ name: 'etcd', 'data-dir': data, 'enable-v2': 'true', logger: 'zap' },
    ...{ 'listen-client-urls': clients, 'advertise-client-urls': clients },
    ...{ 'listen-peer-urls': peers, 'initial-advertise-peer-urls': peers },
    ...{ 'initial-cluster': `etcd=${peers ?? ''}` },
  }).map(([name, value]) => `--${name}=${value ?? ''}`);
  return startService(program, options, 'etcd', { directory, account });
}

interface HaproxyOptions {
  address: string;
  nodes: readonly PatroniNode[];
  place: Place;
}

async function startHaproxy(program: string, { address, nodes, place }: HaproxyOptions): Promise<Program> {
  const file = join(place.directory, 'haproxy.cfg');
  const text = `defaults
  mode tcp
  timeout connect 2s
  timeout client 1h
  timeout server 1h
  timeout check 2s
listen primary
  bind ${address}:${PORTS.haproxy}
  option httpchk OPTIONS /primary
  http-check expect status 200
  default-server inter 1s fall 2 rise 1 on-marked-down shutdown-sessions
${nodes.map((node) => `  server ${node.name} ${node.address}:${PORTS.postgres} check port ${PORTS.patroni}\n`).join('')}`;
  await writeFile(file, text);
  return startService(program, ['-f', file], 'haproxy', place);
}

async function startService(
  program: string,
  args: readonly string[],
  name: string,
  { directory, account }: Place,
): Promise<Program> {
  const log = await open(join(directory, `${name}.log`), 'a');
  const options = {
    cwd: directory,
    env: {},
    stdio: ['ignore', log.fd, log.fd] as ['ignore', number, number],
  };
  const service = startCommand(program, args, { ...options, ...spawnAs(account) });
  await log.close();
  return service;
}

/** Where the programs are that a cluster consists of. */
export interface Programs {
  patroni: string;
  etcd: string;
  haproxy: string;
  /** The folder of PostgreSQL's own programs. */
  postgres: string;
}

const PACKAGES = 'patroni etcd-server haproxy python3-psycopg2 python3-etcd postgresql-15';
export const HOW_TO_INSTALL = `Debian 12: RUNLEVEL=1 apt-get install --no-install-recommends ${PACKAGES}`;

/** The programs, or what is missing of them. */
export function findPrograms(): Programs | { missing: string[] } {
  const missing: string[] = [];
  const found = (name: string, path: string | undefined): string => {
    if (path === undefined) missing.push(name);
    return path ?? '';
  };
  const programs = {
    patroni: found('patroni', findProgram('patroni')),
    etcd: found('etcd', findProgram('etcd')),
    haproxy: found('haproxy', findProgram('haproxy')),
    postgres: found('PostgreSQL with pg_basebackup and pg_rewind', newestPostgres()),
  };
  if (!hasPython('psycopg2')) missing.push('python3-psycopg2');
  if (!hasPython('etcd')) missing.push('python3-etcd');
  return missing.length > 0 ? { missing } : programs;
}

/** The embedded servers lack both: without them no standby comes about, and no old primary comes back. */
function newestPostgres(): string | undefined {
  const folders = globSync('/usr/lib/postgresql/*/bin');
  folders.sort((one, other) => majorOf(other) - majorOf(one));
  return folders.find((folder) =>
    ['postgres', 'pg_basebackup', 'pg_rewind'].every((name) => isExecutable(join(folder, name))),
  );
}

function majorOf(folder: string): number {
  return Number(/\d+/.exec(folder)?.[0]);
}

/** Of the system's Python, which Debian's patroni runs on. */
function hasPython(module: string): boolean {
  try {
    execFileSync('/usr/bin/python3', ['-c', `import ${module}`], { stdio: 'ignore' });
    return true;
  } catch {
    return false;
  }
}
