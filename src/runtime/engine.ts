import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';

/**
 * The daemon's work comes in bursts. Call it before the modules are loaded.
 *
 * If V8 compiles in the middle of a burst, this takes the burst's own time: by default a third of the CPU of a first herd. V8's best
 * compiler still compiles code that stays hot, a little later (docs/decisions/0007).
 *
 * And when V8 collects garbage in an idle process so that little memory is left, it forgets the shapes of objects of which none is alive,
 * with the compiled code that relies on them: nearly all that a fire runs through, which costs the next herd an eighth of Node's CPU. So it
 * collects as it does in a busy process. V8 before version 13 (Node 22) has no option for that.
 */
export function prepareForBursts(): void {
  setFlagsFromString('--invocation-count-for-turbofan=30000');
  if (Number.parseInt(process.versions.v8, 10) >= 13) setFlagsFromString('--no-memory-reducer-favors-memory');
}

/**
 * Collects garbage, and gives back what the heap does not need, with the code that V8 has compiled. This blocks for some 100 ms: so it runs
 * before anything is served, since more than half of the process's memory is garbage after loading the modules, and seldom later.
 */
export function giveMemoryBack(): void {
  setFlagsFromString('--expose-gc');
  const collect = runInNewContext('gc') as NodeJS.GCFunction;
  setFlagsFromString('--no-expose-gc');
  collect({ type: 'major', execution: 'sync', flavor: 'last-resort' });
}
