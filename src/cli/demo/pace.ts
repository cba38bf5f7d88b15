import { setTimeout as sleep } from 'node:timers/promises';
import type { Clock } from '../../runtime/clock.ts';
import { CliError, EXIT } from '../exit-codes.ts';

/** How the demo waits: it goes on at once where it was interrupted or cannot go on. */
export interface Pace {
  /** @throws where Ctrl-C was pressed, or the demo cannot go on */
  pause(ms: number): Promise<void>;
  /** Whether it came true within the limit. @throws as pause does */
  until(isTrue: () => boolean, limitMs: number): Promise<boolean>;
}

interface Options {
  clock: Clock;
  signal: AbortSignal;
  /** Why it cannot go on; null: it can. */
  fault: () => string | null;
}

const LOOK_MS = 50;

export function interruptiblePace({ clock, signal, fault }: Options): Pace {
  const pause = async (ms: number) => {
    const end = clock.monotonic() + ms;
    for (;;) {
      const reason = fault();
      if (reason !== null) throw new CliError(EXIT.failed, reason);
      const left = end - clock.monotonic();
      if (left <= 0) return;
      await sleep(Math.min(left, LOOK_MS), undefined, { signal });
    }
  };
  const until = async (isTrue: () => boolean, limitMs: number) => {
    const limit = clock.monotonic() + limitMs;
    while (!isTrue()) {
      if (clock.monotonic() >= limit) return false;
      await pause(LOOK_MS);
    }
    return true;
  };
  return { pause, until };
}
