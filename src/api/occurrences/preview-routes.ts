import { type Instant, LATEST, isoInstant } from '../../core/instant.ts';
import { DEFAULT_TIMING, type Timing } from '../../core/schedules/schedule.ts';
import { type Cron, expressionsOf } from '../../core/cron/cron-expressions.ts';
import { parseCron } from '../../core/cron/cron-parse.ts';
import { describeCron, describeInterval } from '../../core/describe/describe.ts';
import { type FireTimes, type Identity, fireTimes } from '../../core/time/fire-times.ts';
import { localTime } from '../../core/zones/zone.ts';
import { yieldToEventLoop } from '../../runtime/loop/slices.ts';
import { databaseNow } from '../../postgres/sql/database-now.ts';
import { findSchedule } from '../../store/schedules/find-schedules.ts';
import { type Skips, skipsOf } from '../../store/schedules/skips.ts';
import type { Api, ApiDeps } from '../deps.ts';
import { lookAhead, neverFires, outlookOf } from '../schedules/fire-faults.ts';
import { asUnplannable, hasNoTimesOfItsOwn } from './fire-time-problems.ts';
import { TAGS } from '../http/plugins/openapi.ts';
import { invalid, noSuchSchedule } from '../http/problem.ts';
import { BODY_PROBLEMS, json, problems } from '../http/response-schemas.ts';
import { scheduleIdParams } from '../http/common-schemas.ts';
import { ASSUMED_ID, previewInput, previewedTimes, upcomingQuery, upcomingTimes } from './preview-schemas.ts';

const tags = [TAGS.times];

export function addPreviewRoutes(api: Api, deps: ApiDeps): void {
  addUpcomingRoute(api, deps);
  addPreviewRoute(api, deps);
}

function addUpcomingRoute(api: Api, { database }: ApiDeps): void {
  api.get(
    '/schedules/:id/upcoming',
    {
      config: { role: 'viewer' },
      schema: {
        operationId: 'listUpcomingFires',
        summary: 'When a schedule fires next, paused or not: strictly after `from`, or what is still to come',
        tags,
        params: scheduleIdParams,
        querystring: upcomingQuery,
        response: { 200: json('Fire times', upcomingTimes), ...problems(400, 404, 409) },
      },
    },
    async ({ params: { id }, query: { count, from } }) => {
      const { found, now, skips } = await database.run(async (db) => {
        const schedule = await findSchedule(db, id);
        const skipped = schedule?.hasSkips ? await skipsOf(db, [schedule.uid]) : null;
        return { found: schedule, now: await databaseNow(db), skips: skipped?.get(schedule?.uid ?? '') };
      });
      if (!found) throw noSuchSchedule(id);
      const { definition, createdAt, nextOccurrenceAt: delayed } = found;
      if (definition.after !== null) throw hasNoTimesOfItsOwn(id);
      try {
        const times = fireTimes(definition, { id, createdAt });
        const next = times.next(from ?? now);
        // With jitter, what is still to come may have had its own moment.
        const isDelayed = from === undefined && delayed !== null && times.dueAt(delayed) > now;
        const first = isDelayed && (next === null || delayed < next) ? delayed : next;
        const items = await firesFrom(times, first, count, (at) => ({
          ...answerDueFire(times, definition, at),
          ...answerSkip(skips, at),
        }));
        return { items };
      } catch (error) {
        throw asUnplannable(id, error);
      }
    },
  );
}

function addPreviewRoute(api: Api, { database }: ApiDeps): void {
  api.post(
    '/preview',
    {
      config: { role: 'viewer' },
      schema: {
        operationId: 'previewFires',
        summary: 'When an expression or an interval would fire, strictly after `from`',
        tags,
        body: previewInput,
        response: { 200: json('Fire times', previewedTimes), ...problems(...BODY_PROBLEMS, 422) },
      },
    },
    async ({ body: { cron, everySeconds, timezone, from, count, id } }) => {
      const after = from ?? (await database.run(databaseNow));
      const timing = { ...DEFAULT_TIMING, cron, everySeconds, timezone, at: null, after: null };
      const identity = { id: id ?? '', createdAt: after };
      await lookAhead(timing, identity.id);
      const times = fireTimes(timing, identity);
      const items = await firesFrom(times, times.next(after), count, (at) => answerFire(times, timing, at));
      const fires = items.length > 0 && typeof cron === 'string';
      const barren = fires ? [] : outlookOf(timing, identity.id, after).barren;
      if (barren.length > 0) throw invalid(barren.map(neverFires), 422);
      const isOfNobody = (id ?? null) === null && isHashed(cron);
      return {
        description: describe(timing, identity),
        items,
        ...(isOfNobody ? { assumes: ASSUMED_ID } : {}),
      };
    },
  );
}

const SLICE = 10;

/** In slices, so that a thousand fire times keep no other request waiting. */
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

function answerSkip(skips: Skips | undefined, at: Instant) {
  if (!skips?.has(at)) return {};
  const reason = skips.get(at) ?? null;
  return { skipped: true, ...(reason === null ? {} : { skipReason: reason }) };
}

function answerDueFire(times: FireTimes, timing: Timing, at: Instant) {
  const fire = answerFire(times, timing, at);
  return timing.jitterSeconds === 0 ? fire : { ...fire, dueAt: isoInstant(times.dueAt(at)) };
}

function isHashed(cron: Cron | null): boolean {
  return cron !== null && expressionsOf(cron).some((expression) => parseCron(expression, '').hashed);
}

function describe({ cron, everySeconds }: Timing, { id }: Identity): string {
  if (cron !== null) return describeCron(cron, id);
  return everySeconds === null ? '' : describeInterval(everySeconds);
}
