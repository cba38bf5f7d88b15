import { performance } from 'node:perf_hooks';
import type { Clock } from './clock.ts';
import { collectGarbage } from './engine.ts';
import type { EventBus } from './event-bus.ts';
import { type Loop, createLoop } from './loop/loop.ts';

/** What it looks at and does; tests bring their own. */
export interface Memory {
  /** Bytes of the heap, of which some may be garbage or free. */
  heap: () => number;
  /** The part of the time since the last call in which the main thread worked, 0 to 1. */
  worked: () => number;
  /** Answers how many bytes of the heap are alive. */
  collect: () => number;
}

interface IdleMemoryDeps {
  events: EventBus;
  clock: Clock;
  memory?: Memory;
}

const LOOK_EVERY_MS = 5_000;
/** After some bursts V8 gives memory back by itself, some ten seconds later; and work that comes in bursts should meet no collection. */
const CALM_LOOKS = 4;
const CALM = 0.05;
const MUCH = 32 * 1024 * 1024;

/**
 * Once a burst is over and the process has been calm for 20 seconds, collects garbage if the heap is much larger than what was alive the
 * last time: after an import of 100,000 schedules V8 would keep 400 MB for as long as nothing happens. Costs a busy process nothing.
 */
export function createIdleMemory({ events, clock, memory = ofThisProcess() }: IdleMemoryDeps): Loop {
  let calmLooks = 0;
  let alive = memory.heap();
  return createLoop({
    name: 'memory',
    clock,
    events,
    body: () => {
      calmLooks = memory.worked() < CALM ? calmLooks + 1 : 0;
      if (calmLooks >= CALM_LOOKS) {
        calmLooks = 0;
        if (memory.heap() > alive + MUCH) alive = memory.collect();
      }
      return Promise.resolve(LOOK_EVERY_MS);
    },
  });
}

function ofThisProcess(): Memory {
  let last = performance.eventLoopUtilization();
  return {
    heap: () => process.memoryUsage().heapTotal,
    worked: () => {
      const now = performance.eventLoopUtilization();
      const { utilization } = performance.eventLoopUtilization(now, last);
      last = now;
      return utilization;
    },
    collect: () => {
      collectGarbage();
      return process.memoryUsage().heapUsed;
    },
  };
}
