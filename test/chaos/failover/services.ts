import { mkdir, open, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { type Account, giveTo, spawnAs } from '../../../src/local-postgres/binaries.ts';
import { type Program, startCommand } from '../../support/programs.ts';
import { PORTS } from './patroni-configuration.ts';
import type { PatroniNode } from './patroni-node.ts';

/** Where files go, and who owns them. */
export interface Place {
  directory: string;
  account: Account | undefined;
}

export async function startEtcd(
  program: string,
  address: string,
  { directory, account }: Place,
): Promise<Program> {
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

export async function startHaproxy(
  program: string,
  { address, nodes, place }: HaproxyOptions,
): Promise<Program> {
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
