import { performance } from 'node:perf_hooks';
import type { Clock } from './clock.ts';
import { giveMemoryBack } from './engine.ts';
import type { EventBus } from './event-bus.ts';
import { type Loop, createLoop } from './loop/loop.ts';

/** What it looks at and does; tests bring their own. */
export interface Memory {
  /** The part of the time since the last call in which the main thread worked, 0 to 1. */
  worked: () => number;
  giveBack: () => void;
}

interface IdleMemoryDeps {
  events: EventBus;
  clock: Clock;
  memory?: Memory;
}

const LOOK_EVERY_MS = 5_000;
/** Ten minutes: herds that follow each other sooner find compiled code and memory as the last one left them. */
const CALM_LOOKS = 120;
const CALM = 0.05;

/**
 * Once a burst is over and the process has been calm for ten minutes, memory that it does not need is given back: after an import of
 * 100,000 schedules V8 would keep 400 MB for as long as nothing happens. Costs a busy process nothing.
 */
export function createIdleMemory({ events, clock, memory = ofThisProcess() }: IdleMemoryDeps): Loop {
  let calmLooks = 0;
  return createLoop({
    name: 'memory',
    clock,
    events,
    body: () => {
      calmLooks = memory.worked() < CALM ? calmLooks + 1 : 0;
      if (calmLooks === CALM_LOOKS) memory.giveBack();
      return Promise.resolve(LOOK_EVERY_MS);
    },
  });
}

function ofThisProcess(): Memory {
  let last = performance.eventLoopUtilization();
  return {
    worked: () => {
      const now = performance.eventLoopUtilization();
      const { utilization } = performance.eventLoopUtilization(now, last);
      last = now;
      return utilization;
    },
    giveBack: giveMemoryBack,
  };
}
