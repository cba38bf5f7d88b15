import { isDeepStrictEqual } from 'node:util';
import { type Instant, EARLIEST, isoInstant } from '../../core/instant.ts';
import type { Schedule } from '../../core/schedules/schedule.ts';
import { type Identity, type Timing, calendarIdsOf } from '../../core/timing/timing.ts';
import type { KnownCalendars } from '../../store/calendars/calendar-histories.ts';
import type { Calendars } from '../../core/exclusions/exclusion.ts';
import { graceMsOf } from '../../core/time/plan-due.ts';
import { cronTimes, exploreDays } from '../../core/cron/cron.ts';
import { type Cron, expressionsOf } from '../../core/cron/cron-fields.ts';
import { fireTimes } from '../../core/time/fire-times.ts';
import { createPace } from '../../runtime/loop/slices.ts';
import type { Fault } from '../http/problem.ts';

/** The slow facts about a `cron` without calendars; they stay right after `asOf`, until `first` has passed. */
export interface Outlook {
  /** The first fire after `asOf`; null: there is none. */
  first: Instant | null;
  /** The places of expressions that match nothing at all. */
  barren: string[];
  /** It would fire if nothing were excluded. */
  allExcluded: boolean;
  /** The rule of days that leaves no day, where it is not what is excluded. */
  noDays: Fault | null;
}

/**
 * Reads the expressions of a list and computes their days, in slices. The results are cached, so that the check under a
 * row lock takes little time, and no answer about them takes much at once.
 */
export async function lookAhead(
  { cron, timezone }: { cron?: Cron | null | undefined; timezone?: string | null | undefined },
  id: string,
  pace = createPace(),
): Promise<void> {
  if (!Array.isArray(cron)) return;
  for (const expression of expressionsOf(cron)) {
    const steps = exploreDays(expression, timezone ?? null, id);
    while (steps.next().done !== true) await pace();
  }
}

export function outlookOf(timing: Timing, id: string, asOf: Instant, calendars?: Calendars): Outlook {
  const identity = { id, createdAt: asOf };
  const times = fireTimes(timing, identity, calendars);
  const first = times.next(asOf);
  const { cron } = timing;
  if (cron === null || (first !== null && typeof cron === 'string'))
    return {
      first,
      barren: [],
      allExcluded: first === null && times.nextOnAnyDay(asOf) !== null,
      noDays: null,
    };
  const leftOut = first === null ? leftOutOf(timing, identity, asOf) : null;
  const barren = expressionsOf(cron).flatMap((expression, index) => {
    const own = cronTimes(expression, timing.timezone, id);
    // An expression names no year: if it does not match in this century, it never does.
    const anyTime = own.next(asOf) ?? own.next(EARLIEST);
    const path = typeof cron === 'string' ? '/cron' : `/cron/${index}`;
    return anyTime === null ? [path] : [];
  });
  return { first, barren, allExcluded: leftOut === 'exclude', noDays: noDaysFault(leftOut) };
}

/** Which rule of days leaves no day to fire on; null: none does. */
function leftOutOf(timing: Timing, identity: Identity, asOf: Instant): 'exclude' | 'pick' | 'every' | null {
  const fires = (some: Partial<Timing>) =>
    fireTimes({ ...timing, exclude: null, ...some }, identity).next(asOf) !== null;
  if (timing.exclude !== null && fires({})) return 'exclude';
  if (timing.pick !== null && fires({ pick: null })) return 'pick';
  return timing.every !== null && fires({ pick: null, every: null }) ? 'every' : null;
}

function noDaysFault(leftOut: ReturnType<typeof leftOutOf>): Fault | null {
  if (leftOut === 'pick') return { path: '/pick', message: 'picks no day on which it could fire' };
  return leftOut === 'every' ? { path: '/every', message: 'leaves no day on which it could fire' } : null;
}

/**
 * All reasons why a schedule could no longer fire, to be answered with 422. None if the fields that say when it fires
 * are the stored ones.
 */
export function fireFaults(timing: Timing, { id, current, now, calendars }: FireContext, outlook?: Outlook): Fault[] {
  if (current !== null && sameFields(timing, current.definition)) return [];
  const unknown = unknownCalendars(timing, calendars);
  const faults = [...unknown, ...windowFaults(timing, now), ...atFaults(timing, current, now)];
  const identity = { id, createdAt: current?.createdAt ?? now };
  if (timing.at !== null && faults.length === 0) return excludedAt(timing, identity, calendars);
  if (timing.cron === null && timing.everySeconds === null) return faults;
  const known = outlook !== undefined && (outlook.first === null || outlook.first > now) ? outlook : null;
  if (timing.cron !== null) {
    const { first, barren, allExcluded, noDays } = known ?? outlookOf(timing, id, now, calendars.histories);
    faults.push(...barren.map(neverFires));
    if (allExcluded && faults.length === 0) faults.push(ALL_EXCLUDED);
    else if (noDays !== null && faults.length === 0) faults.push(noDays);
    else if (first === null && faults.length === 0) faults.push(nothingLeft(timing));
    return faults;
  }
  const times = fireTimes(timing, identity, calendars.histories);
  if (times.next(now) === null && faults.length === 0)
    faults.push(times.nextOnAnyDay(now) === null ? nothingLeft(timing) : ALL_EXCLUDED);
  return faults;
}

export function neverFires(path: string): Fault {
  return { path, message: 'never fires' };
}

interface FireContext {
  id: string;
  current: Schedule | null;
  now: Instant;
  /** The calendars that the timing names, as far as they exist. */
  calendars: KnownCalendars;
}

/** Calendars that the timing names and that do not exist. */
export function unknownCalendars(
  timing: Pick<Timing, 'exclude'>,
  { editions }: Pick<KnownCalendars, 'editions'>,
): Fault[] {
  return calendarIdsOf(timing).flatMap((id, index) =>
    editions.has(id)
      ? []
      : [{ path: `/exclude/calendars/${index}`, message: `names a calendar that does not exist: ${id}` }],
  );
}

function excludedAt(timing: Timing, identity: Identity, { histories }: KnownCalendars): Fault[] {
  if (timing.at === null) return [];
  const reason = fireTimes(timing, identity, histories).excludedBy(timing.at);
  return reason === null ? [] : [{ path: '/exclude', message: `excludes its only fire, by ${reason}` }];
}

export const ALL_EXCLUDED: Fault = { path: '/exclude', message: 'excludes every fire' };

function windowFaults({ startAt, endAt }: Timing, now: Instant): Fault[] {
  const faults: Fault[] = [];
  if (endAt !== null && endAt <= now) faults.push({ path: '/endAt', message: PASSED });
  if (startAt !== null && endAt !== null && startAt >= endAt) {
    faults.push({ path: '/startAt', message: 'must be before endAt' });
  }
  return faults;
}

const PASSED = 'is in the past: nothing would fire';

function atFaults({ at, startAt, endAt, graceSeconds }: Timing, current: Schedule | null, now: Instant): Fault[] {
  if (at === null) return [];
  if (at < now - graceMsOf({ graceSeconds })) {
    return [
      {
        path: '/at',
        message: `is more than graceSeconds (${graceSeconds}) in the past: it would never fire`,
      },
    ];
  }
  const planned = plannedThrough(current, now);
  if (planned !== null && at <= planned) {
    const message = `is not after ${isoInstant(planned)}, up to which this schedule has been planned: it would never fire`;
    return [{ path: '/at', message }];
  }
  if (startAt !== null && at < startAt) return [{ path: '/at', message: 'is before startAt: it would never fire' }];
  if (endAt !== null && at >= endAt) return [{ path: '/at', message: 'is not before endAt: it would never fire' }];
  return [];
}

/** The cursor of a schedule only rises. An edit plans what is due before it is written. */
function plannedThrough(current: Schedule | null, now: Instant): Instant | null {
  if (current === null) return null;
  const isDue = current.nextOccurrenceAt !== null && current.nextOccurrenceAt <= now;
  return isDue ? now : current.plannedThrough;
}

function nothingLeft({ startAt, endAt }: Timing): Fault {
  if (endAt === null) return { path: '/startAt', message: 'is later than every fire time' };
  const between = startAt === null ? 'before it' : `between startAt (${isoInstant(startAt)}) and it`;
  return { path: '/endAt', message: `leaves no fire time ${between}` };
}

/** A zone matters only for `cron` and `exclude`, and the grace decides only whether an `at` comes too late. */
function sameFields(a: Timing, b: Timing): boolean {
  return isDeepStrictEqual(decisive(a), decisive(b));
}

function decisive(timing: Timing) {
  const { cron, everySeconds, at, after, timezone, exclude, startAt, endAt, graceSeconds } = timing;
  const { onExcluded, every, pick } = timing;
  const zone = cron === null && exclude === null ? null : timezone;
  const grace = at === null ? null : graceSeconds;
  return { cron, everySeconds, at, after, zone, exclude, onExcluded, every, pick, startAt, endAt, grace };
}
