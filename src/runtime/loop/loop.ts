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
   * one batch.
   */
  minMs?: () => number;
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

// eslint-disable-next-line max-lines-per-function -- a closure: its functions share its state, and are short
export function createLoop(options: LoopOptions): Loop {
  const { name, body, events, clock } = options;
  let stopping = false;
  let woken = false;
  let retried = false;
  let endSleep: (() => void) | undefined;
  let endSleepAtOnce: (() => void) | undefined;
  let running: Promise<void> | undefined;
  /** Monotonic; null while asleep. */
  let passBeganAt: number | null = null;
  let beganAt = -Infinity;
  let failures = 0;
  let passes = 0;
  /** Monotonic: when the first of the failures in a row happened. */
  let failedAt: number | null = null;

  async function run(): Promise<void> {
    while (!stopping) {
      woken = false;
      retried = false;
      passBeganAt = clock.monotonic();
      beganAt = passBeganAt;
      passes += 1;
      const delay = await pass();
      passBeganAt = null;
      await sleep(delay);
    }
  }

  async function pass(): Promise<number> {
    try {
      const delay = await body();
      failures = 0;
      failedAt = null;
      events.emit({ type: 'loopPassed', loop: name });
      return delay;
    } catch (error) {
      const retryIn = Math.min(MAX_BACKOFF_MS, FIRST_BACKOFF_MS * 2 ** failures) * (0.5 + Math.random() / 2);
      failures = Math.min(failures + 1, 10);
      failedAt ??= clock.monotonic();
      events.emit({ type: 'loopFailed', loop: name, error, retryInMs: Math.round(retryIn) });
      return retryIn;
    }
  }

  async function sleep(ms: number): Promise<void> {
    if (stopping) return;
    if (!woken || failures > 0) await sleepUntilWoken(ms);
    if (failures > 0 || retried) return;
    const rest = beganAt + (options.minMs?.() ?? 0) - clock.monotonic();
    if (rest >= 1) await sleepUntilWoken(rest, { atOnce: true });
    // A loop that is woken all the time must let other work run.
    else if (woken) await setImmediate();
  }

  /** `atOnce`: only for work that cannot wait. */
  async function sleepUntilWoken(ms: number, { atOnce = false } = {}): Promise<void> {
    await new Promise<void>((resolve) => {
      const timer = setTimeout(resolve, Math.min(Math.max(0, ms), MAX_SLEEP_MS));
      const end = () => {
        clearTimeout(timer);
        resolve();
      };
      endSleepAtOnce = end;
      if (!atOnce) endSleep = end;
    });
    endSleep = undefined;
    endSleepAtOnce = undefined;
  }

  return {
    name,
    start: () => {
      running ??= run();
    },
    stop: async () => {
      stopping = true;
      endSleepAtOnce?.();
      await running;
    },
    wake: () => {
      woken = true;
      if (failures === 0) endSleep?.();
    },
    retry: () => {
      woken = true;
      retried = true;
      endSleepAtOnce?.();
    },
    passes: () => passes,
    failingMs: () => (failedAt === null ? 0 : clock.monotonic() - failedAt),
    inPassMs: () => (passBeganAt === null ? 0 : clock.monotonic() - passBeganAt),
  };
}
