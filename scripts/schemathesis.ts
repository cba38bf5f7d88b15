/**
 * The OpenAPI document against a real daemon: schemathesis generates requests from it, right and wrong ones, and compares
 * every answer with what is documented. test/schemathesis/README.md says more.
 *
 *     npm run schemathesis [-- --report=FILE] [arguments of `st run`]     FILE gets {"passed": N, "failed": M}
 */
import { spawn } from 'node:child_process';
import { randomInt } from 'node:crypto';
import { once } from 'node:events';
import { existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createToken, tokenHash } from '../src/core/access/token.ts';
import { isReady } from '../test/support/calls.ts';
import { startCluster } from '../test/support/postgres/server.ts';
import { type Program, listening, startProgram } from '../test/support/programs.ts';
import { QUICK_START } from '../test/support/runner/quick-start.ts';
import { findProgram } from './support/programs-here.ts';

const root = join(import.meta.dirname, '..');
const REPORT = '--report=';
const report = process.argv.find((argument) => argument.startsWith(REPORT))?.slice(REPORT.length);
const rest = process.argv.slice(2).filter((argument) => !argument.startsWith(REPORT));
// As the README of test/schemathesis installs it, or whichever there is.
const installed = join(root, 'node_modules', '.cache', 'schemathesis', 'bin', 'st');
const schemathesis = existsSync(installed) ? installed : findProgram('st');
if (schemathesis === undefined) {
  console.error('there is no schemathesis; test/schemathesis/README.md says how it is installed');
  process.exitCode = 2;
} else {
  await compare(schemathesis);
}

interface Tally {
  /** Operations of the document, and what is asked of the daemon as a whole. */
  passed: number;
  failed: number;
}

async function compare(schemathesis: string): Promise<void> {
  const directory = mkdtempSync(join(tmpdir(), 'firelock-schemathesis-'));
  const cluster = await startCluster();
  try {
    const tally = await run(await cluster.createDatabase(), { schemathesis, directory });
    console.log(`schemathesis: ${tally.passed} passed, ${tally.failed} failed`);
    if (report !== undefined) writeFileSync(report, JSON.stringify(tally));
    if (tally.failed > 0) process.exitCode = 1;
  } finally {
    await cluster.stop();
    rmSync(directory, { recursive: true, force: true });
  }
}

interface Where {
  /** The program. */
  schemathesis: string;
  /** It keeps files where it runs. */
  directory: string;
}

async function run(databaseUrl: string, where: Where): Promise<Tally> {
  const token = createToken((end) => randomInt(end));
  const program = startDaemon(databaseUrl, token);
  try {
    const daemon = await listening(program);
    await daemon.ready();
    const operations = await callSchemathesis(daemon.url, token, where);
    const notReady = (await isReady(daemon.url)) ? [] : ['it is no longer ready'];
    const faults = [...faultsOf(program), ...notReady, ...(await stop(program))];
    for (const fault of faults) console.error(`== the daemon: ${fault}`);
    return {
      passed: operations.passed + (faults.length === 0 ? 1 : 0),
      failed: operations.failed + faults.length,
    };
  } finally {
    await stop(program);
  }
}

/** It sends nothing anywhere: what the requests name as targets may be anybody's. */
function startDaemon(databaseUrl: string, token: string): Program {
  return startProgram({
    variables: {
      ...QUICK_START,
      DATABASE_URL: databaseUrl,
      PORT: '0',
      FIRELOCK_API_TOKENS: `schemathesis:admin:${tokenHash(token).toString('hex')}`,
      FIRELOCK_TOKEN_REQUESTS_PER_SECOND: '1000000',
      FIRELOCK_TARGET_DENY_CIDRS: '0.0.0.0/0,::/0',
    },
  });
}

/** Nothing that a client sends is an error of the server, nor a value that only the database refuses. */
function faultsOf({ lines }: Program): string[] {
  return lines.filter((line) => /unforeseen error|the database cannot hold/.test(line));
}

async function stop(program: Program): Promise<string[]> {
  program.signal('SIGTERM');
  const code = await program.exited;
  return code === 0 ? [] : [`ended with ${code}`];
}

/** Of the operations of the document, those that did all that was asked of them. */
async function callSchemathesis(url: string, token: string, { schemathesis, directory }: Where): Promise<Tally> {
  const file = join(directory, 'report.json');
  const tests = join(root, 'test', 'schemathesis');
  const config = ['--config-file', join(tests, 'schemathesis.toml')];
  const options = ['run', `${url}/openapi.json`, '--report-json-path', file, '--no-color', ...rest];
  const child = spawn(schemathesis, [...config, ...options], {
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
