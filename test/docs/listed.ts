import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect } from 'vitest';
import { parse } from 'yaml';
import { acceptsCommand } from '../cli/accepts-command.ts';
import { type Block, root } from './blocks.ts';
import * as client from '../../clients/typescript/src/index.ts';
import * as fileStore from '../../clients/typescript/src/receiver/file-store.ts';
import * as receiver from '../../clients/typescript/src/receiver/index.ts';
import * as worker from '../../clients/typescript/src/worker/index.ts';
import { targetInput } from '../../src/api/targets/schemas.ts';
import { secretOf } from '../support/signed.ts';

/** A block that no test runs as it stands. */
interface Listed {
  page: string;
  /** How it begins. */
  begins: string;
  why: string;
  /** The file of a test that does the same in its way. */
  doneBy?: string;
  /** What can be said of it without running it. */
  check?: (text: string) => void;
}

const RECEIVER = {
  page: 'docs/targets.md',
  why: 'it is a part of a program, word for word: test/docs/targets.test.ts',
  doneBy: 'test/examples/receivers.test.ts',
};

/** Every block that no test runs. A block that is neither here nor run fails test/docs/every-block.test.ts. */
export const LISTED: readonly Listed[] = [
  {
    page: 'README.md',
    begins: 'npx firelock',
    why: 'the other blocks of the page talk to the daemon that it starts; CI runs npm ci, and release:rehearse the first',
    doneBy: 'test/daemon/local.test.ts',
    check: scriptsExist,
  },
  {
    page: 'README.md',
    begins: 'npm ci && npm test',
    why: 'it runs this test',
    check: scriptsExist,
  },
  {
    page: 'docs/quickstart.md',
    begins: 'npm ci && npm start',
    why: 'the other blocks of the page talk to the daemon that it starts',
    doneBy: 'test/daemon/local.test.ts',
    check: scriptsExist,
  },
  {
    page: 'docs/quickstart.md',
    begins: 'PORT=8081 npm start',
    why: 'a second daemon on a fixed port',
    doneBy: 'test/daemon/local.test.ts',
    check: scriptsExist,
  },
  {
    page: 'docs/runs.md',
    begins: 'firelock work reports',
    why: 'it runs until it is stopped',
    doneBy: 'test/cli/work/work.test.ts',
    check: commandsExist,
  },
  {
    page: 'docs/deploying.md',
    begins: 'docker build -t firelock .',
    why: 'it builds images, as npm run image:check does',
  },
  {
    page: 'docs/deploying.md',
    begins: 'OTEL_EXPORTER_OTLP_ENDPOINT=',
    why: 'it starts a daemon, and needs a collector',
    doneBy: 'test/daemon/traces.test.ts',
    check: scriptsExist,
  },
  {
    page: 'docs/deploying.md',
    begins: 'docker compose build',
    why: 'it needs docker',
    doneBy: 'test/deploy/first-day.test.ts',
  },
  {
    page: 'docs/deploying.md',
    begins: 'export FIRELOCK_URL',
    why: 'it needs the installation that the blocks before it make',
    doneBy: 'test/deploy/first-day.test.ts',
  },
  {
    page: 'docs/deploying.md',
    begins: 'docker build',
    why: 'it needs docker, kubectl, helm and a cluster',
    doneBy: 'test/deploy/first-day.test.ts',
    check: chartHasValues,
  },
  {
    page: 'docs/deploying.md',
    begins: 'npm ci && npm run build',
    why: 'it changes the machine, and needs systemd',
    doneBy: 'test/deploy/first-day.test.ts',
    check: scriptsExist,
  },
  {
    page: 'docs/deploying.md',
    begins: 'inhibit_rules:',
    why: 'it is a part of a configuration of Alertmanager',
    check: namesAlerts,
  },
  {
    page: 'deploy/helm/firelock/README.md',
    begins: 'umask 077',
    why: 'it needs docker, kubectl, helm and a cluster',
    doneBy: 'test/deploy/first-day.test.ts',
    check: chartHasValues,
  },
  {
    page: 'docs/deploying.md',
    begins: 'location /cron/',
    why: 'it needs nginx',
    doneBy: 'test/api/server.test.ts',
  },
  {
    page: 'docs/teams.md',
    begins: 'map $auth_groups',
    why: 'it needs nginx and a server that logs users in',
    doneBy: 'test/api/access/access.test.ts',
  },
  {
    page: 'docs/restoring.md',
    begins: 'npm start -- resume',
    why: 'it needs a restored database, with every daemon stopped',
    doneBy: 'test/daemon/restore.test.ts',
    check: commandsExist,
  },
  {
    page: 'docs/restoring.md',
    begins: 'pg_dump --format',
    why: "it needs PostgreSQL's client programs",
    doneBy: 'test/daemon/restore.test.ts',
  },
  {
    page: 'docs/restoring.md',
    begins: 'firelock database dump',
    why: 'it needs an embedded PostgreSQL, and starts a daemon',
    doneBy: 'test/daemon/local.test.ts',
    check: commandsExist,
  },
  {
    page: 'docs/restoring.md',
    begins: 'pg_ctl -D standby promote',
    why: 'it promotes a standby',
    doneBy: 'test/daemon/observing.test.ts',
    check: commandsExist,
  },
  {
    page: 'docs/restoring.md',
    begins: 'npm run failover',
    why: 'it takes ten minutes, and needs Patroni',
    doneBy: 'test/chaos/failover/failover.test.ts',
    check: scriptsExist,
  },
  {
    page: 'test/chaos/failover/README.md',
    begins: 'RUNLEVEL=1 apt-get',
    why: 'it installs packages',
  },
  {
    page: 'docs/database.md',
    begins: 'CREATE ROLE firelock_owner',
    why: 'roles belong to a whole server, which other tests use',
    doneBy: 'test/daemon/access/database-roles.test.ts',
  },
  {
    page: 'docs/database.md',
    begins: 'GRANT USAGE ON SCHEMA',
    why: 'roles belong to a whole server, and its dots stand for tables',
    doneBy: 'test/daemon/access/database-roles.test.ts',
  },
  {
    page: 'docs/cli.md',
    begins: 'firelock run tail',
    why: 'it goes on until Ctrl-C',
    doneBy: 'test/cli/runs.test.ts',
    check: commandsExist,
  },
  {
    page: 'docs/cli.md',
    begins: 'source <(firelock completion zsh)',
    why: 'it needs zsh',
    doneBy: 'test/cli/program.test.ts',
    check: commandsExist,
  },
  {
    page: 'test/schemathesis/README.md',
    begins: 'python3 -m venv',
    why: 'npm run verify:all does this',
    check: scriptsExist,
  },
  {
    page: 'docs/targets.md',
    begins: '{\n  "type": "http"',
    why: 'it is a part of a schedule or a run, with a secret left out',
    check: isTarget,
  },
  {
    page: 'docs/targets.md',
    begins: '{\n  "runId"',
    why: 'it is what firelock sends',
    doneBy: 'test/docs/targets.test.ts',
  },
  { ...RECEIVER, begins: 'const receiver = createReceiver(' },
  { ...RECEIVER, begins: 'def note(' },
  { ...RECEIVER, begins: '# Which runs were here' },
  { ...RECEIVER, begins: '// note is called' },
  { ...RECEIVER, begins: '\treceiver, err :=' },
  { ...RECEIVER, begins: '# HMAC-SHA256 of stdin' },
  {
    page: 'examples/receivers/README.md',
    begins: 'pip install ../../clients/python',
    why: 'each line goes on until Ctrl-C, and needs a language',
    doneBy: 'test/examples/receivers.test.ts',
    check: scriptsExist,
  },
  {
    page: 'clients/typescript/README.md',
    begins: 'import { JsonText, Problem',
    why: 'it calls a daemon that only its reader has',
    doneBy: 'test/client/package.test.ts',
    check: usesTheClient,
  },
  {
    page: 'clients/typescript/README.md',
    begins: "import { createServer } from 'node:http'",
    why: 'its `print` is left to the reader',
    doneBy: 'test/client/receiver.test.ts',
    check: usesTheClient,
  },
  {
    page: 'clients/typescript/README.md',
    begins: 'import { Refused, work }',
    why: 'its `render` is left to the reader',
    doneBy: 'test/client/vectors.test.ts',
    check: usesTheClient,
  },
  ...[
    ...[
      'pip install',
      'import os\nimport signal',
      'import os\nfrom wsgiref',
      'python3 -m venv',
      'python3 -m unittest',
    ].map((begins) => ({ page: 'clients/python/README.md', begins })),
    ...[
      'go mod edit',
      'package main\n\nimport (\n\t"context"',
      'package main\n\nimport (\n\t"fmt"',
      'cd clients/go',
    ].map((begins) => ({ page: 'clients/go/README.md', begins })),
  ].map((listed) => ({
    ...listed,
    why: 'it needs another language, and some of it fetches packages: npm run clients:check',
    doneBy: 'test/client/other-languages.test.ts',
  })),
];

export function listingOf({ page, text }: Block): Listed | undefined {
  return LISTED.find((listed) => listed.page === page && text.startsWith(listed.begins));
}

const read = (...path: string[]) => readFileSync(join(root, ...path), 'utf8');

/** Each `npm run NAME`, `npm start` and `npm test` is a script of package.json. */
export function scriptsExist(text: string): void {
  const { scripts } = JSON.parse(read('package.json')) as { scripts: Record<string, string> };
  for (const [, name = ''] of text.matchAll(/\bnpm (?:run )?(start|test|(?<=run )[\w:-]+)/g))
    expect(Object.keys(scripts)).toContain(name);
}

/** Each line's command of firelock exists, with these options. */
function commandsExist(text: string): void {
  const commands = [...text.matchAll(/(?:firelock|npm start (?:-s )?--) ([^|<>()#&;\n]+)/g)];
  expect(commands.length).toBeGreaterThan(0);
  for (const [, command = ''] of commands) acceptsCommand(command);
}

/** Each `--set PATH=` is a value of the Helm chart. */
function chartHasValues(text: string): void {
  const values: unknown = parse(read('deploy/helm/firelock/values.yaml'));
  const paths = [...text.matchAll(/--set ([\w.]+)=/g)].map(([, path = '']) => path);
  expect(paths.length).toBeGreaterThan(0);
  for (const path of paths) expect(values).toHaveProperty(path);
}

/** It is YAML, and each alert that its rules name exists. */
function namesAlerts(text: string): void {
  const { inhibit_rules: rules } = parse(text) as { inhibit_rules: Record<string, string[]>[] };
  const alerts = [...read('deploy/helm/firelock/files/alerts.yml').matchAll(/alert: (\w+)/g)].map(
    ([, name = '']) => name,
  );
  for (const rule of rules)
    for (const matcher of [...(rule['source_matchers'] ?? []), ...(rule['target_matchers'] ?? [])]) {
      const [, pattern] = /^alertname =~ "(.*)"$/.exec(matcher) ?? [];
      if (pattern === undefined) continue;
      for (const one of pattern.split('|'))
        expect(alerts.some((alert) => new RegExp(`^(?:${one})$`).test(alert))).toBe(true);
    }
}

const PACKAGE: Readonly<Record<string, object>> = {
  'firelock-client': client,
  'firelock-client/receiver': receiver,
  'firelock-client/file-store': fileStore,
  'firelock-client/worker': worker,
};

/** The API takes it as a target, once a secret stands where the page has dots. */
function isTarget(text: string): void {
  expect(text).toContain('"whsec_…"');
  const target: unknown = JSON.parse(text.replace('whsec_…', secretOf(1)));
  expect(targetInput.safeParse(target).error?.issues).toBeUndefined();
}

/** What it imports of the client is there, and so are the calls that it makes of `firelock`. */
function usesTheClient(text: string): void {
  const imports = [...text.matchAll(/^import \{ (.+) \} from '(firelock-client.*)';$/gm)];
  expect(imports.length).toBeGreaterThan(0);
  for (const [, names = '', module = ''] of imports)
    expect(Object.keys(PACKAGE[module] ?? {})).toEqual(expect.arrayContaining(names.split(', ')));
  const methods = Object.keys(client.createClient({ url: 'http://127.0.0.1' }));
  for (const [, method = ''] of text.matchAll(/\bfirelock\.(\w+)/g)) expect(methods).toContain(method);
}
