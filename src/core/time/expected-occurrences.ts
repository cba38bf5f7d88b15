import type { Instant } from '../instant.ts';
import { type Calendars, NO_CALENDARS } from '../exclusions/exclusion.ts';
import type { CatchUp, Identity, Timing } from '../timing/timing.ts';
import { movesTimes } from './definition-change.ts';
import { following } from './plan-due.ts';
import { type FireTimes, costOf, fireTimes, lastBetween } from './fire-times.ts';

/** One version of a schedule and its time in force: it applies to what is due after `since`, up to and with `until`. */
export interface VersionSpan {
  uid: string;
  version: number;
  identity: Identity;
  enabled: boolean;
  timing: Timing;
  since: Instant;
  /** Null: it is in force. */
  until: Instant | null;
}

/** The position of an occurrence among all those of an id. */
export interface Position {
  fireAt: Instant;
  uid: string;
}

/** Sorted by instant first; a schedule and a later one under the same id can have equal instants. */
export function byPosition(a: Position, b: Position): number {
  if (a.fireAt !== b.fireAt) return a.fireAt - b.fireAt;
  return a.uid < b.uid ? -1 : a.uid > b.uid ? 1 : 0;
}

/** An occurrence that a version of a schedule explains. */
export interface Expected extends Position {
  dueAt: Instant;
  version: number;
  enabled: boolean;
  catchUp: CatchUp;
  /** What excludes it: an entry of `exclude.dates`, a weekday, or the id of a calendar. Null: nothing. */
  excludedBy: string | null;
  /** The date that it was moved from; null: it was not moved. */
  movedFrom: string | null;
  /** The date on which the fires of its excluded day are made; null: nowhere. */
  movedTo: string | null;
}

/** The longest jitter: an occurrence is due at most this much after its moment. */
export const MAX_JITTER_MS = 86_400_000;

/** The first occurrences of a period, of versions that are added one after the other, in the order of `since`. */
interface Expectation {
  /** A version that begins later than this has none of them. */
  reach(): Instant;
  /**
   * Works in steps: each `next()` computes a few hundred occurrences at most. `calendars` has the histories of the
   * calendars that the version names. Throws if the version cannot be planned.
   */
  add(span: VersionSpan, calendars?: Calendars): Generator<void, void, void>;
  /** In order, each once, at most as many as were asked for. */
  list(): Expected[];
}

/** Occurrences after a position and before `to`, the first `max` of them; `firesOnly`: without those of excluded days. */
export function createExpectation({
  after,
  to,
  max,
  firesOnly = false,
}: {
  after: Position;
  to: Instant;
  max: number;
  firesOnly?: boolean;
}): Expectation {
  let found: Expected[] = [];
  let before: Timed | null = null;
  const last = (): Instant => (found.length < max ? to - 1 : (found.at(-1)?.fireAt ?? to - 1));

  return {
    reach: () => last() + MAX_JITTER_MS,
    list: () => found,
    add: function* (span, calendars = NO_CALENDARS) {
      const own: Expected[] = [];
      let steps = 0;
      const timed = timedAfter(before, { ...span, calendars });
      const cutOff = before?.uid === span.uid && timed.timedSince === span.since ? delayedBeyond(before) : null;
      const isCutOff = cutOff && !(firesOnly && cutOff.excludedBy !== null);
      if (isCutOff && byPosition(cutOff, after) > 0 && cutOff.fireAt <= last()) own.push(cutOff);
      before = timed;
      for (const one of occurrencesOf(timed, after.fireAt, firesOnly)) {
        if (one.fireAt > last() || own.length > max) break;
        if (byPosition(one, after) > 0) own.push(one);
        steps += costOf(span.timing);
        if (steps < SLICE_STEPS) continue;
        steps = 0;
        yield;
      }
      if (own.length > 0) found = merged(found, own).slice(0, max);
    },
  };
}

const SLICE_STEPS = 200;

type Known = VersionSpan & { calendars: Calendars };
/** `timedSince`: since when the schedule has had the fire times of this version. */
type Timed = Known & { timedSince: Instant };

function timedAfter(before: Timed | null, span: Known): Timed {
  const goesOn = before?.uid === span.uid && before.until === span.since && !movesTimes(before.timing, span.timing);
  return { ...span, timedSince: goesOn ? before.timedSince : span.since };
}

/** The occurrence whose delay an edit of the fire times cut short: it has a run, or its schedule was paused. */
function delayedBeyond(span: Timed): Expected | null {
  if (span.until === null || span.timing.jitterSeconds === 0) return null;
  const times = timesOrNull(span);
  if (!times) return null;
  const earliest = Math.max(span.timedSince, span.until - span.timing.jitterSeconds * 1000 - 1);
  const at = lastBetween(onAnyDay(times), earliest, span.until);
  if (at === null || times.dueAt(at) <= span.until) return null;
  return { ...expectedOf(span, times, at), enabled: false };
}

/** If a version cannot be planned, it reports so itself; a later version that mends it does not. */
function timesOrNull(span: Known): FireTimes | null {
  try {
    return timesOf(span);
  } catch {
    return null;
  }
}

function timesOf({ timing, identity, calendars }: Known): FireTimes {
  return fireTimes(timing, identity, calendars);
}

/** Excluded occurrences are accounted for as well. */
function onAnyDay(times: FireTimes): Pick<FireTimes, 'next'> {
  return { next: (after) => times.nextOnAnyDay(after) };
}

function expectedOf(
  { uid, version, enabled, timing: { catchUp } }: VersionSpan,
  times: FireTimes,
  fireAt: Instant,
): Expected {
  const [dueAt, excludedBy] = [times.dueAt(fireAt), times.excludedBy(fireAt)];
  const move = times.moveOf(fireAt);
  const [movedFrom, movedTo] = [move?.from ?? null, move?.to ?? null];
  return { uid, fireAt, dueAt, version, enabled, catchUp, excludedBy, movedFrom, movedTo };
}

/** Ascending, from the first one at `from` or later. */
function* occurrencesOf(span: Timed, from: Instant, firesOnly: boolean): Generator<Expected, void, void> {
  const { since, until } = span;
  const times = timesOf(span);
  const all = firesOnly ? times : onAnyDay(times);
  const end = until ?? Infinity;
  let at = firstOf(all, span, from);
  while (at !== null && at <= end) {
    const dueAt = times.dueAt(at);
    // None is due later than the moment of the next one, so all that follow are due later still.
    if (dueAt > end) return;
    if (dueAt > since) yield expectedOf(span, times, at);
    at = following(all, at);
  }
}

/** Where the walk begins: jitter can make the last occurrence before `since` due after it, and no earlier one. */
function firstOf(times: Pick<FireTimes, 'next'>, { timing, since, timedSince }: Timed, from: Instant): Instant | null {
  if (since < from) return times.next(from - 1);
  const earliest = Math.max(from - 1, timedSince, since - timing.jitterSeconds * 1000 - 1);
  return lastBetween(times, earliest, since) ?? times.next(since);
}

/**
 * Two versions can both explain an occurrence, where jitter moved it over the edit: the one under which it could
 * fire, and the later one.
 */
function merged(some: readonly Expected[], others: readonly Expected[]): Expected[] {
  const sorted = [...some, ...others].sort(byPosition);
  const once: Expected[] = [];
  for (const one of sorted) {
    const before = once.at(-1);
    if (!before || byPosition(before, one) !== 0) once.push(one);
    else if (one.enabled || !before.enabled) once[once.length - 1] = one;
  }
  return once;
}
