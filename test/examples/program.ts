import { join, resolve } from 'node:path';
import { afterAll, beforeAll, onTestFinished } from 'vitest';
import { ROLES, type Role } from '../../src/core/access/roles.ts';
import { tokenLine } from '../../src/core/access/token.ts';
import { newToken } from '../api/access/support.ts';
import { databaseOfTest } from '../support/of-test.ts';
import { createMigratedDatabase } from '../support/postgres/migrated-database.ts';
import { call } from '../support/calls.ts';
import { type Variables, readyDaemon } from '../support/daemon.ts';
import { startDaemonHere } from '../support/daemon-here.ts';
import { type Daemon, type Program, startCommand } from '../support/programs.ts';
import { until } from '../support/until.ts';

export interface AnsweredRun {
  id: string;
  scheduleId: string | null;
  status: string;
  attempts: number;
  failures: number;
  executionId: string | null;
  result: { statusCode: number | null; body: string } | null;
  error: { kind: string; message: string } | null;
  workerId: string | null;
  progress: number | null;
  dependsOn: string[];
  key: string | null;
  scheduledFor: string;
  parentRunId: string | null;
}

const examples = join(import.meta.dirname, '..', '..', 'examples');
/** The examples that call firelock, each with a token of the role that it says it needs. */
const ROLES_OF_EXAMPLES: Record<string, Role> = {
  'reminder.sh': 'operator',
  'pipeline/submit.mjs': 'operator',
  'callback-job/schedule.sh': 'admin',
  'callback-job/receiver.mjs': 'worker',
};
const tokens = new Map(ROLES.map((role) => [role, newToken(role, role)]));

/** What the tests ask of a daemon. */
type Api = Pick<Daemon, 'url' | 'call'>;

/** One daemon for the tests of a file, on a database of its own; it asks for tokens. */
export function sharedDaemon(more: Variables = {}): Api {
  const ends: (() => Promise<void>)[] = [];
  let url = '';
  beforeAll(async () => {
    const database = await createMigratedDatabase();
    ends.push(() => database.drop());
    const lines = [...tokens.values()].map(({ known }) => tokenLine(known));
    const daemon = await startDaemonHere(database.url, { FIRELOCK_API_TOKENS: lines.join(','), ...more });
    ends.push(() => daemon.stop());
    await daemon.ready();
    ({ url } = daemon);
  });
  afterAll(async () => {
    for (const end of ends.reverse()) await end();
  });
  return {
    get url() {
      return url;
    },
    call: (method, path, body) => {
      const headers = { authorization: `Bearer ${tokenOf('admin')}` };
      return call(url + path, method, { body, headers });
    },
  };
}

/** For a test that has its daemon die; with its database gone at the end of the test. */
export async function mortalDaemon(): Promise<{ daemon: Daemon; databaseUrl: string }> {
  const database = await databaseOfTest();
  return { daemon: await readyDaemon(database.url), databaseUrl: database.url };
}

/** Starts examples/FILE (or one elsewhere, by its whole path), by its own first line if it is a script. What is left of it, or of what it started, is killed at the end. */
export function runExample(file: string, parameters: readonly string[], variables: Variables): Program {
  const path = resolve(examples, file);
  const command = /\.m?js$/.test(file) ? [process.execPath, path] : [path];
  const role = ROLES_OF_EXAMPLES[file];
  const token = role === undefined ? {} : { FIRELOCK_TOKEN: tokenOf(role) };
  return start([...command, ...parameters], { ...token, ...variables });
}

/** As an operator types it into a shell. */
export function runInShell(line: string): Program {
  return start(['/bin/sh', '-c', line], { FIRELOCK_TOKEN: tokenOf('operator') });
}

/** A token that shared daemons know. */
export function tokenOf(role: Role): string {
  return tokens.get(role)?.secret ?? '';
}

/** A program that serves HTTP, on a free port, once it listens. */
export async function serveExample(file: string, variables: Variables): Promise<Program & { url: string }> {
  const program = runExample(file, [], { PORT: '0', ...variables });
  const line = await program.said(/ listens on http/);
  return { ...program, url: /http:\S+/.exec(line)?.[0] ?? '' };
}

/** A run for the workers of a queue, tried again soon; answers its id. */
export async function enqueue(daemon: Api, queue: string, payload: unknown): Promise<string> {
  const { status, body } = await daemon.call('POST', '/api/v1/runs', {
    target: { type: 'pull', queue },
    payload,
    retry: { minBackoffSeconds: 1 },
  });
  if (status !== 201) throw new Error(`POST /runs answered ${status}: ${JSON.stringify(body)}`);
  return (body as AnsweredRun).id;
}

export async function runById(daemon: Api, id: string): Promise<AnsweredRun> {
  return (await daemon.call('GET', `/api/v1/runs/${id}`)).body as AnsweredRun;
}

export async function listRuns(daemon: Api, query = ''): Promise<AnsweredRun[]> {
  return ((await daemon.call('GET', `/api/v1/runs?limit=500${query}`)).body as { items: AnsweredRun[] }).items;
}

/** Resolves with the run once it is so. */
export function runOnce(daemon: Api, id: string, isSo: (run: AnsweredRun) => boolean): Promise<AnsweredRun> {
  return until(async () => {
    const run = await runById(daemon, id);
    return isSo(run) ? run : null;
  });
}

function start([command = '', ...parameters]: readonly string[], variables: Variables): Program {
  const program = startCommand(command, parameters, {
    env: { PATH: process.env['PATH'], HOME: process.env['HOME'], ...variables },
    stdio: ['ignore', 'pipe', 'pipe'],
    detached: true,
  });
  onTestFinished(() => program.kill());
  return program;
}
