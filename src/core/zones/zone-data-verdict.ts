import type { Instant } from '../instant.ts';

/** What is known of the zone data in use, and of that by which the cursors were last looked through. */
export interface ZoneDataSeen {
  now: Instant;
  /** Null: they never were. */
  recorded: { version: string; lookedThroughAt: Instant } | null;
  /** Versions that other instances plan with, or did: the dead are remembered for a day. */
  others: readonly { version: string; alive: boolean; lastAliveAt: Instant }[];
}

type ZoneVerdict = { kind: 'settled' } | { kind: 'look' } | { kind: 'wait'; ms: number };

/** An instance that has left may still finish a write it had begun. */
export const LAST_WRITES_SECONDS = 5;
/** Newer data that are gone may only be restarting: cursors are not moved to and fro with every restart of a rollout. */
const ROLLBACK_GRACE_MS = 300_000;

/**
 * Whether an instance with this zone data has the cursors to look through. While one with newer data lives: no, it is right and they
 * would go back and forth. When none does any more, the image was rolled back: then yes, a little later, since what is
 * planned from now on is planned by the older data, and a cursor of data that nobody has would fire beside it, or
 * instead of it.
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

/** Versions compare as text: 2025c < 2026a, and after z comes za. What is none is older than any. */
export function zoneDataRank(version: string): string {
  return ZONE_DATA_VERSION.test(version) ? version : '';
}

export const ZONE_DATA_VERSION = /^[0-9]{4}[a-z]+$/;
