import type { Instant } from '../instant.ts';
import { type Expect, BOUNDS, FIELD_OF_BOUND } from '../schedules/expect.ts';
import { type AlertKind, type EndingCalendar, ALERT_OF_BOUND } from './alert.ts';

/** Something that breaks a schedule, or heals it. */
export interface Cause {
  kind: 'breaks' | 'heals';
  alertKind: AlertKind;
  at: Instant;
  /** The run that it is about; null: about none. */
  runId: string | null;
  /** For `missed`: how many fires were. */
  count: number;
}

/** What is known of a schedule under its lock. */
export interface Known {
  isEnabled: boolean;
  /** Firelock paused it, not a person. */
  isPausedByFirelock: boolean;
  /** When it was last enabled after a person had paused it; null: not since these causes. */
  resumedAt: Instant | null;
  /** Nothing is left for it to fire. */
  isOver: boolean;
  lastFireAt: Instant | null;
  /** Why it cannot be planned. */
  error: string | null;
  /** When its time for a success was up; null: it is not late. */
  lateSince: Instant | null;
  expect: Expect | null;
  /** The first of its calendars to end, where that is soon or was; null: none is. */
  calendar: EndingCalendar | null;
  /** By kind, when a run last showed that it is well: a success, one that kept its bound, what was caught up with. */
  wellAt: ReadonlyMap<AlertKind, Instant>;
  open: ReadonlyMap<AlertKind, OpenEpisode>;
  /** The newest ones that are over, as far as they may open again. */
  over: ReadonlyMap<AlertKind, OverEpisode>;
}

/** One that opens again within this time of its end is the same one; so often at most a notifier hears of it from then on. */
export const FLAP_SECONDS = 300;

interface OverEpisode {
  id: string;
  until: Instant;
}

export interface OpenEpisode {
  id: string;
  /** The newest moment at which it broke. */
  brokenAt: Instant;
  /** How often it broke in a row. */
  failures: number;
}

/** Since when it is over, and why, where it did not get well; null: it did. */
interface End {
  until: Instant;
  overBy: string | null;
}

/** What becomes of the episodes of one schedule. */
export interface AlertChanges {
  /** What opened it, and when the schedule broke last since; `again`: the id of the episode that opens again, null: it is a new one. */
  opened: { cause: Cause; brokenAt: Instant; failures: number; again: string | null }[];
  /** Episodes that are open already broke again; `before`: how often they had broken in a row before. */
  brokenAgain: (OpenEpisode & { kind: AlertKind; before: number })[];
  closed: ({ id: string; kind: AlertKind } & End)[];
}

/**
 * What becomes of the episodes of a schedule. Each is open exactly while its state holds. Causes may come late and in any order, so they
 * only say that and when something broke: whether it still is, what is known by now decides (`endOf`). Of what broke and is well by now
 * nothing is left.
 */
export function alertChanges(known: Known, causes: readonly Cause[], now: Instant): AlertChanges {
  const changes: AlertChanges = { opened: [], brokenAgain: [], closed: [] };
  const late = known.lateSince === null ? [] : [breaksByState('late', known.lateSince)];
  const isNews = known.calendar !== null && !known.open.has('calendar');
  const ends = isNews ? [breaksByState('calendar', now)] : [];
  const all = Map.groupBy([...causes, ...late, ...ends], ({ alertKind }) => alertKind);
  for (const kind of new Set([...known.open.keys(), ...all.keys()])) {
    const own = all.get(kind) ?? [];
    const knownBy = withHeals(known, kind, own);
    const breaks = own.filter((cause) => cause.kind === 'breaks').sort((a, b) => a.at - b.at);
    const open = known.open.get(kind);
    const brokenAt = Math.max(open?.brokenAt ?? -Infinity, ...breaks.map(({ at }) => at));
    const end = endOf(knownBy, kind, open?.brokenAt ?? brokenAt, now);
    const wellUntil = knownBy.wellAt.get(kind) ?? -Infinity;
    // That it is late, each look says anew.
    const fresh = kind === 'late' ? 0 : breaks.filter(({ at }) => at > wellUntil).length;
    if (open && end === null) {
      const failures = open.failures + fresh;
      if (brokenAt > open.brokenAt || fresh > 0)
        changes.brokenAgain.push({ id: open.id, kind, brokenAt, failures, before: open.failures });
      continue;
    }
    // What broke again since goes on as the same episode, but for a schedule that was on time and is late anew.
    const cause = breaks.find(({ at }) => mayOpen(knownBy, kind, at, now));
    if (open && cause && kind !== 'late') {
      changes.brokenAgain.push({ id: open.id, kind, brokenAt, failures: fresh, before: 0 });
      continue;
    }
    const last = open && end ? { id: open.id, until: end.until } : known.over.get(kind);
    const again = cause && last && cause.at <= last.until + FLAP_SECONDS * 1000 ? last.id : null;
    if (open && end && again === null) changes.closed.push({ id: open.id, kind, ...end });
    if (cause) changes.opened.push({ cause, brokenAt, failures: Math.max(1, fresh), again });
  }
  return changes;
}

function breaksByState(alertKind: AlertKind, at: Instant): Cause {
  return { kind: 'breaks', alertKind, at, runId: null, count: 0 };
}

/** That it is late its watch says, and whether what was missed is caught up with, its runs. */
function withHeals(known: Known, kind: AlertKind, causes: readonly Cause[]): Known {
  const heals = causes.filter((cause) => cause.kind === 'heals').map(({ at }) => at);
  if (heals.length === 0 || kind === 'late' || kind === 'missed') return known;
  const at = Math.max(known.wellAt.get(kind) ?? -Infinity, ...heals);
  return { ...known, wellAt: new Map([...known.wellAt, [kind, at]]) };
}

/** Of what a person keeps paused, or had paused since, nothing is said; of fires that were missed, something in every case. */
function mayOpen(known: Known, kind: AlertKind, at: Instant, now: Instant): boolean {
  if (kind !== 'missed') return endOf(known, kind, at, now) === null;
  return !isPausedByPerson(known) && at > (known.resumedAt ?? -Infinity);
}

function isPausedByPerson({ isEnabled, isPausedByFirelock }: Known): boolean {
  return !isEnabled && !isPausedByFirelock;
}

/** Of what broke last at that moment; null: its state holds. */
function endOf(known: Known, kind: AlertKind, brokenAt: Instant, now: Instant): End | null {
  if (isPausedByPerson(known)) return { until: now, overBy: 'a person paused it' };
  const healed = healedAt(known, kind, brokenAt, now);
  if (healed !== null) return { until: healed, overBy: null };
  const overBy = whyOver(known, kind);
  if (overBy !== null) return { until: now, overBy };
  return brokenAt > (known.resumedAt ?? -Infinity) ? null : { until: now, overBy: 'a person had paused it' };
}

function healedAt(known: Known, kind: AlertKind, brokenAt: Instant, now: Instant): Instant | null {
  const { isEnabled, lastFireAt, error, lateSince, wellAt } = known;
  const well = wellAt.get(kind) ?? null;
  // A success that ended before may have been written after.
  if (kind === 'late') return lateSince === brokenAt ? null : well;
  if (kind === 'paused') return isEnabled ? now : null;
  if (kind === 'error') return error === null ? now : null;
  if (kind === 'calendar') return known.calendar === null ? now : null;
  if (well !== null && well >= brokenAt) return well;
  return kind === 'missed' && lastFireAt !== null && lastFireAt > brokenAt ? lastFireAt : null;
}

/** Why it cannot be, whatever runs show; null: it can. */
function whyOver({ isEnabled, isOver, lateSince, expect }: Known, kind: AlertKind): string | null {
  if (kind === 'late' && lateSince === null) {
    if (!isEnabled) return 'firelock paused it';
    return isOver ? 'nothing is left to fire' : 'it may be longer without a success now';
  }
  const bound = BOUNDS.find((one) => ALERT_OF_BOUND[one] === kind);
  if (kind === 'calendar' && !isEnabled) return 'firelock paused it';
  if (bound !== undefined && (expect?.[FIELD_OF_BOUND[bound]] ?? null) === null) return 'no such bound is left';
  return (kind === 'missed' || kind === 'calendar') && isOver ? 'nothing is left to fire' : null;
}

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
