import { fork } from 'node:child_process';
import { once } from 'node:events';
import { extname, join } from 'node:path';
import { CliError, EXIT, failure } from '../exit-codes.ts';
import type { Surroundings } from '../surroundings.ts';

export interface DemoOptions {
  seconds: number;
  schedules: number;
  killEvery: number;
}

/** What programs and Node itself need. Nothing of the caller's own configuration of firelock reaches the demo's instances. */
const KEPT = [
  ...['PATH', 'HOME', 'TMPDIR', 'TEMP', 'TMP', 'SystemRoot', 'LD_LIBRARY_PATH'],
  ...['NODE_OPTIONS', 'NODE_COMPILE_CACHE'],
  // As root, PostgreSQL runs as the user who called sudo.
  ...['SUDO_UID', 'SUDO_GID'],
];

/**
 * `firelock demo`; answers the exit code. All of it belongs to a process of its own (`demo-process.ts`), which removes everything once this
 * one is gone, however that came about: the channel to it closes then.
 */
export async function runDemo(options: DemoOptions, { signal, env }: Surroundings): Promise<number> {
  const file = join(import.meta.dirname, `demo-process${extname(import.meta.filename)}`);
  const child = fork(file, [JSON.stringify(options)], {
    // A session of its own: whatever a terminal sends ends this process, and the other one cleans up.
    detached: true,
    // Not this process's: an --env-file among them would be the caller's configuration.
    execArgv: [],
    env: Object.fromEntries(Object.entries(env).filter(([name]) => KEPT.includes(name))),
    stdio: ['ignore', 'inherit', 'inherit', 'ipc'],
  });
  const exited = once(child, 'exit');
  const leave = () => {
    if (child.connected) child.disconnect();
  };
  signal.addEventListener('abort', leave);
  if (signal.aborted) leave();
  const [code] = (await exited) as [number | null];
  if (code === null) {
    killGroup(child.pid);
    throw failure('the process that keeps PostgreSQL and the instances was killed');
  }
  if (code !== EXIT.done && signal.aborted)
    throw new CliError(EXIT.interrupted, 'interrupted; the demo has removed everything that it started');
  return code;
}

/** It left its instances behind. */
function killGroup(pid: number | undefined): void {
  try {
    if (pid !== undefined) process.kill(-pid, 'SIGKILL');
  } catch {
    // There are none any more.
  }
}
