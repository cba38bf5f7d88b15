/**
 * The OpenAPI document against a real daemon: schemathesis generates requests from it, right and wrong ones, and compares
 * every answer with what is documented. test/schemathesis/README.md says more.
 *
 *     npm run schemathesis [-- --report=FILE] [arguments of `st run`]     FILE gets {"passed": N, "failed": M}
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
const REPORT = '--report=';
const report = process.argv.find((argument) => argument.startsWith(REPORT))?.slice(REPORT.length);
const rest = process.argv.slice(2).filter((argument) => !argument.startsWith(REPORT));
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
  let hasEnded = false;
  const ended = once(child, 'close').then(([code, signal]: unknown[]) => {
    hasEnded = true;
    return code ?? signal;
  });
  return {
    url: () =>
      until(() => {
        if (hasEnded) throw new Error(`the daemon did not start:\n${lines.join('\n')}`);
        return /listens on (http:[^ "]+:\d+)/.exec(lines.join('\n'))?.[1] ?? null;
      }),
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

/** Of the operations of the document, those that did all that was asked of them. */
async function callSchemathesis(url: string, token: string): Promise<Tally> {
  const file = join(directory, 'report.json');
  const tests = join(root, 'test', 'schemathesis');
  const config = ['--config-file', join(tests, 'schemathesis.toml')];
  const options = ['run', `${url}/openapi.json`, '--report-json-path', file, '--no-color', ...rest];
  const child = spawn(program(), [...config, ...options], {
    // It keeps files where it runs.
    cwd: directory,
    env: { ...process.env, FIRELOCK_TOKEN: token, SCHEMATHESIS_HOOKS: join(tests, 'hooks.py') },
    stdio: ['ignore', 'inherit', 'inherit'],
  });
  const [code] = (await once(child, 'exit')) as [number | null];
  if (!existsSync(file)) return { passed: 0, failed: 1 };
  const { operations, failures } = JSON.parse(readFileSync(file, 'utf8')) as Report;
  const failed = new Set(failures.flatMap((failure) => failure.operations)).size;
  return { passed: operations.tested - failed, failed: failed === 0 && code !== 0 ? 1 : failed };
}

interface Report {
  operations: { tested: number };
  failures: { operations: string[] }[];
}

/** As the README of test/schemathesis installs it, or whichever there is. */
function program(): string {
  const installed = join(root, 'node_modules', '.cache', 'schemathesis', 'bin', 'st');
  return existsSync(installed) ? installed : 'st';
}
