import { extname } from 'node:path';
import { Worker } from 'node:worker_threads';
import type { Turning } from '../loop/loop.ts';
import type { Service } from '../service.ts';

interface WatchdogOptions {
  loops: readonly Turning[];
  /** How many turns of the watchdog, about a second each, a pass may take. */
  maxTurns: number;
  /** A loop's pass did not return: the process should end. */
  onStuck: (loop: string) => void;
  /** The thread that watches the event loop could not be started, or ended. */
  onThreadLost: (error: Error) => void;
}

const TURN_MS = 1_000;

/**
 * Reports a loop whose pass does not return (a failed pass has returned), and ends a process whose event loop is
 * blocked. A process that lives and fires nothing is worse than a crash: after a crash, a supervisor starts it again,
 * and the others take over meanwhile. The watchdog counts its own turns rather than time, so that it does not end a
 * process that was frozen as a whole.
 */
export function createWatchdog({ loops, maxTurns, onStuck, onThreadLost }: WatchdogOptions): Service {
  /** Increases while the event loop turns; a thread watches it, which a blocked event loop does not stop. */
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
      // The same extension as this file: from the sources or built.
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
