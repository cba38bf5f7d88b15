import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';

/**
 * The daemon's work comes in bursts, and what V8 compiles in the middle of one takes the burst's own time: by default a third of the
 * CPU of a first herd. What is hot for longer is compiled all the same, by its best compiler a little later (docs/performance.md).
 * Before the modules are loaded whose code it is about.
 */
export function compileLater(): void {
  setFlagsFromString('--invocation-count-for-turbofan=30000');
}

/**
 * Gives back what loading the modules took: more than half of what the process then holds is garbage, which V8 would keep, as it has
 * no reason to collect it while the process is idle. Blocks for some 100 ms, so before anything is served.
 */
export function releaseStartupMemory(): void {
  setFlagsFromString('--expose-gc');
  const collect = runInNewContext('gc') as NodeJS.GCFunction;
  setFlagsFromString('--no-expose-gc');
  collect({ type: 'major', execution: 'sync', flavor: 'last-resort' });
}
