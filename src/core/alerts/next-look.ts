import type { Instant } from '../instant.ts';
import type { AlertKind } from './alert.ts';

/** What tells that an episode is over may just be written when it is found. */
const SOON_MS = 20_000;
/** After a moment at which the schedule is to be planned. */
const PLANNING_MS = 1_000;
const MAX_MS = 3_600_000;
/** Once planning goes on, what it ends is seen within this time. */
const MAX_OVERDUE_MS = 300_000;

interface Looked {
  kind: AlertKind;
  since: Instant;
  /** It was opened just now. */
  isFresh: boolean;
  nextFireAt: Instant | null;
}

/**
 * When to look whether an open episode is over; null: an effect, an edit or a look at calendars says so. Each writes when the next one
 * is, so they are few: after the next fire, where that ends it, and else the longer the episode is open the seldomer.
 */
export function nextLookAt({ kind, since, isFresh, nextFireAt }: Looked, now: Instant): Instant | null {
  if (kind === 'paused' || kind === 'calendar') return null;
  const soon = isFresh && kind !== 'error' ? SOON_MS : MAX_MS;
  if (kind !== 'missed' && kind !== 'error') return now + Math.min(soon, Math.max(now - since, SOON_MS));
  const fire = (nextFireAt ?? Infinity) - now;
  // A fire that was due is not planned yet: it is held, or its turn comes later.
  const wait = fire > 0 ? fire + PLANNING_MS : Math.min(Math.max(-fire, PLANNING_MS), MAX_OVERDUE_MS);
  return now + Math.min(soon, wait);
}

/** A look that is to come stays, unless the next one is sooner: then nothing needs to be written. */
export function soonerLook(known: Instant | null, next: Instant | null, now: Instant): Instant | null {
  return known !== null && next !== null && known > now && known <= next ? known : next;
}
