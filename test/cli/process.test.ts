import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { join } from 'node:path';
import { text } from 'node:stream/consumers';
import { beforeAll, expect, onTestFinished, test } from 'vitest';
import { SCHEDULE, sharedApi } from '../api/api.ts';
import { QUICK_START } from '../support/runner/quick-start.ts';

const api = sharedApi();
beforeAll(async () => {
  await api.call('PUT', '/api/v1/schedules/work', SCHEDULE);
});

const main = join(import.meta.dirname, '..', '..', 'src', 'main.ts');

function start(...args: string[]) {
  const child = spawn(process.execPath, [main, ...args], {
    env: { PATH: process.env['PATH'], ...QUICK_START, FIRELOCK_URL: api.url, TZ: 'Europe/Berlin' },
    stdio: ['pipe', 'pipe', 'pipe'],
  });
  const exited = once(child, 'close') as Promise<[code: number | null, signal: string | null]>;
  onTestFinished(async () => {
    child.kill('SIGKILL');
    await exited;
  });
  return { child, exited, err: text(child.stderr) };
}

test('a process reads standard input, prints, and ends with the exit code; its zone is that of the machine', async () => {
  const { child, exited, err } = start('schedule', 'set', 'work', '--payload-file', '-', '--no-json');
  const out = text(child.stdout);
  child.stdin.end('{"n": 1.0}');
  expect(await exited).toEqual([0, null]);
  expect(await out).toMatch(/^changed schedule work, version 2; next fire .* 12:00:00Z = 13:00:00\+01:00\n$/);
  expect(await err).toBe('');
  expect((await api.call('GET', '/api/v1/schedules/work')).text).toContain('"payload":{"n": 1.0}');
});

test('Ctrl-C ends a tail cleanly, and so does a reader that closes the pipe', async () => {
  await api.call('POST', '/api/v1/schedules/work/fire');
  const [interrupted, unread] = [start('run', 'tail'), start('run', 'tail', '--interval', '0.05')];
  await Promise.all([once(interrupted.child.stdout, 'data'), once(unread.child.stdout, 'data')]);
  interrupted.child.kill('SIGINT');
  expect([await interrupted.exited, await interrupted.err]).toEqual([[0, null], '']);
  unread.child.stdout.destroy();
  await api.call('POST', '/api/v1/schedules/work/fire');
  expect([await unread.exited, await unread.err]).toEqual([[1, null], '']);
});
