import { once } from 'node:events';
import { globSync, openSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:net';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { isReady } from '../../support/calls.ts';
import { listenOnLoopback } from '../../support/loopback.ts';
import { type Program, startProgram } from '../../support/programs.ts';
import { until } from '../../support/until.ts';
import { type FaultProxy, startFaultProxy } from './fault-proxy.ts';
import { sourceAddress } from '../checker/history.ts';
import { QUICK_START } from '../../support/runner/quick-start.ts';

interface InstanceOptions {
  /** From 1. */
  number: number;
  /** Of the daemon's source: this repository, or a copy with a fault in it. */
  root: string;
  /** The program to run, for failpoints; else the daemon's own. */
  program?: string;
  proxy: FaultProxy;
  receiverPort: number;
  /** For its log and its fake clock. */
  directory: string;
  variables: Record<string, string>;
}

/** One of the three daemons, over all of its processes. Its API stays at one address. */
export interface Instance {
  readonly name: string;
  readonly url: string;
  readonly proxy: FaultProxy;
  /** The fault that is at work on it, if any: one at a time. */
  busy: string | null;
  /** Seconds by which its wall clock is wrong; a running fake clock follows. Zero at the next start: no fake at all. */
  skew(seconds: number): void;
  start(variables?: Record<string, string>): void;
  running(): boolean;
  pid(): number;
  /** When its last process ended. */
  endedAt(): number;
  signal(name: NodeJS.Signals): void;
  /** Resolves when the present process is gone. */
  gone(): Promise<void>;
  ready(): Promise<boolean>;
  /** Resolves with true when it is ready, with false when the time is up. */
  becomesReady(limitMs: number): Promise<boolean>;
}

/** Why a campaign does not run elsewhere. */
export const NEEDS_LINUX = 'needs Linux: /proc, loopback addresses, signals';
/** Debian's package libfaketime; without it clocks are left alone. */
const [FAKETIME] = globSync('/usr/lib/*/faketime/libfaketime.so.1');
export const CLOCKS_CAN_BE_WRONG = FAKETIME !== undefined;
/** How long SIGUSR2 keeps its event loop from turning. */
export const BLOCK_MS = 6_000;

export async function createInstance(options: InstanceOptions): Promise<Instance> {
  const { number, root, directory, proxy } = options;
  const port = await freePort();
  const url = `http://127.0.0.1:${port}`;
  const log = openSync(join(directory, `instance-${number}.log`), 'a');
  const clockFile = join(directory, `instance-${number}.clock`);
  const preload = pathToFileURL(join(import.meta.dirname, 'instance-preload.ts')).href;
  let program: Program | undefined;
  let processes = 0;
  let skewSeconds = 0;
  let endedAt = 0;

  function start(variables: Record<string, string> = {}): void {
    processes += 1;
    const started = startProgram({
      root,
      ...(options.program === undefined ? {} : { main: options.program }),
      variables: {
        ...QUICK_START,
        NODE_OPTIONS: `${QUICK_START.NODE_OPTIONS} --import=${preload}`,
        CHAOS_SOURCE_ADDRESS: sourceAddress(number, processes),
        CHAOS_RECEIVER_PORT: String(options.receiverPort),
        CHAOS_BLOCK_MS: String(BLOCK_MS),
        CHAOS_ROOT: root,
        DATABASE_URL: proxy.url,
        PORT: String(port),
        ...options.variables,
        ...(skewSeconds === 0 ? {} : fakeClock(clockFile)),
        ...variables,
      },
      output: log,
    });
    void started.exited.then(() => {
      endedAt = Date.now();
    });
    program = started;
  }

  return {
    name: String(number),
    url,
    proxy,
    busy: null,
    skew: (seconds) => {
      skewSeconds = seconds;
      writeFileSync(clockFile, seconds < 0 ? String(seconds) : `+${seconds}`);
    },
    start,
    running: () => program?.isRunning() === true,
    pid: () => program?.pid ?? 0,
    endedAt: () => endedAt,
    signal: (name) => program?.signal(name),
    gone: async () => {
      await program?.exited;
    },
    ready: () => isReady(url),
    becomesReady: (limitMs) => until(async () => (await isReady(url)) || null, limitMs).catch(() => false),
  };
}

/** So many, each with a way of its own to the database; how to end them is added to `closing`. */
export async function createInstances(
  count: number,
  given: Omit<InstanceOptions, 'number' | 'proxy'> & { databaseUrl: string },
  closing: (() => Promise<unknown>)[],
): Promise<Instance[]> {
  const instances: Instance[] = [];
  for (let number = 1; number <= count; number += 1) {
    const proxy = await startFaultProxy(given.databaseUrl);
    closing.push(() => proxy.close());
    const instance = await createInstance({ ...given, number, proxy });
    instances.push(instance);
    closing.push(async () => {
      instance.signal('SIGKILL');
      await instance.gone();
    });
  }
  return instances;
}

/** Its monotonic clock stays right, or Node's timers would stop: that is what a wrong wall clock is like. */
function fakeClock(file: string): Record<string, string> {
  return {
    LD_PRELOAD: FAKETIME ?? '',
    FAKETIME_TIMESTAMP_FILE: file,
    FAKETIME_NO_CACHE: '1',
    FAKETIME_DONT_FAKE_MONOTONIC: '1',
  };
}

/**
 * Kept for an instance while it is down: so not of those that systems give to outgoing connections, and of a range of this process's
 * own, as campaigns run side by side.
 */
async function freePort(): Promise<number> {
  for (;;) {
    const port = FIRST_PORT + (process.pid % RANGES) * RANGE + (given % RANGE);
    given += 1;
    if (await isFree(port)) return port;
  }
}

const FIRST_PORT = 10_000;
const RANGE = 20;
const RANGES = 500;
let given = 0;

async function isFree(port: number): Promise<boolean> {
  const server = createServer();
  try {
    await listenOnLoopback(server, port);
  } catch {
    return false;
  }
  server.close();
  await once(server, 'close');
  return true;
}
