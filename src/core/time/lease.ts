import type { Instant } from '../instant.ts';

/** A reading of both clocks of a machine, made together. */
export interface Moment {
  /** Only ever goes forward, but stands still while the machine is suspended. */
  monotonic: number;
  /** May step, but counts a suspension. */
  wall: Instant;
}

/** How much earlier than the others this instance stops counting on its own lease. */
export const LEASE_MARGIN_SECONDS = 2;
/** Clocks that part by more than this have been through a step or a suspension: the lease is not trusted. */
const CLOCKS_AGREE_MS = 1000;

/**
 * Whether an instance may still count on its claims: less than the TTL − 2 s have passed since *before* its last answered
 * heartbeat was sent, by the monotonic and by the wall clock. Counted from the sending, since the answer may have
 * been long under way (Gray & Cheriton, Leases, 1989: the holder's term must end before the grantor's).
 */
export function leaseHolds(heartbeatSent: Moment | null, now: Moment, ttlSeconds: number): boolean {
  if (heartbeatSent === null) return false;
  const termMs = (ttlSeconds - LEASE_MARGIN_SECONDS) * 1000;
  const monotonic = now.monotonic - heartbeatSent.monotonic;
  const wall = now.wall - heartbeatSent.wall;
  return monotonic < termMs && wall < termMs && Math.abs(wall - monotonic) <= CLOCKS_AGREE_MS;
}
