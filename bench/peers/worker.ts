import type { ChildProcess } from 'node:child_process';
import { createPoster } from '../bare/poster.ts';
import type { Post } from '../bare/poster.ts';
import { type Child, ask, forkModule, nextMessage } from '../support/processes/child.ts';

/** What a peer's worker is started with. */
export interface WorkerOptions {
  /** Where the peers are installed. */
  packages: string;
  targetUrl: string;
  /** Jobs at once, and connections to the receiver. */
  concurrency: number;
}

/** To a worker's process, which answers each with the ids of the jobs it is about. */
type ToWorker =
  { type: 'arm'; count: number; dueAt: number } | { type: 'settled' } | { type: 'history'; dueAt: number };

interface FromWorker {
  at: number;
  runIds: readonly string[];
}

export interface Worker {
  pid: number;
  ask(message: ToWorker): Promise<FromWorker>;
  stop(): Promise<void>;
}

export async function startWorker(module: URL, options: WorkerOptions): Promise<Worker> {
  const child: Child = forkModule(module, [JSON.stringify(options)]);
  await nextMessage<FromWorker>(child.process);
  return {
    pid: pidOf(child.process),
    ask: (message) => ask<FromWorker>(child.process, message),
    stop: () => child.stop(),
  };
}

/** For a worker's process. Any trouble ends it, and with it the measurement. */
export function serveWorker(answer: (message: ToWorker) => Promise<readonly string[]>): void {
  process.on('message', (message: ToWorker) => {
    void answer(message).then((runIds) => sendRunIds(runIds));
  });
  process.on('disconnect', () => process.exit());
  sendRunIds([]);
}

/** The POST that every contestant sends, over as many connections; resolves with the answer. */
export function createDelivery({ targetUrl, concurrency }: WorkerOptions): (post: Post) => Promise<void> {
  const poster = createPoster(targetUrl, concurrency);
  return (post) => new Promise((resolve) => poster.post(post, resolve));
}

/** How long arming takes: a guess at first, afterwards twice what it took. */
interface Lead {
  seconds: (count: number) => number;
  timed: (count: number, arm: () => Promise<unknown>) => Promise<void>;
}

export function createLead(secondsPerThousand: number): Lead {
  let expected = secondsPerThousand;
  return {
    seconds: (count) => 3 + Math.ceil(count / 1000) * expected,
    timed: async (count, arm) => {
      const startedAt = performance.now();
      await arm();
      expected = (2 * (performance.now() - startedAt)) / count;
    },
  };
}

function sendRunIds(runIds: readonly string[]): void {
  process.send?.({ at: Date.now(), runIds } satisfies FromWorker);
}

function pidOf({ pid }: ChildProcess): number {
  if (pid === undefined) throw new Error('a worker did not start');
  return pid;
}
