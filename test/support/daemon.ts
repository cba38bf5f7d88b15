import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import type { Readable } from 'node:stream';
import { onTestFinished } from 'vitest';
import { QUICK_START } from './runner/quick-start.ts';
import { until } from './until.ts';

export type Variables = Record<string, string>;

interface LogLine {
  level: number;
  msg: string;
  [field: string]: unknown;
}

interface ApiAnswer {
  status: number;
  headers: Headers;
  body: unknown;
}

/** A daemon's process. What it still is at the end of the test that started it, it is killed. */
interface Process {
  readonly pid: number;
  /** What it has written so far, to either stream. */
  readonly lines: readonly string[];
  /** Those of the lines that are JSON, as all are once the configuration is read. */
  log(): LogLine[];
  /** Resolves with the first such line; fails where the process ends without it. */
  logged(message: RegExp): Promise<LogLine>;
  signal(name: NodeJS.Signals): void;
  /** The exit code, or the name of the signal that ended it; after its last line. */
  readonly exited: Promise<number | NodeJS.Signals>;
}

export interface Daemon extends Process {
  readonly url: string;
  readonly port: number;
  call(method: string, path: string, body?: unknown, headers?: Record<string, string>): Promise<ApiAnswer>;
  /** Resolves once /readyz says so. */
  ready(): Promise<void>;
}

const root = join(import.meta.dirname, '..', '..');
const running = new Set<ChildProcess>();
process.once('exit', () => {
  for (const child of running) child.kill('SIGKILL');
});

/** Starts the daemon with these variables and none of this process's own but where programs and homes are. */
export function spawnDaemon(variables: Variables): Process {
  return follow(
    spawn(process.execPath, [join(root, 'src', 'main.ts')], {
      cwd: root,
      env: {
        PATH: process.env['PATH'],
        HOME: process.env['HOME'],
        ...QUICK_START,
        ...variables,
      },
      stdio: ['ignore', 'pipe', 'pipe'],
    }),
  );
}

/** Starts a daemon and resolves when it listens, on a free port unless PORT says otherwise; it may not be ready yet. */
export async function startDaemon(variables: Variables): Promise<Daemon> {
  const started = spawnDaemon({ PORT: '0', ...variables });
  const { msg } = await started.logged(/^firelock \S+ listens on /);
  const url = /http:\S+:\d+/.exec(msg)?.[0] ?? '';
  return {
    ...started,
    url,
    port: Number(new URL(url).port),
    call: (method, path, body, headers) => call(url, method, path, body, headers),
    ready: () => until(async () => ((await call(url, 'GET', '/readyz')).status === 200 ? undefined : null)),
  };
}

/** A daemon on this database, ready. */
export async function readyDaemon(databaseUrl: string, variables: Variables = {}): Promise<Daemon> {
  const daemon = await startDaemon({ DATABASE_URL: databaseUrl, ...variables });
  await daemon.ready();
  return daemon;
}

function follow(child: ChildProcess & { stdout: Readable; stderr: Readable }): Process {
  running.add(child);
  const lines: string[] = [];
  for (const input of [child.stdout, child.stderr]) {
    createInterface({ input }).on('line', (line) => lines.push(line));
  }
  let ended = false;
  const exited = once(child, 'close').then(([code, signal]: unknown[]) => {
    ended = true;
    running.delete(child);
    return (code ?? signal) as number | NodeJS.Signals;
  });
  onTestFinished(async () => {
    child.kill('SIGKILL');
    await exited;
  });
  const log = () => lines.filter((line) => line.startsWith('{')).map((line) => JSON.parse(line) as LogLine);
  return {
    pid: child.pid ?? 0,
    lines,
    log,
    logged: (message) =>
      until(() => {
        const found = log().find(({ msg }) => message.test(msg));
        if (found === undefined && ended) throw new Error(`ended without ${message}:\n${lines.join('\n')}`);
        return found ?? null;
      }),
    signal: (name) => {
      child.kill(name);
    },
    exited,
  };
}

async function call(
  url: string,
  method: string,
  path: string,
  body?: unknown,
  headers: Record<string, string> = {},
): Promise<ApiAnswer> {
  const response = await fetch(url + path, {
    method,
    ...(body === undefined
      ? { headers }
      : { headers: { 'content-type': 'application/json', ...headers }, body: JSON.stringify(body) }),
  });
  const text = await response.text();
  const isJson = response.headers.get('content-type')?.includes('json') === true;
  return { status: response.status, headers: response.headers, body: isJson ? JSON.parse(text) : text };
}
