/**
 * Guarantees: a slow target's backlog is left to whoever has a slot; a quick one's is at hand before it is needed.
 * Transaction: none; this is memory.
 * If the process dies here: nothing of it is missed, the pace is learned anew.
 */
import type { Clock } from '../runtime/clock.ts';

/**
 * How far ahead of its slots each lane may be claimed: about half a second of work at the pace it shows. A quick
 * target never waits for a round trip to the database; what a slow one has waiting stays unclaimed, for whichever
 * instance has a slot, and is not stranded when this one is killed.
 */
export interface LanePace {
  began(lane: string): void;
  ended(lane: string, durationMs: number): void;
  /** Runs to be claimed beyond the slots; 0 for a target that hangs. */
  ahead(lane: string): number;
}

const AHEAD_MS = 500;
/** In slots: what a process that is killed may leave for recovery, and what it takes from the other instances. */
const MOST_AHEAD = 63;
/** Of a lane that has shown nothing yet. */
const FIRST_AHEAD = 1;
/** Weight of the newest duration in the average. */
const NEWEST = 0.1;
const FORGOTTEN_BEYOND = 10_000;

interface Shown {
  underWay: number;
  averageMs: number | null;
  /** Monotonic: when an attempt last ended, or began with no other under way. */
  movedAt: number;
}

export function createLanePace(clock: Clock, slotsPerLane: number): LanePace {
  const lanes = new Map<string, Shown>();

  function shown(lane: string): Shown {
    const known = lanes.get(lane);
    if (known) return known;
    if (lanes.size >= FORGOTTEN_BEYOND) forgetIdle();
    const fresh = { underWay: 0, averageMs: null, movedAt: clock.monotonic() };
    lanes.set(lane, fresh);
    return fresh;
  }

  function forgetIdle(): void {
    for (const [lane, { underWay }] of lanes) if (underWay === 0) lanes.delete(lane);
  }

  return {
    began: (lane) => {
      const pace = shown(lane);
      if (pace.underWay === 0) pace.movedAt = clock.monotonic();
      pace.underWay += 1;
    },
    ended: (lane, durationMs) => {
      const pace = shown(lane);
      pace.underWay -= 1;
      pace.movedAt = clock.monotonic();
      pace.averageMs = (pace.averageMs ?? durationMs) * (1 - NEWEST) + durationMs * NEWEST;
    },
    ahead: (lane) => {
      const pace = lanes.get(lane);
      if (!pace) return slotsPerLane * FIRST_AHEAD;
      // Nothing has ended for a while: it is at least as slow as that, whatever it was before.
      const standstill = pace.underWay > 0 ? clock.monotonic() - pace.movedAt : 0;
      if (pace.averageMs === null && standstill < AHEAD_MS) return slotsPerLane * FIRST_AHEAD;
      const attemptMs = Math.max(1, pace.averageMs ?? 0, standstill);
      return Math.min(slotsPerLane * MOST_AHEAD, Math.floor((slotsPerLane * AHEAD_MS) / attemptMs));
    },
  };
}
