import {
  type Firing,
  type LoadCount,
  type LoadPeriod,
  LoadTooLarge,
  createLoadCount,
} from '../../core/time/fire-load.ts';
import { LONGEST_REACH_MS } from '../../core/days/day-times.ts';
import type { Scope } from '../../core/access/scope.ts';
import { type Identity, type Timing, calendarIdsOf } from '../../core/timing/timing.ts';
import type { CalendarHistory } from '../../core/exclusions/exclusion.ts';
import { type Instant, isoInstant } from '../../core/instant.ts';
import { MAX_JITTER_MS } from '../../core/time/expected-occurrences.ts';
import { inSlices } from '../../runtime/loop/slices.ts';
import type { Database } from '../../postgres/database.ts';
import { readCalendars } from '../../store/calendars/calendar-histories.ts';
import { type TimingPage, listTimings } from '../../store/reports/occurrence-rows.ts';
import { type Skips, firstSkipsOf } from '../../store/schedules/skips.ts';
import { type Problem, invalid } from '../http/problem.ts';

interface Asked {
  database: Database;
  /** Only schedules that a caller of this scope sees. */
  scope: Scope;
  period: LoadPeriod;
  /** The answer names at most so many schedules, with how often each fires. */
  top: number;
  /** The caller has gone, and waits for no answer. */
  isGone: () => boolean;
}

export interface CountedLoad {
  buckets: { at: Instant; fires: number }[];
  schedules: number;
  firing: Firing[];
  /** The uid of the last schedule that was looked at, or with a scope its id; null: there are no more. */
  next: string | null;
}

/**
 * Of all schedules that the caller sees.
 * @throws Problem 422 too much to count
 */
export async function countAll(asked: Asked): Promise<CountedLoad> {
  const counted = await countSome(asked, ALL);
  if (!counted.load) throw await tooMuch(asked, ALL, counted);
  return counted.load;
}

/**
 * Of the next `most` schedules in the order of listTimings, or of fewer, if these take long to count.
 * @throws Problem 422 too much to count of a single one
 */
export async function countPage(
  asked: Asked,
  { after, most }: { after: string | null; most: number },
): Promise<CountedLoad> {
  for (let wanted = most; ;) {
    const single = wanted === 1;
    const some = { after, most: wanted, maxSteps: single ? undefined : PAGE_STEPS };
    const counted = await countSome(asked, some);
    if (counted.load) return counted.load;
    if (single) throw await tooMuch(asked, some, counted);
    wanted = Math.max(1, Math.floor(counted.seen / 2));
  }
}

/** About a tenth of a second. */
const PAGE_STEPS = 400_000;
const READ_AT_ONCE = 5_000;

interface Counted {
  /** Null: there is too much to count. */
  load: CountedLoad | null;
  /** All of about the same size. */
  slices: number;
  /** Schedules looked at. */
  seen: number;
}

interface Some {
  after: string | null;
  most: number;
  maxSteps?: number | undefined;
}

const ALL: Some = { after: null, most: Infinity };

async function countSome({ database, scope, period, top, isGone }: Asked, some: Some): Promise<Counted> {
  const { after, most, maxSteps } = some;
  const calendars: Histories = new Map();
  const bounds = { top, ...(maxSteps !== undefined && { maxSteps }) };
  const count = createLoadCount({ ...period, calendars }, bounds);
  const spent = { slices: 0, seen: 0 };
  let next = after;
  let read = 0;
  let isMore = true;
  try {
    while (isMore && read < most && !isGone()) {
      const asked = { scope, after: next, limit: Math.min(READ_AT_ONCE, most - read) };
      const page = await timingsAfter(database, { ...asked, since: period.from }, calendars);
      read += page.read;
      for (const one of page.timings) {
        spent.seen += 1;
        await inSlices(tallied(addTo(count, one), spent));
      }
      next = page.next;
      isMore = next !== null;
    }
    await inSlices(tallied(count.finish(), spent));
  } catch (error) {
    if (error instanceof LoadTooLarge) return { load: null, ...spent };
    throw error;
  }
  const load = { buckets: count.buckets(), schedules: count.schedules(), firing: count.firing(), next };
  return { load, ...spent };
}

function* addTo(count: LoadCount, { identity, timing, skips, goesOnAfter }: Timed): Generator<void, void, void> {
  if (skips) yield* count.leaveOut(timing, identity, skips.keys());
  yield* count.add(timing, identity, goesOnAfter);
}

function* tallied(steps: Iterable<void>, spent: Pick<Counted, 'slices'>): Generator<void, void, void> {
  for (const step of steps) {
    spent.slices += 1;
    yield step;
  }
}

interface Timed {
  identity: Identity;
  timing: Timing;
  skips: Skips | undefined;
  goesOnAfter: Instant | null;
}

type Histories = Map<string, CalendarHistory>;

/** What the calendars of the timings say is in `calendars` afterwards. */
async function timingsAfter(
  database: Database,
  { since, ...asked }: TimingPage & { since: Instant },
  calendars: Histories,
) {
  const page = await database.run((db) => listTimings(db, asked));
  const uids = page.flatMap(({ uid, hasSkips }) => (hasSkips ? [uid] : []));
  const skips = uids.length === 0 ? null : await database.run((db) => firstSkipsOf(db, uids));
  await readInto(calendars, database, { timings: page.flatMap(({ timing }) => timing ?? []), since });
  return {
    timings: page.flatMap(({ uid, identity, timing, goesOnAfter }) =>
      timing ? [{ identity, timing, goesOnAfter, skips: skips?.get(uid) }] : [],
    ),
    read: page.length,
    next: page.length < asked.limit ? null : placeOf(page.at(-1), asked.scope),
  };
}

function placeOf(last: { uid: string; identity: Identity } | undefined, scope: Scope): string | null {
  return (scope === null ? last?.uid : last?.identity.id) ?? null;
}

async function readInto(
  calendars: Histories,
  database: Database,
  { timings, since }: { timings: readonly Timing[]; since: Instant },
): Promise<void> {
  const ids = new Set(timings.flatMap(calendarIdsOf).filter((id) => !calendars.has(id)));
  if (ids.size === 0) return;
  // Later pages name the same calendars, and may pick or move days.
  const from = since - MAX_JITTER_MS - LONGEST_REACH_MS;
  const { histories } = await database.run((db) => readCalendars(db, [...ids], from));
  for (const [id, history] of histories) calendars.set(id, history);
}

/** The cost of the period's beginning shows how much of it could be counted. */
async function tooMuch(asked: Asked, some: Some, { slices: maxSlices }: Counted): Promise<Problem> {
  const { from, to, bucketMs } = asked.period;
  const problem = (hint: string) =>
    invalid([{ path: 'to', message: `makes the period too long to count: choose an earlier end${hint}` }], 422);
  for (let sample = (to - from) / SAMPLES; sample >= 1000 && !asked.isGone(); sample /= SAMPLES) {
    const shorter = { ...asked, period: { from, to: from + sample, bucketMs } };
    const { load, slices } = await countSome(shorter, some);
    if (load === null) continue;
    // Half of it, since no hour is like the other.
    const fitting = Math.min(0.5 * sample * (maxSlices / Math.max(slices, 1)), (to - from) / 2);
    return problem(`, such as ${isoInstant(from + Math.ceil(fitting / 1000) * 1000)}`);
  }
  return problem('');
}

const SAMPLES = 64;
