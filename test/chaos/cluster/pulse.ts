import { setTimeout as sleep } from 'node:timers/promises';
import type { Beat } from '../checker/history.ts';

/** Measures again and again how long the machine takes for what takes no time. */
interface Pulse {
  /** Those that took long enough to matter. */
  readonly beats: Beat[];
  stop(): Promise<void>;
}

const EVERY_MS = 100;
const MIN_MS = 20;

/** `touch`: something in another process that is answered at once. */
export function startPulse(touch: () => Promise<unknown>): Pulse {
  const beats: Beat[] = [];
  let stopping = false;
  async function beating(): Promise<void> {
    while (!stopping) {
      const [from, began] = [Date.now(), performance.now()];
      await sleep(EVERY_MS);
      await touch();
      const ms = performance.now() - began - EVERY_MS;
      if (ms >= MIN_MS) beats.push({ from, to: Date.now(), ms });
    }
  }
  const beaten = beating();
  return {
    beats,
    stop: async () => {
      stopping = true;
      await beaten;
    },
  };
}
