import type { Instant } from '../instant.ts';

/** A reading of both clocks of a machine, taken together. */
export interface Moment {
  /** Only goes forward, but stands still while the machine is suspended. */
  monotonic: number;
  /** Can be set, but also counts while the machine is suspended. */
  wall: Instant;
}

/** This instance stops trusting its own lease this much earlier than the others do. */
export const LEASE_MARGIN_SECONDS = 2;
/** If the two clocks differ by more than this, one was set or the machine was suspended: the lease is not trusted. */
const CLOCKS_AGREE_MS = 1000;

/**
 * Whether an instance may still trust its claims: less than the TTL − 2 s have passed since *before* its last answered
 * heartbeat was sent, by the monotonic and by the wall clock. Counted from the sending, since the answer may have been
 * long under way (Gray & Cheriton, Leases, 1989: the holder's term must end before the grantor's).
 */
export function leaseHolds(heartbeatSent: Moment | null, now: Moment, ttlSeconds: number): boolean {
  if (heartbeatSent === null) return false;
  const termMs = (ttlSeconds - LEASE_MARGIN_SECONDS) * 1000;
  const monotonic = now.monotonic - heartbeatSent.monotonic;
  const wall = now.wall - heartbeatSent.wall;
  return monotonic < termMs && wall < termMs && Math.abs(wall - monotonic) <= CLOCKS_AGREE_MS;
}
