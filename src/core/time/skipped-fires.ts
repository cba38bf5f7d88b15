import type { Instant } from '../instant.ts';
import type { Calendars } from '../exclusions/exclusion.ts';
import type { Identity, Timing } from '../timing/timing.ts';
import { type FireTimes, fireTimes } from './fire-times.ts';

/** How many coming fires of one schedule can be skipped. */
export const MAX_SKIPS = 1000;

/** A fire that is not to be made. */
export interface SkippedFire {
  /** Why, in the words of the caller who asked for it. */
  reason: string | null;
  /** No caller asked to skip it: it was made already, while the database's clock was ahead. No run is recorded for it. */
  made: boolean;
}

/** A definition, and how far it has been planned. */
interface Planned extends Identity {
  definition: Timing;
  nextOccurrenceAt: Instant | null;
  plannedThrough: Instant | null;
}

/**
 * Whether an instant is a coming fire of a schedule. `over`: it is a fire, but has been planned, or its moment has
 * come.
 * @throws CronError
 */
export function standingOf(
  planned: Planned,
  { fireAt, now, calendars }: { fireAt: Instant; now: Instant; calendars: Calendars },
): 'toCome' | 'over' | 'noFire' {
  const { definition, nextOccurrenceAt, plannedThrough } = planned;
  const times = fireTimes(definition, planned, calendars);
  if (times.next(fireAt - 1) !== fireAt) return 'noFire';
  if (times.dueAt(fireAt) <= now || fireAt <= (plannedThrough ?? -Infinity)) return 'over';
  return nextOccurrenceAt !== null && fireAt >= nextOccurrenceAt ? 'toCome' : 'over';
}

/** The first occurrence from one on that is not skipped; null: none is left. */
export function firstUnskipped(
  times: Pick<FireTimes, 'next'>,
  from: Instant | null,
  skips: ReadonlyMap<Instant, unknown>,
): Instant | null {
  let at = from;
  while (at !== null && skips.has(at)) at = times.next(at);
  return at;
}
