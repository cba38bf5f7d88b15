/**
 * Guarantees: fires that an edit of a calendar moves to a moment that has passed are recorded once, as `catchUp` says.
 * Transaction: one for a hundred schedules, under their row locks; it shares the calendars and compares their editions.
 * If the process dies here: nothing is written; the calendar watch of any instance begins anew, and finds what was recorded.
 */
import { type ScopeShares, NO_SHARES } from '../../core/access/scope.ts';
import { laneInScope } from '../../core/runs/run-lane.ts';
import { mayOwe, owedByCalendars } from '../../core/days/decided-dates.ts';
import type { Instant } from '../../core/instant.ts';
import { type Timing, calendarIdsOf } from '../../core/timing/timing.ts';
import type { Database } from '../../postgres/database.ts';
import type { Transaction } from '../../postgres/executor.ts';
import { databaseNow } from '../../postgres/sql/rows.ts';
import { systemClock } from '../../runtime/clock.ts';
import type { EventBus } from '../../runtime/event-bus.ts';
import { createPace } from '../../runtime/loop/slices.ts';
import type { CalendarUser } from '../../store/calendars/calendar-cursors.ts';
import { type KnownCalendars, shareFreeCalendars, unappliedSince } from '../../store/calendars/calendar-histories.ts';
import { emitJudged, judgeOverlapsNowOrSoon } from '../../store/runs/overlaps.ts';
import { lockFreeSchedules, lockSchedules } from '../../store/schedules/search/find-schedules.ts';
import { raisePlannedUnderLock } from '../../store/schedules/write-schedules.ts';
import { planBeforeUpdate } from '../schedules/plan-before-update.ts';
import { asWrite } from '../schedules/schedule-writes.ts';

interface OwedDeps {
  database: Database;
  events: EventBus;
  /** Nothing older is recorded. */
  retentionDays: number;
  scopeShares?: ScopeShares;
}

type OwedUser = Parameters<typeof owedByCalendars>[1];

/** A user of calendars that were edited. */
interface Owing {
  user: CalendarUser;
  timing: Timing;
}

/** One transaction takes so many schedules, and about so many fires. */
const MOST_SCHEDULES = 100;
const MOST_FIRES = 10_000;

/** Those of the first of these users whom an edit of their calendars may owe a fire, as many as one transaction takes. */
export async function mayBeOwed<One extends Owing>(
  users: readonly One[],
  known: KnownCalendars,
): Promise<{ owing: One[]; looked: number }> {
  const now = systemClock.now();
  const pace = createPace();
  const owing: One[] = [];
  let [fires, looked] = [0, 0];
  for (const one of users) {
    if (owing.length >= MOST_SCHEDULES || fires >= MOST_FIRES) break;
    await pace();
    const owed = owedTo(one.timing, one.user, known, now);
    if (owed.length > 0) owing.push(one);
    fires += owed.length;
    looked += 1;
  }
  return { owing, looked };
}

/** Answers the uids of those to whom nothing is owed any more; another transaction has a row of the others, or has edited a calendar. */
export async function recordOwed(
  { database, events, retentionDays, scopeShares = NO_SHARES }: OwedDeps,
  owing: readonly Owing[],
  known: KnownCalendars,
): Promise<ReadonlySet<string>> {
  const uids = owing.map(({ user }) => user.uid);
  const { done, judged } = await database.transaction(async (tx) => {
    const ids = [...known.histories.keys()];
    const editions = await shareFreeCalendars(tx, ids);
    if (ids.some((id) => editions.get(id) !== known.editions.get(id))) return NOTHING_DONE;
    const { free, locked } = await lockFreeSchedules(tx, uids);
    const all = new Set(uids.filter((uid) => !locked.includes(uid)));
    const now = await databaseNow(tx);
    const edited = await editedOf(tx, owing, { free, known, now });
    const [first] = edited;
    if (!first) return { done: all, judged: null };
    const lanes = new Map(edited.map(({ schedule: { id, lane } }) => [id, laneInScope(scopeShares, lane, id)]));
    const planning = { now, retentionDays, calendars: known.histories, skips: new Map<string, never>() };
    await planBeforeUpdate(tx, edited, { ...planning, laneOf: (_, id) => lanes.get(id) ?? '' });
    await raisePlannedUnderLock(
      tx,
      edited.map(({ write }) => write),
    );
    return {
      done: all,
      judged: await judgeOverlapsNowOrSoon(
        tx,
        edited.map(({ schedule }) => schedule.uid),
      ),
    };
  });
  if (judged) emitJudged(events, judged);
  return done;
}

const NOTHING_DONE = { done: new Set<string>(), judged: null };

/** As an edit that changes nothing and owes what the planner does not come to any more, since the cursor has passed it. */
async function editedOf(
  tx: Transaction,
  owing: readonly Owing[],
  { free, known, now }: { free: readonly string[]; known: KnownCalendars; now: Instant },
) {
  const isFree = new Set(free);
  const users = owing.flatMap(({ user }) => (isFree.has(user.uid) ? [user] : []));
  const schedules = await lockSchedules(
    tx,
    users.map(({ id }) => id),
  );
  return users.flatMap(({ id, uid }) => {
    const schedule = schedules.get(id);
    if (schedule?.uid !== uid || !schedule.definition.enabled) return [];
    const cursor = schedule.nextOccurrenceAt ?? Infinity;
    const owed = owedTo(schedule.definition, schedule, known, now).filter((at) => at < cursor);
    if (owed.length === 0) return [];
    return [{ schedule: { ...schedule, nextOccurrenceAt: null }, write: asWrite(schedule, null), owed }];
  });
}

function owedTo(timing: Timing, user: OwedUser, known: KnownCalendars, now: Instant): Instant[] {
  const editedAt = unappliedSince(known, calendarIdsOf(timing));
  if (editedAt === null || !mayOwe(timing)) return [];
  return owedByCalendars(timing, user, known.histories, { editedAt, now });
}
