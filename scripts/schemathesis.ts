/**
 * The OpenAPI document against a real daemon: schemathesis generates requests from it, right and wrong ones, and compares
 * every answer with what is documented. test/schemathesis/README.md says more.
 *
 *     npm run schemathesis [-- --report=FILE] [-- arguments of `st run`]     FILE gets {"passed": N, "failed": M}
 */
import { type ChildProcess, spawn } from 'node:child_process';
import { randomInt } from 'node:crypto';
import { once } from 'node:events';
import { existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import type { Readable } from 'node:stream';
import { createToken, tokenHash } from '../src/core/access/token.ts';
import { startCluster } from '../test/support/postgres/cluster.ts';
import { QUICK_START } from '../test/support/runner/quick-start.ts';
import { until } from '../test/support/until.ts';

const root = join(import.meta.dirname, '..');
const rest = process.argv.slice(2);
const report = rest.find((argument) => argument.startsWith('--report='))?.slice('--report='.length);
const directory = mkdtempSync(join(tmpdir(), 'firelock-schemathesis-'));
const cluster = await startCluster();
try {
  const tally = await run(await cluster.createDatabase());
  console.log(`schemathesis: ${tally.passed} passed, ${tally.failed} failed`);
  if (report !== undefined) writeFileSync(report, JSON.stringify(tally));
  if (tally.failed > 0) process.exitCode = 1;
} finally {
  await cluster.stop();
  rmSync(directory, { recursive: true, force: true });
}

interface Tally {
  /** Operations of the document, and what is asked of the daemon as a whole. */
  passed: number;
  failed: number;
}

async function run(databaseUrl: string): Promise<Tally> {
  const token = createToken((end) => randomInt(end));
  const daemon = follow(startDaemon(databaseUrl, token));
  try {
    const url = await daemon.url();
    await until(async () => ((await fetch(`${url}/readyz`)).status === 200 ? true : null));
    const operations = await callSchemathesis(url, token);
    const faults = [...daemon.faults(), ...(await isReady(url)), ...(await daemon.stop())];
    for (const fault of faults) console.error(`== the daemon: ${fault}`);
    return {
      passed: operations.passed + (faults.length === 0 ? 1 : 0),
      failed: operations.failed + faults.length,
    };
  } finally {
    await daemon.stop();
  }
}

/** It sends nothing anywhere: what the requests name as targets may be anybody's. */
function startDaemon(databaseUrl: string, token: string) {
  const variables = {
    ...QUICK_START,
    DATABASE_URL: databaseUrl,
    PORT: '0',
    FIRELOCK_API_TOKENS: `schemathesis:admin:${tokenHash(token).toString('hex')}`,
    FIRELOCK_TOKEN_REQUESTS_PER_SECOND: '1000000',
    FIRELOCK_TARGET_DENY_CIDRS: '0.0.0.0/0,::/0',
  };
  return spawn(process.execPath, [join(root, 'src', 'main.ts')], {
    cwd: root,
    env: { PATH: process.env['PATH'], HOME: process.env['HOME'], ...variables },
    stdio: ['ignore', 'pipe', 'pipe'],
  });
}

function follow(child: ChildProcess & { stdout: Readable; stderr: Readable }) {
  const lines: string[] = [];
  for (const input of [child.stdout, child.stderr])
    createInterface({ input }).on('line', (line) => lines.push(line));
  const ended = once(child, 'close').then(([code, signal]: unknown[]) => code ?? signal);
  return {
    url: () => until(() => /listens on (http:[^ "]+:\d+)/.exec(lines.join('\n'))?.[1] ?? null),
    /** Nothing that a client sends is an error of the server, nor a value that only the database refuses. */
    faults: () => lines.filter((line) => /unforeseen error|the database cannot hold/.test(line)),
    stop: async () => {
      child.kill('SIGTERM');
      const code = await ended;
      return code === 0 ? [] : [`ended with ${String(code)}`];
    },
  };
}

async function isReady(url: string): Promise<string[]> {
  const { status } = await fetch(`${url}/readyz`);
  return status === 200 ? [] : [`/readyz answers ${status}`];
}

async function callSchemathesis(url: string, token: string): Promise<Tally> {
  const file = join(directory, 'report.json');
  const config = join(root, 'test', 'schemathesis', 'schemathesis.toml');
  const options = ['--config-file', config, 'run', `${url}/openapi.json`, '--report-json-path', file];
  const child = spawn(
    program(),
    [...options, ...rest.filter((argument) => !argument.startsWith('--report='))],
    {
      cwd: directory,
      env: {
        ...process.env,
        FIRELOCK_TOKEN: token,
        PYTHONUNBUFFERED: '1',
        SCHEMATHESIS_HOOKS: join(root, 'test', 'schemathesis', 'hooks.py'),
      },
      stdio: ['ignore', 'inherit', 'inherit'],
    },
  );
  const [code] = (await once(child, 'exit')) as [number | null];
  if (!existsSync(file)) return { passed: 0, failed: 1 };
  writeFileSync('/tmp/h-input-run/report.json', readFileSync(file));
  return { passed: 1, failed: code === 0 ? 0 : 1 };
}

function program(): string {
  const installed = join(root, 'node_modules', '.cache', 'schemathesis', 'bin', 'st');
  return existsSync(installed) ? installed : 'st';
}
