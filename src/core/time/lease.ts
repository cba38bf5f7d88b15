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
export function isLeaseValid(heartbeatSent: Moment | null, now: Moment, ttlSeconds: number): boolean {
  if (heartbeatSent === null) return false;
  const termMs = (ttlSeconds - LEASE_MARGIN_SECONDS) * 1000;
  const monotonic = now.monotonic - heartbeatSent.monotonic;
  const wall = now.wall - heartbeatSent.wall;
  return monotonic < termMs && wall < termMs && Math.abs(wall - monotonic) <= CLOCKS_AGREE_MS;
}

/** One answered heartbeat: when it was sent and answered (monotonic ms), and the time of the database's clock. */
interface Beat {
  sentAt: number;
  answeredAt: number;
  databaseNow: Instant;
}

/** Since when (monotonic ms) this instance's heartbeats have come through without a gap, and the last of them. */
export interface BeatStreak {
  since: number;
  last: Beat;
}

/** Compares the database's clock and ours over the same time. A larger difference means that one of them was set. */
const JUMP_MS = 1000;

/**
 * An instance that declares others dead must be sure that the database, its clock and this machine did not stand still:
 * a gap of half a TTL, or a jump between the database's clock and the monotonic one, begins a new streak.
 */
export function afterBeat(streak: BeatStreak | null, beat: Beat, ttlSeconds: number): BeatStreak {
  if (streak === null) return { since: beat.sentAt, last: beat };
  const { last } = streak;
  const gap = beat.answeredAt - last.answeredAt > (ttlSeconds * 1000) / 2;
  const slack = JUMP_MS + (beat.answeredAt - beat.sentAt) + (last.answeredAt - last.sentAt);
  const jump = Math.abs(beat.databaseNow - last.databaseNow - (beat.answeredAt - last.answeredAt)) > slack;
  return { since: gap || jump ? beat.sentAt : streak.since, last: beat };
}

/** Whether the streak is as long as a TTL: then a peer that has been silent for as long is dead. */
export function mayDeclareDead(streak: BeatStreak, ttlSeconds: number): boolean {
  return streak.last.answeredAt - streak.since >= ttlSeconds * 1000;
}
