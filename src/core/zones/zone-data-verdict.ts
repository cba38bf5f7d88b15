import type { Instant } from '../instant.ts';

/** What is known about the zone data in use, and about the data by which the cursors were last checked. */
export interface ZoneDataSeen {
  now: Instant;
  /** Null: the cursors were never checked. */
  recorded: { version: string; lookedThroughAt: Instant } | null;
  /** Versions that other instances plan with, or have planned with: the dead are remembered for a day. */
  others: readonly { version: string; alive: boolean; lastAliveAt: Instant }[];
}

type ZoneVerdict = { kind: 'settled' } | { kind: 'look' } | { kind: 'wait'; ms: number };

/** An instance that has left may still finish a write that it had begun. */
export const LAST_WRITES_SECONDS = 5;
/**
 * Instances with newer data that are gone may only be restarting: cursors must not move back and forth with every
 * restart of a rollout.
 */
const ROLLBACK_GRACE_MS = 300_000;

/**
 * Whether an instance with this zone data must check the cursors. While an instance with newer data lives: no, since
 * its data are right, and cursors would move back and forth. When none lives any more, the image was rolled back: then
 * yes, a little later. Otherwise a cursor computed with data that no instance has would fire beside, or instead of, the
 * moment that the older data give.
 */
export function judgeZoneData(own: string, { now, recorded, others }: ZoneDataSeen): ZoneVerdict {
  const newer = others.filter(({ version }) => zoneDataRank(version) > zoneDataRank(own));
  if (newer.some(({ alive }) => alive)) return { kind: 'wait', ms: Infinity };
  const isCurrent =
    recorded?.version === own &&
    others.every(
      ({ alive, lastAliveAt }) =>
        !alive && lastAliveAt + LAST_WRITES_SECONDS * 1000 <= recorded.lookedThroughAt,
    );
  if (isCurrent) return { kind: 'settled' };
  const gone = Math.max(...newer.map(({ lastAliveAt }) => lastAliveAt));
  const ms = Math.min(gone + ROLLBACK_GRACE_MS - now, ROLLBACK_GRACE_MS);
  return ms > 0 ? { kind: 'wait', ms } : { kind: 'look' };
}

/** Versions compare as text: 2025c < 2026a, and after z comes za. A text that is no version is older than any. */
export function zoneDataRank(version: string): string {
  return ZONE_DATA_VERSION.test(version) ? version : '';
}

export const ZONE_DATA_VERSION = /^[0-9]{4}[a-z]+$/;
