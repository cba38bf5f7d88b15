import type { Dispatcher } from './dispatch.ts';

/** What asks for the claims of this process asks all of its dispatchers. */
type Dispatchers = Pick<Dispatcher, 'wake' | 'inFlight' | 'claimed' | 'hasClaim' | 'drained' | 'abort'>;

export function joinDispatchers(all: readonly Dispatcher[]): Dispatchers {
  const sum = (count: (one: Dispatcher) => number) => all.reduce((total, one) => total + count(one), 0);
  return {
    wake: () => all.forEach((one) => one.wake()),
    inFlight: () => sum((one) => one.inFlight()),
    claimed: () => sum((one) => one.claimed()),
    hasClaim: (runId, attempt) => all.some((one) => one.hasClaim(runId, attempt)),
    drained: () => Promise.all(all.map((one) => one.drained())).then(() => undefined),
    abort: () => all.forEach((one) => one.abort()),
  };
}

/**
 * Messages of notifiers have slots of their own: how many in one process, and how many of these one destination may have. Three quarters
 * may hang, and each destination begins with one: fifty that hang leave slots to the next.
 */
export const MESSAGE_SLOTS = { concurrency: 128, concurrencyPerLane: 4 };
/** How often to look for messages without a hint. */
export const MESSAGE_POLL_MS = 2_000;
/** Of all that may keep a run from being handed off, maintenance keeps no message. */
export const NEVER_HELD = { holdsRuns: () => false, onChange: () => undefined };
