// @module-tag long
import { chmod, mkdtemp, readdir, realpath, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { serverPid } from '../../local-postgres/user-process.ts';
import { type Program, startProgram } from '../../support/programs.ts';
import { QUICK_START } from '../../support/runner/quick-start.ts';
import { until } from '../../support/until.ts';

/** Set where the command is called: none of it may reach the demo. */
const OF_THE_CALLER = {
  DATABASE_URL: 'postgres://nobody@127.0.0.1:1/nothing',
  FIRELOCK_DISPATCH_CONCURRENCY: 'wrong',
  FIRELOCK_URL: 'http://127.0.0.1:1',
  PORT: 'wrong',
  LOG_LEVEL: 'silent',
};

let directory: string;
let command: Program;

beforeEach(async () => {
  directory = await realpath(await mkdtemp(join(tmpdir(), 'firelock-demo-test-')));
  // As root the server runs as someone else, who has to get in.
  await chmod(directory, 0o755);
});

afterEach(async () => {
  command.signal('SIGKILL');
  // The keeper is to clean up; without that this would wait for ever.
  await nothingIsLeft();
  await rm(directory, { recursive: true });
});

/** Starts the command; everything that it makes is below `directory`. */
function start(...args: string[]): Promise<number | NodeJS.Signals> {
  const variables = { ...QUICK_START, ...OF_THE_CALLER, TMPDIR: directory };
  command = startProgram({ args: ['demo', ...args], variables });
  return command.exited;
}

/** Every instance that has been ready, and PostgreSQL. */
async function processes(): Promise<number[]> {
  await until(() => command.lines.find((line) => line.includes('instance 3 is ready')) ?? null);
  const pids = command.lines.flatMap((line) => (/is ready: pid (\d+)/.exec(line)?.[1] ?? []) as string[]);
  const [made = ''] = await readdir(directory);
  const server = await serverPid(join(directory, made));
  return [...pids.map(Number), server ?? 0];
}

async function nothingIsLeft(): Promise<void> {
  await until(async () => ((await readdir(directory)).length === 0 ? true : null));
}

function isAlive(pid: number): boolean {
  try {
    return process.kill(pid, 0);
  } catch {
    return false;
  }
}

test('the demo kills instances, finds that no fire was lost, and leaves nothing behind', async () => {
  const ended = start('--seconds', '14', '--schedules', '60', '--kill-every', '4');
  const pids = await processes();
  expect(pids.filter(isAlive)).toHaveLength(4);
  // The exit code alone would not say which promise it is about.
  expect(await ended, command.lines.slice(-25).join('\n')).toBe(0);
  const text = command.lines.join('\n');
  expect(text).toMatch(/kill -9 of instance \d \(pid \d+\), which held \d+ runs?/);
  const told = (name: string) => Number(new RegExp(`^  ${name} +([\\d,]+)$`, 'm').exec(text)?.[1]?.replace(',', ''));
  expect(told('instances killed with -9')).toBeGreaterThan(0);
  const due = told('due, by the rules of the schedules');
  expect(due).toBeGreaterThan(400);
  expect(told('delivered')).toBe(due);
  expect([told('missing'), told('delivered again for no reason')]).toEqual([0, 0]);
  // The instance may hold nothing when it is killed; what it held is lost, and recovered.
  expect(told('recovered')).toBe(told('runs that were lost with them'));
  expect(command.lines.at(-1)).toBe('No fire was lost.');
  expect([await readdir(directory), pids.filter(isAlive)]).toEqual([[], []]);
});

test('Ctrl-C ends the demo with all that belongs to it', async () => {
  const ended = start();
  const pids = await processes();
  command.signal('SIGINT');
  // A shell and npm both pass it on.
  command.signal('SIGINT');
  expect(await ended).toBe(130);
  expect(command.lines.at(-1)).toBe('firelock: interrupted; the demo has removed everything that it started');
  expect([await readdir(directory), pids.filter(isAlive)]).toEqual([[], []]);
});

test('when the demo itself is killed with -9, its processes and its directory go as well', async () => {
  const ended = start();
  const pids = await processes();
  expect(pids.filter(isAlive)).toHaveLength(4);
  command.signal('SIGKILL');
  expect(await ended).toBe('SIGKILL');
  await nothingIsLeft();
  expect(pids.filter(isAlive)).toEqual([]);
});
