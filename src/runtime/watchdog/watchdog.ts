import { extname } from 'node:path';
import { Worker } from 'node:worker_threads';
import type { Turning } from '../loop/loop.ts';
import type { Service } from '../service.ts';

interface WatchdogOptions {
  loops: readonly Turning[];
  /** How many turns of the watchdog, about a second each, a pass may stay away. */
  maxTurns: number;
  /** A loop's pass did not come back: the process is to end. */
  onStuck: (loop: string) => void;
  /** The thread that watches the event loop could not be started, or ended. */
  onThreadLost: (error: Error) => void;
}

const TURN_MS = 1_000;

/**
 * Reports a loop that does not return from a pass (one that failed has returned), and ends a process in which nothing
 * runs any more. A zombie that answers and fires nothing is worse than a crash: a supervisor that starts it again has a working instance,
 * and the others take over meanwhile. It counts turns of its own rather than time, so that a process that was
 * frozen, watchdog and all, is not ended for it.
 */
export function createWatchdog({ loops, maxTurns, onStuck, onThreadLost }: WatchdogOptions): Service {
  /** Goes up while the event loop turns; watched by a thread, which a blocked one does not stop. */
  const turns = new Int32Array(new SharedArrayBuffer(Int32Array.BYTES_PER_ELEMENT));
  const sameFor = new Map<string, { pass: number; turns: number }>();
  let timer: NodeJS.Timeout | undefined;
  let thread: Worker | undefined;

  function turn(): void {
    Atomics.add(turns, 0, 1);
    for (const loop of loops) {
      const { name } = loop;
      const before = sameFor.get(name);
      const pass = loop.passes();
      const same = before?.pass === pass && loop.inPassMs() > 0 ? before.turns + 1 : 0;
      sameFor.set(name, { pass, turns: same });
      if (same === maxTurns) onStuck(name);
    }
  }

  return {
    name: 'watchdog',
    start: () => {
      // As this file is named: from the sources or built.
      const file = `./watchdog-thread${extname(import.meta.url)}`;
      thread = new Worker(new URL(file, import.meta.url), {
        execArgv: [],
        workerData: { turns, maxTurns, turnMs: TURN_MS },
      });
      thread.on('error', onThreadLost);
      thread.unref();
      timer = setInterval(turn, TURN_MS);
      timer.unref();
    },
    stop: async () => {
      clearInterval(timer);
      await thread?.terminate();
    },
  };
}
