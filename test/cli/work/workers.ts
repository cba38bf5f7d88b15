import { onTestFinished } from 'vitest';
import { firelock } from '../cli.ts';
import { tokenOf } from '../../examples/program.ts';
import type { Variables } from '../../support/daemon.ts';
import { QUICK_START } from '../../support/runner/quick-start.ts';
import { type Program, outputOf, startProgram } from '../../support/programs.ts';

/** `firelock work …` as a process of its own. It is killed at the end of the test. */
export function startWorker(daemon: { url: string }, args: readonly string[], variables: Variables = {}): Program {
  const program = startProgram({
    args: ['work', ...args],
    variables: { ...QUICK_START, FIRELOCK_URL: daemon.url, FIRELOCK_TOKEN: tokenOf('worker'), ...variables },
  });
  onTestFinished(() => program.kill());
  return program;
}

/** `firelock work …` in this process, which is stopped at the end of the test. */
export function workHere(daemon: { url: string }, args: readonly string[], token = tokenOf('worker')): Worker {
  const stop = new AbortController();
  const lines: string[] = [];
  let done = false;
  const exited = firelock(['work', ...args], {
    url: daemon.url,
    env: { PATH: process.env['PATH'] ?? '', FIRELOCK_TOKEN: token },
    signal: stop.signal,
    onOut: (text) => lines.push(...String(text).trimEnd().split('\n')),
  }).finally(() => (done = true));
  onTestFinished(async () => {
    stop.abort();
    await exited;
  });
  return { ...outputOf(lines, () => done), exited, stop: () => stop.abort() };
}

interface Worker extends ReturnType<typeof outputOf> {
  exited: ReturnType<typeof firelock>;
  stop: () => void;
}
