/**
 * Guarantees: no more under way than the whole and each lane may have; lanes take turns at what comes free; nothing starts while the lease does not hold.
 * Transaction: none; this is memory.
 * If the process dies here: what waited is still claimed by it, and pending.
 */
import type { Handoff } from '../core/schedule.ts';
import type { Slots } from '../runtime/slots.ts';
import type { ClaimedRun } from '../store/claims.ts';

/** A claimed run with all it takes to send it. */
export interface Ready {
  run: ClaimedRun;
  handoff: Handoff;
}

/**
 * What is claimed and waits for a slot of its lane. A slot that comes free goes to the next of the same lane, or, where
 * the whole was full, to whichever lane has waited longest.
 */
export interface Lanes {
  add(ready: Ready): void;
  inFlight(): number;
  /** Whether something waits for a slot. */
  hasWaiting(): boolean;
  /** Nothing more is started. */
  pause(): void;
  /** `mayStart` may have changed its mind. */
  resume(): void;
  /** Takes out what was not started, of those that the filter picks. */
  takeOut(filter: (ready: Ready) => boolean): Ready[];
}

export interface LaneDeps {
  slots: Slots;
  send: (ready: Ready) => Promise<void>;
  /** Asked before each start; false: it stays where it is. */
  mayStart: () => boolean;
}

export function createLanes({ slots, send, mayStart }: LaneDeps): Lanes {
  const queues = new Map<string, Ready[]>();
  let paused = false;

  function startFrom(lane: string): boolean {
    const queue = queues.get(lane);
    const next = queue?.[0];
    if (paused || !queue || !next || !mayStart() || !slots.take(lane)) return false;
    queue.shift();
    // Behind the others: lanes take turns at what comes free of the whole.
    queues.delete(lane);
    if (queue.length > 0) queues.set(lane, queue);
    void run(next, lane);
    return true;
  }

  async function run(ready: Ready, lane: string): Promise<void> {
    await send(ready);
    const wasFull = slots.free() === 0;
    slots.release(lane);
    if (wasFull) startAny();
    else startFrom(lane);
  }

  function startAny(): void {
    for (const lane of [...queues.keys()]) {
      if (slots.free() === 0) return;
      startFrom(lane);
    }
  }

  return {
    add: (ready) => {
      const { lane } = ready.run;
      const queue = queues.get(lane);
      if (queue) queue.push(ready);
      else queues.set(lane, [ready]);
      startFrom(lane);
    },
    inFlight: () => slots.taken(),
    hasWaiting: () => queues.size > 0,
    pause: () => {
      paused = true;
    },
    resume: () => {
      for (const lane of [...queues.keys()]) while (startFrom(lane));
    },
    takeOut: (filter) => {
      const taken: Ready[] = [];
      for (const [lane, queue] of queues) {
        const left = queue.filter((ready) => !filter(ready));
        taken.push(...queue.filter(filter));
        if (left.length === 0) queues.delete(lane);
        else queues.set(lane, left);
      }
      return taken;
    },
  };
}
