import type { Instant } from '../instant.ts';

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
