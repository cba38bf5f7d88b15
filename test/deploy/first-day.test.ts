// @module-tag long
import { spawnSync } from 'node:child_process';
import { chmod, mkdir, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { parseEnv } from 'node:util';
import { expect, inject, onTestFinished, test } from 'vitest';
import { parse } from 'yaml';
import { blocksOf } from '../docs/blocks.ts';
import { startDaemon } from '../support/daemon.ts';
import { databaseOfTest, receiverOfTest } from '../support/of-test.ts';
import { readText } from './kit.ts';

/** What docs/deploying.md says in its own words, and where it has left the variables of the instances. */
const INSTALLATIONS = {
  'Docker Compose': { begins: 'docker compose build', variables: ofCompose },
  Kubernetes: { begins: 'docker build', variables: ofChart },
  systemd: { begins: 'npm ci && npm run build', variables: ofUnit },
};

/** Programs that the machine of a test lacks. What they do for `setup` and for a Secret is done. */
const STAND_INS = {
  docker: 'case "$*" in *" setup") exec "$NODE" "$MAIN" setup;; esac',
  kubectl: 'for word; do case "$word" in --from-env-file=*) cp "${word#*=}" secret;; esac; done',
  node: '[ "$2" = setup ] && exec "$NODE" "$MAIN" setup',
  ...{ helm: '', npm: '', systemctl: '', journalctl: '' },
};

test.each(Object.entries(INSTALLATIONS))(
  'an installation by %s, word for word, takes its first schedule, with a header, and fires',
  async (_, { begins, variables }) => {
    const folder = await emptyFolder();
    const { stderr } = run(blockOf(begins), folder);
    const [token = ''] = /^flk_\w+$/m.exec(stderr) ?? [];
    const database = await databaseOfTest();
    const here = { DATABASE_URL: database.url, HOST: '127.0.0.1', PORT: '0', FIRELOCK_METRICS_PORT: '' };
    const daemon = await startDaemon({ ...(await variables(folder)), ...here });
    await daemon.ready();
    expect((await daemon.call('GET', '/api/v1/schedules')).status).toBe(401);

    const receiver = await receiverOfTest();
    const words = blockOf('export FIRELOCK_URL')
      .replace('flk_…', token)
      .replace('http://127.0.0.1:8080', daemon.url)
      .replace('http://127.0.0.1:9000', receiver.url);
    const { stdout } = run(words, folder);
    expect(stdout).toMatch(/"headers":\{"x-api-key":"\*\*\*"\}.*"trigger":"manual"/s);
    const [arrival] = await receiver.arrived(1);
    expect(arrival).toMatchObject({ path: '/first', headers: { 'x-api-key': 'a secret' } });
  },
);

test('the chart says which Kubernetes is the oldest, in its file and in words', () => {
  const { kubeVersion } = parse(readText('deploy/helm/firelock/Chart.yaml')) as { kubeVersion: string };
  const [oldest = ''] = /\d+\.\d+/.exec(kubeVersion) ?? [];
  for (const page of ['deploy/helm/firelock/README.md', 'docs/deploying.md'])
    expect(readText(page)).toContain(`needs Kubernetes ${oldest} or later`);
});

function blockOf(begins: string): string {
  const found = blocksOf('docs/deploying.md').find(({ text }) => text.startsWith(begins));
  if (found === undefined) throw new Error(`no block begins with ${begins}`);
  return found.text;
}

/** Folders of the machine are below this one. What is copied into the installation is this checkout's own. */
function run(words: string, folder: string) {
  const here = words.replace(/\/(opt|etc)\//g, `${folder}/$1/`).replace(/^.*\bcp .*$/gm, 'true');
  const env = {
    PATH: `${join(folder, 'bin')}:${process.env['PATH'] ?? ''}`,
    NODE: process.execPath,
    MAIN: inject('daemonMain'),
  };
  const options = { cwd: folder, env, encoding: 'utf8' } as const;
  const done = spawnSync('bash', ['-euo', 'pipefail', '-c', here], options);
  expect(done.status, done.stderr).toBe(0);
  return done;
}

async function emptyFolder(): Promise<string> {
  const folder = await mkdtemp(join(tmpdir(), 'firelock-first-day-'));
  onTestFinished(() => rm(folder, { recursive: true }));
  await mkdir(join(folder, 'bin'));
  for (const [name, words] of Object.entries(STAND_INS)) {
    await writeFile(join(folder, 'bin', name), `#!/bin/sh\n${words}\n:\n`);
    await chmod(join(folder, 'bin', name), 0o755);
  }
  return folder;
}

/** What docker-compose.yml makes of `.env`, on top of what the image has. */
async function ofCompose(folder: string): Promise<Record<string, string>> {
  const given = await variablesIn(join(folder, '.env'));
  const { services } = parse(readText('docker-compose.yml')) as {
    services: { firelock: { environment: Record<string, string>; extra_hosts: string[] } };
  };
  const { environment, extra_hosts: hosts } = services.firelock;
  expect(hosts).toEqual(['host.docker.internal:host-gateway']);
  const filled = Object.entries(environment).map(([name, value]) => {
    return [name, value.replace(/\$\{(\w+):-(.*?)\}/g, (__, of: string, usual: string) => given[of] ?? usual)];
  });
  return Object.fromEntries(filled) as Record<string, string>;
}

/** What the chart takes from the Secret: a key that it has not would keep the pods from starting. */
async function ofChart(folder: string): Promise<Record<string, string>> {
  const secret = await variablesIn(join(folder, 'secret'));
  const { secret: of } = parse(readText('deploy/helm/firelock/values.yaml')) as {
    secret: { keys: Record<string, string> };
  };
  const keys = Object.values(of.keys).filter((key) => key !== '');
  expect(Object.keys(secret)).toEqual(expect.arrayContaining(keys));
  const helpers = readText('deploy/helm/firelock/templates/_helpers.tpl');
  for (const key of keys) expect(helpers).toContain(`"${key}"`);
  return Object.fromEntries(keys.map((key) => [key, secret[key] ?? '']));
}

async function ofUnit(folder: string): Promise<Record<string, string>> {
  const [, file = ''] = /^EnvironmentFile=(.*)$/m.exec(readText('deploy/systemd/firelock.service')) ?? [];
  return variablesIn(join(folder, file));
}

async function variablesIn(path: string): Promise<Record<string, string>> {
  return parseEnv(await readFile(path, 'utf8')) as Record<string, string>;
}
