import { openSync } from 'node:fs';
import { join } from 'node:path';
import { type Program, startProgram } from '../../support/programs.ts';
import { QUICK_START } from '../../support/runner/quick-start.ts';
import { type WorkerGateway, startWorkerGateway } from './worker-gateway.ts';

/** The queue of the commands. */
export const COMMANDS = 'commands';
/** The shortest there is: what a worker has when it dies is soon another's. */
export const LEASE_SECONDS = 5;
export const GRACE_SECONDS = 1;
const CONCURRENCY = 12;

/** One `firelock work`, over all of its processes, each of which has its name. */
export interface Worker {
  readonly name: string;
  readonly gateway: WorkerGateway;
  /** The fault that is at work on it, if any: one at a time. */
  busy: string | null;
  start(): void;
  running(): boolean;
  endedAt(): number;
  signal(name: NodeJS.Signals): void;
  gone(): Promise<void>;
  close(): Promise<void>;
}

interface WorkerOptions {
  name: string;
  /** Of the program's source. */
  root: string;
  /** Of the instances. */
  urls: readonly string[];
  /** For its log, and for its own files. */
  directory: string;
}

export async function createWorker({ name, root, urls, directory }: WorkerOptions): Promise<Worker> {
  const gateway = await startWorkerGateway(name, urls);
  const log = openSync(join(directory, `worker-${name}.log`), 'a');
  const options = { name, lease: LEASE_SECONDS, grace: GRACE_SECONDS, concurrency: CONCURRENCY };
  const args = [
    'work',
    COMMANDS,
    ...Object.entries(options).flatMap(([option, value]) => [`--${option}`, String(value)]),
  ];
  const variables = { ...QUICK_START, FIRELOCK_URL: gateway.url, TMPDIR: directory };
  let program: Program | undefined;
  let endedAt = 0;
  return {
    name,
    gateway,
    busy: null,
    start: () => {
      program = startProgram({ root, args, variables, output: log });
      void program.exited.then(() => {
        endedAt = Date.now();
      });
    },
    running: () => program?.isRunning() === true,
    endedAt: () => endedAt,
    signal: (signal) => program?.signal(signal),
    gone: async () => {
      await program?.exited;
    },
    close: async () => {
      await program?.kill();
      await gateway.close();
    },
  };
}
