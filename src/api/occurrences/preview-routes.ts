import { type Scope, sees } from '../../core/access/scope.ts';
import type { EndingCalendar } from '../../core/alerts/alert.ts';
import { type Instant, isoInstant, LATEST, DAY_MS } from '../../core/instant.ts';
import { type Identity, type Timing, calendarIdsOf, DEFAULT_TIMING } from '../../core/timing/timing.ts';
import { calendarReachOf } from '../../core/days/day-times.ts';
import { type Cron, expressionsOf } from '../../core/cron/cron-fields.ts';
import type { Calendars } from '../../core/exclusions/exclusion.ts';
import { MAX_JITTER_MS } from '../../core/time/expected-occurrences.ts';
import { planningGoesOnAfter } from '../../core/time/cursors.ts';
import { firstUnskipped } from '../../core/time/skipped-fires.ts';
import { parseCron } from '../../core/cron/cron-parse.ts';
import { dayRulesInWords } from '../../core/describe/describe-days.ts';
import { describeCron, describeInterval } from '../../core/describe/describe.ts';
import { type FireTimes, fireTimes } from '../../core/time/fire-times.ts';
import { localTime } from '../../core/zones/zone.ts';
import { hasNoTimesOfItsOwn } from '../../operations/operation-refused.ts';
import { yieldToEventLoop, createPace } from '../../runtime/loop/slices.ts';
import type { Database } from '../../postgres/database.ts';
import type { Executor } from '../../postgres/executor.ts';
import { databaseNow } from '../../postgres/sql/rows.ts';
import { readCalendars } from '../../store/calendars/calendar-histories.ts';
import { endingAmong } from '../../store/calendars/calendar-rows.ts';
import { findSchedule } from '../../store/schedules/search/find-schedules.ts';
import { type Skips, skipsOf } from '../../store/schedules/skips.ts';
import type { Api, ApiDeps } from '../deps.ts';
import { ALL_EXCLUDED, lookAhead, neverFires, outlookOf, unknownCalendars } from '../schedules/fire-faults.ts';
import { asUnplannable, invalid, noSuch } from '../http/problem.ts';
import { addRoute, json, TAGS } from '../http/routes.ts';
import { scheduleIdParams } from '../http/common-schemas.ts';
import {
  ASSUMED_ID,
  previewedTimes,
  previewInput,
  upcomingQuery,
  upcomingTimes,
  MAX_FIRES_OF_DAY,
} from './preview-schemas.ts';
import { type ExplainedDay, dayExplainer, daysOfMonth, hasDays, type Ruled } from '../../core/time/explained-days.ts';

const tags = [TAGS.times];

export function addPreviewRoutes(api: Api, deps: ApiDeps): void {
  addUpcomingRoute(api, deps);
  addPreviewRoute(api, deps);
}

function addUpcomingRoute(api: Api, { database }: ApiDeps): void {
  addRoute(api, {
    route: 'GET /schedules/:id/upcoming',
    operationId: 'listUpcomingFires',
    config: { role: 'viewer', scope: { name: 'schedule' } },
    summary: 'When a schedule fires next, paused or not: strictly after `from`, or the fires still to come',
    tags,
    params: scheduleIdParams,
    querystring: upcomingQuery,
    answers: { 200: json('Fire times', upcomingTimes) },
    refusals: [404, 409],
    handler: async ({ params: { id }, query: { count, from } }) => {
      const { found, now, calendars, ending, skips } = await database.run((db) => findUpcoming(db, id, from));
      if (!found) throw noSuch(`schedule ${id}`);
      const { definition, createdAt, nextOccurrenceAt: delayed } = found;
      if (definition.after !== null) throw hasNoTimesOfItsOwn(id);
      try {
        const times = withoutMade(fireTimes(definition, { id, createdAt }, calendars), skips);
        const next = times.next(begins(from ?? now, planningGoesOnAfter(found, now), now));
        // With jitter, the moment of a coming fire may have passed already.
        const isDelayed = from === undefined && delayed !== null && times.dueAt(delayed) > now;
        const isNext = isDelayed && (next === null || delayed < next) && times.excludedBy(delayed) === null;
        const first = isNext ? delayed : next;
        const items = await firesFrom(times, first, count, (at) => ({
          ...answerDueFire(times, definition, at),
          ...answerSkip(skips, at),
        }));
        const ruled = { timing: definition, identity: { id, createdAt }, calendars };
        const explained = await explainMonth(ruled, from ?? now, (at) => answerFire(times, definition, at));
        return { items, ...explained, warnings: ending.map(warningOf) };
      } catch (error) {
        throw asUnplannable(id, error);
      }
    },
  });
}

function warningOf({ id: calendar, validUntil }: EndingCalendar) {
  return { kind: 'calendar' as const, calendar, validUntil };
}

/** A list may begin in the past; while a clock that was ahead keeps planning from going on, it begins where planning will. */
function begins(from: Instant, goesOnAfter: Instant, now: Instant): Instant {
  return goesOnAfter > now ? Math.max(from, goesOnAfter) : from;
}

/** A schedule, and everything that excludes fires of it. */
async function findUpcoming(db: Executor, id: string, from: Instant | undefined) {
  const found = await findSchedule(db, id);
  const now = await databaseNow(db);
  const ids = found ? calendarIdsOf(found.definition) : [];
  const reach = MAX_JITTER_MS + MONTH_REACH_MS + (found ? calendarReachOf(found.definition) : 0);
  const { histories } = await readCalendars(db, ids, Math.min(from ?? now, now) - reach);
  const skips = found?.hasSkips ? (await skipsOf(db, [found.uid])).get(found.uid) : undefined;
  return { found, now, calendars: histories, ending: await endingAmong(db, ids), skips };
}

function addPreviewRoute(api: Api, { database }: ApiDeps): void {
  addRoute(api, {
    route: 'POST /preview',
    operationId: 'previewFires',
    config: { role: 'viewer', scope: 'itself', audits: [] },
    summary: 'When an expression or an interval would fire, strictly after `from`',
    tags,
    body: previewInput,
    answers: { 200: json('Fire times', previewedTimes) },
    refusals: [422],
    handler: async ({ body: { from, count, id, ...given }, caller: { scope } }) => {
      const { cron } = given;
      const timing = { ...DEFAULT_TIMING, ...given, at: null, after: null };
      const { after, calendars } = await beginningOf(database, timing, { from: from ?? null, scope });
      const identity = { id: id ?? '', createdAt: after };
      await lookAhead(timing, identity.id);
      const times = fireTimes(timing, identity, calendars);
      const items = await firesFrom(times, times.next(after), count, (at) => answerFire(times, timing, at));
      if (items.length === 0 || Array.isArray(cron)) refuseBarren(timing, identity.id, after, calendars);
      const ruled = { timing, identity, calendars };
      // An interval is counted from `from`: other months would have other fires than the schedule.
      const explained = cron !== null && (await explainMonth(ruled, after, (at) => answerFire(times, timing, at)));
      const isOfNobody = (id ?? null) === null && isHashed(cron);
      const assumes = isOfNobody ? { assumes: ASSUMED_ID } : {};
      return { description: describe(timing, identity), items, ...explained, ...assumes };
    },
  });
}

/** @throws Problem 422 if it names a calendar that does not exist, or that the scope does not show */
async function beginningOf(
  database: Database,
  timing: Timing,
  { from, scope }: { from: Instant | null; scope: Scope },
) {
  return database.run(async (db) => {
    const after = from ?? (await databaseNow(db));
    const ids = calendarIdsOf(timing).filter((id) => sees(scope, id));
    const known = await readCalendars(db, ids, after - MONTH_REACH_MS - calendarReachOf(timing));
    const unknown = unknownCalendars(timing, known);
    if (unknown.length > 0) throw invalid(unknown, 422);
    return { after, calendars: known.histories };
  });
}

/** @throws Problem 422 if an expression never fires, or no fire is left */
function refuseBarren(timing: Timing, id: string, after: Instant, calendars: Calendars): void {
  const { barren, allExcluded, noDays } = outlookOf(timing, id, after, calendars);
  if (barren.length > 0) throw invalid(barren.map(neverFires), 422);
  if (allExcluded) throw invalid([ALL_EXCLUDED], 422);
  if (noDays !== null) throw invalid([noDays], 422);
}

const SLICE = 10;

/** In slices, so that a thousand fire times do not make other requests wait. */
async function firesFrom<Answer>(
  times: FireTimes,
  first: Instant | null,
  count: number,
  answer: (at: Instant) => Answer,
): Promise<Answer[]> {
  const items: Answer[] = [];
  let at = first;
  while (at !== null && at <= LATEST && items.length < count) {
    items.push(answer(at));
    if (items.length % SLICE === 0) await yieldToEventLoop();
    at = times.next(at);
  }
  return items;
}

function answerFire(times: FireTimes, { timezone }: Pick<Timing, 'timezone'>, at: Instant) {
  const note = times.noteOf(at);
  return { fireAt: isoInstant(at), local: localTime(at, timezone), ...(note === null ? {} : { note }) };
}

/** Those that were made while the database's clock was ahead are not to come. */
function withoutMade(times: FireTimes, skips: Skips | undefined): FireTimes {
  const made = new Map([...(skips ?? [])].filter(([, skip]) => skip.made));
  return made.size === 0 ? times : { ...times, next: (after) => firstUnskipped(times, times.next(after), made) };
}

function answerSkip(skips: Skips | undefined, at: Instant) {
  const skip = skips?.get(at);
  if (!skip) return {};
  const { reason } = skip;
  return { skipped: true, ...(reason === null ? {} : { skipReason: reason }) };
}

function answerDueFire(times: FireTimes, timing: Timing, at: Instant) {
  const fire = answerFire(times, timing, at);
  return timing.jitterSeconds === 0 ? fire : { ...fire, dueAt: isoInstant(times.dueAt(at)) };
}

function isHashed(cron: Cron | null): boolean {
  return cron !== null && expressionsOf(cron).some((expression) => parseCron(expression, '').hashed);
}

function describe(timing: Timing, { id }: Identity): string {
  const { cron, everySeconds } = timing;
  if (cron !== null) return describeCron(cron, id) + dayRulesInWords(timing);
  return everySeconds === null ? '' : describeInterval(everySeconds);
}

/** So long before a moment its local month can have begun, in ms. */
const MONTH_REACH_MS = 33 * DAY_MS;

/**
 * Explains the days of the month in which the first moment after `after` lies; nothing, if no rules of days are given. In slices, so that
 * it does not make other requests wait. `answer` says what a fire is like.
 */
async function explainMonth<Fire>(ruled: Ruled, after: Instant, answer: (at: Instant) => Fire) {
  const { timing } = ruled;
  if (!hasDays(timing)) return {};
  const pace = createPace();
  const explain = dayExplainer(ruled, MAX_FIRES_OF_DAY);
  const days: ReturnType<typeof answerDay<Fire>>[] = [];
  for (const day of daysOfMonth(timing.timezone, after + 1)) {
    await pace();
    days.push(answerDay(explain(day), answer));
  }
  return { days };
}

function answerDay<Fire>(day: ExplainedDay, answer: (at: Instant) => Fire) {
  const { date, verdict, fires, isCut, reason, movedTo, movedFrom } = day;
  return {
    date,
    verdict,
    fires: fires.map(answer),
    ...(isCut && { more: true as const }),
    ...(reason !== null && { reason }),
    ...(movedTo !== null && { movedTo }),
    ...(movedFrom.length > 0 && { movedFrom }),
  };
}
