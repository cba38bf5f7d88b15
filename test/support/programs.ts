import { type ChildProcess, type SpawnOptions, spawn } from 'node:child_process';
import { once } from 'node:events';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { type Answer, call, isReady } from './calls.ts';
import { until } from './until.ts';

interface LogLine {
  level: number;
  msg: string;
  [field: string]: unknown;
}

/** What it has said so far, to either stream; nothing where its output goes elsewhere. */
interface Output {
  readonly lines: readonly string[];
  /** Resolves with the first line that matches, from a line on; rejects if the process ends without it. */
  said(what: RegExp, from?: number): Promise<string>;
  /** Those of the lines that are JSON, as all of a daemon are once its configuration is read. */
  log(): LogLine[];
  /** Resolves with the first such line; rejects if the process ends without it. */
  logged(message: RegExp): Promise<LogLine>;
}

/** A process that this one has started. It is killed when this one ends. */
export interface Program extends Output {
  readonly pid: number;
  /** What it has said, stream by stream. */
  readonly text: Readonly<Record<'out' | 'err', string>>;
  isRunning(): boolean;
  signal(name: NodeJS.Signals): void;
  /** Kills it, with its process group if it leads one; resolves when it is gone. */
  kill(): Promise<void>;
  /** The exit code, or the name of the signal that ended it; after its last line. */
  readonly exited: Promise<number | NodeJS.Signals>;
}

/** A daemon, whether it is a process of its own or not. */
export interface AnyDaemon extends Output {
  readonly url: string;
  readonly port: number;
  call(method: string, path: string, body?: unknown, headers?: Record<string, string>): Promise<Answer>;
}

export interface Daemon extends Program, AnyDaemon {
  /** Resolves once /readyz says so. */
  ready(): Promise<void>;
}

interface ProgramOptions {
  /** What its environment has, beside where programs and homes are. */
  variables: NodeJS.ProcessEnv;
  /** The repository, or a copy of it. */
  root?: string;
  /** Its main module, unless it is the daemon's. */
  main?: string;
  args?: readonly string[];
  nodeOptions?: readonly string[];
  /** Where its output goes instead of into `lines`. */
  output?: 'inherit' | number;
}

const ROOT = join(import.meta.dirname, '..', '..');
const running = new Set<() => void>();
process.once('exit', () => {
  for (const kill of running) kill();
});

/** Starts firelock with these variables and none of this process's own but where programs and homes are. */
export function startProgram(options: ProgramOptions): Program {
  const { root = ROOT, main = join(root, 'src', 'main.ts'), args = [], nodeOptions = [] } = options;
  const { PATH, HOME } = process.env;
  const output = options.output ?? 'pipe';
  return startCommand(process.execPath, [...nodeOptions, main, ...args], {
    cwd: root,
    env: { PATH, HOME, ...options.variables },
    stdio: ['ignore', output, output],
  });
}

/** `detached`: it leads a process group of its own. */
export function startCommand(command: string, args: readonly string[], options: SpawnOptions): Program {
  const child = spawn(command, args, options);
  const kill = () => (options.detached === true ? killGroup(child) : void child.kill('SIGKILL'));
  running.add(kill);
  const lines: string[] = [];
  const text = { out: '', err: '' };
  for (const [name, stream] of [
    ['out', child.stdout],
    ['err', child.stderr],
  ] as const) {
    if (!stream) continue;
    stream.setEncoding('utf8').on('data', (piece: string) => (text[name] += piece));
    createInterface({ input: stream }).on('line', (line) => lines.push(line));
  }
  let hasClosed = false;
  const exited = once(child, 'close').then(([code, signal]: unknown[]) => {
    hasClosed = true;
    // Of a group others may be left.
    if (options.detached !== true) running.delete(kill);
    return (code ?? signal) as number | NodeJS.Signals;
  });
  return {
    ...outputOf(lines, () => hasClosed),
    pid: child.pid ?? 0,
    text,
    isRunning: () => child.exitCode === null && child.signalCode === null,
    signal: (name) => {
      child.kill(name);
    },
    kill: async () => {
      kill();
      running.delete(kill);
      await exited;
    },
    exited,
  };
}

/** Of these lines, to which more come until it has ended. */
export function outputOf(lines: readonly string[], hasEnded: () => boolean): Output {
  const found = <T>(what: RegExp, find: () => T | undefined) =>
    until(() => {
      const one = find();
      if (one === undefined && hasEnded()) throw new Error(`ended without ${what}:\n${lines.join('\n')}`);
      return one ?? null;
    });
  const log = () => lines.filter((line) => line.startsWith('{')).map((line) => JSON.parse(line) as LogLine);
  return {
    lines,
    said: (what, from = 0) => found(what, () => lines.slice(from).find((line) => what.test(line))),
    log,
    logged: (message) => found(message, () => log().find(({ msg }) => message.test(msg))),
  };
}

/** Resolves when a daemon listens; it may not be ready yet. */
export async function listening(program: Program): Promise<Daemon> {
  const { msg } = await program.logged(/^firelock \S+ listens on /);
  const url = /http:\S+:\d+/.exec(msg)?.[0] ?? '';
  return { ...program, ...servedAt(url), ready: () => ready(program, url) };
}

export function servedAt(url: string): Pick<AnyDaemon, 'url' | 'port' | 'call'> {
  return {
    url,
    port: Number(new URL(url).port),
    call: (method, path, body, headers = {}) => call(url + path, method, { body, headers }),
  };
}

/** Resolves once /readyz of a daemon says so; rejects if it ends before, or the time is up. */
export async function ready(program: Program, url: string, limitMs?: number): Promise<void> {
  await until(async () => {
    if (!program.isRunning()) throw new Error('the daemon ended before it was ready');
    return (await isReady(url)) || null;
  }, limitMs);
}

function killGroup({ pid }: ChildProcess): void {
  if (pid === undefined) return;
  try {
    process.kill(-pid, 'SIGKILL');
  } catch {
    // All of them have ended.
  }
}
