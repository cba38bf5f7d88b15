import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';

/**
 * The daemon's work comes in bursts. If V8 compiles in the middle of a burst, this takes the burst's own time: by default a third of the
 * CPU of a first herd. V8's best compiler still compiles code that stays hot, a little later (docs/decisions/0007). Call it before the
 * modules are loaded.
 */
export function compileLater(): void {
  setFlagsFromString('--invocation-count-for-turbofan=30000');
}

/**
 * Gives back memory that loading the modules took. More than half of the process's memory is garbage then, and V8 would keep it while
 * the process is idle. This blocks for some 100 ms, so it runs before anything is served.
 */
export function releaseStartupMemory(): void {
  collector()({ type: 'major', execution: 'sync', flavor: 'last-resort' });
}

/**
 * Collects garbage once, which blocks for some 20 ms. V8 sees by that how little is alive, and within ten seconds of idleness gives
 * back, step by step, what the heap does not need. Without a collection V8 never looks while the process is idle.
 */
export function collectGarbage(): void {
  collector()({ type: 'major', execution: 'sync', flavor: 'regular' });
}

function collector(): NodeJS.GCFunction {
  setFlagsFromString('--expose-gc');
  const collect = runInNewContext('gc') as NodeJS.GCFunction;
  setFlagsFromString('--no-expose-gc');
  return collect;
}
