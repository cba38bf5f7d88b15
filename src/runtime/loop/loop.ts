import { setImmediate } from 'node:timers/promises';
import type { Clock } from '../clock.ts';
import type { EventBus } from '../event-bus.ts';
import type { Service } from '../service.ts';

interface LoopOptions {
  name: string;
  /** One pass; answers how long to sleep, in ms. If it throws, the pass has failed: the loop backs off and goes on. */
  body: () => Promise<number>;
  /**
   * At least this many ms lie between the starts of two passes, however often the loop is woken: work in between makes
   * one batch. `tookMs`: the pass that has just ended.
   */
  minMs?: (tookMs: number) => number;
  /** Learns how each pass ended (`loopPassed`, `loopFailed`). */
  events: EventBus;
  clock: Clock;
}

/** Shows from outside whether a loop turns. */
export interface Turning extends Service {
  /** How many ms the present pass has taken so far; 0 while asleep. A loop whose pass never returns is dead. */
  inPassMs(): number;
  /** How many passes it has begun. */
  passes(): number;
  /** Ms since the first of the passes that failed in a row; 0 if the last pass succeeded. */
  failingMs(): number;
}

export interface Loop extends Turning {
  /** Ends the present sleep; during a pass, makes the next sleep zero. Never runs two passes at once. */
  wake(): void;
  /** Also ends a wait after a failed pass: there is reason to believe that it works now. */
  retry(): void;
}

/** What others see of a loop that only its owner wakes. */
export function turningOf(loop: Loop): Turning {
  return {
    name: loop.name,
    start: () => loop.start(),
    stop: () => loop.stop(),
    inPassMs: () => loop.inPassMs(),
    passes: () => loop.passes(),
    failingMs: () => loop.failingMs(),
  };
}

const FIRST_BACKOFF_MS = 100;
const MAX_BACKOFF_MS = 1000;
/** A longer timer would fire at once: setTimeout holds 31 bits. */
const MAX_SLEEP_MS = 2 ** 31 - 1;

interface State extends LoopOptions {
  stopping: boolean;
  /** Since the present pass began. */
  woken: boolean;
  retried: boolean;
  endSleep: (() => void) | undefined;
  endSleepAtOnce: (() => void) | undefined;
  running: Promise<void> | undefined;
  /** Monotonic, as the other moments; null while asleep. */
  passBeganAt: number | null;
  beganAt: number;
  /** The last pass. */
  tookMs: number;
  passes: number;
  /** In a row; and when the first of them happened. */
  failures: number;
  failedAt: number | null;
}

export function createLoop(options: LoopOptions): Loop {
  const { name, clock } = options;
  const state: State = {
    ...options,
    ...{ stopping: false, woken: false, retried: false, running: undefined },
    ...{ endSleep: undefined, endSleepAtOnce: undefined },
    ...{ passBeganAt: null, beganAt: -Infinity, tookMs: 0, passes: 0, failures: 0, failedAt: null },
  };
  const since = (moment: number | null) => (moment === null ? 0 : clock.monotonic() - moment);
  return {
    name,
    start: () => {
      state.running ??= run(state);
    },
    stop: async () => {
      state.stopping = true;
      state.endSleepAtOnce?.();
      await state.running;
    },
    wake: () => {
      state.woken = true;
      if (state.failures === 0) state.endSleep?.();
    },
    retry: () => {
      state.woken = true;
      state.retried = true;
      state.endSleepAtOnce?.();
    },
    passes: () => state.passes,
    failingMs: () => since(state.failedAt),
    inPassMs: () => since(state.passBeganAt),
  };
}

async function run(state: State): Promise<void> {
  while (!state.stopping) {
    state.woken = false;
    state.retried = false;
    state.beganAt = state.clock.monotonic();
    state.passBeganAt = state.beganAt;
    state.passes += 1;
    const delay = await pass(state);
    state.passBeganAt = null;
    state.tookMs = state.clock.monotonic() - state.beganAt;
    await sleep(state, delay);
  }
}

async function pass(state: State): Promise<number> {
  const { name, events, clock } = state;
  try {
    const delay = await state.body();
    state.failures = 0;
    state.failedAt = null;
    events.emit({ type: 'loopPassed', loop: name });
    return delay;
  } catch (error) {
    const backoff = Math.min(MAX_BACKOFF_MS, FIRST_BACKOFF_MS * 2 ** state.failures);
    const retryIn = backoff * (0.5 + Math.random() / 2);
    state.failures = Math.min(state.failures + 1, 10);
    state.failedAt ??= clock.monotonic();
    events.emit({ type: 'loopFailed', loop: name, error, retryInMs: Math.round(retryIn) });
    return retryIn;
  }
}

async function sleep(state: State, ms: number): Promise<void> {
  if (state.stopping) return;
  if (!state.woken || state.failures > 0) await sleepUntilWoken(state, ms);
  if (state.failures > 0 || state.retried) return;
  const rest = state.beganAt + (state.minMs?.(state.tookMs) ?? 0) - state.clock.monotonic();
  if (rest >= 1) await sleepUntilWoken(state, rest, { atOnce: true });
  // A loop that is woken all the time must let other work run.
  else if (state.woken) await setImmediate();
}

/** `atOnce`: only for work that cannot wait. */
async function sleepUntilWoken(state: State, ms: number, { atOnce = false } = {}): Promise<void> {
  await new Promise<void>((resolve) => {
    const timer = setTimeout(resolve, Math.min(Math.max(0, ms), MAX_SLEEP_MS));
    const end = () => {
      clearTimeout(timer);
      resolve();
    };
    state.endSleepAtOnce = end;
    if (!atOnce) state.endSleep = end;
  });
  state.endSleep = undefined;
  state.endSleepAtOnce = undefined;
}
