import { z } from 'zod';
import type { Cron } from '../../core/cron/cron-fields.ts';
import { isoInstant, isoOrNull } from '../../core/instant.ts';
import { parseKeepingDigits } from '../../core/json-text.ts';
import type { Expect, ResultBound } from '../../core/schedules/expect.ts';
import type { Definition, Schedule } from '../../core/schedules/schedule.ts';
import type { Exclude } from '../../core/timing/timing.ts';
import { rawJsonOrNull } from '../http/json/raw-json.ts';
import { answersOf } from '../http/routes.ts';
import { type schedule, definitionAnswer, stateAnswer } from './schemas.ts';
import { answerTarget } from '../targets/answers.ts';
import type { RecentRun } from '../../store/runs/search/runs-of-schedule.ts';

type ScheduleAnswer = z.output<typeof schedule>;

const answered = answersOf(z.object(stateAnswer));

/** `pingKey`: null where the caller does not see it, and where there is none. */
export function answerSchedule(stored: Schedule, pingKey: string | null): ScheduleAnswer {
  const payload = rawJsonOrNull(stored.definition.payload);
  return {
    id: stored.id,
    ...answerDefinition(stored.definition),
    payload,
    ...answered({ ...stored, pingKey }),
  };
}

const answeredDefinition = answersOf(z.object(definitionAnswer).omit({ payload: true }));

/**
 * The fields that a client can edit, without the payload; header values are masked. A merge patch is applied to this as
 * well.
 */
export function answerDefinition(definition: Definition) {
  const { after, retry, expect, observe } = definition;
  const { maxAttempts, minBackoffSeconds, maxBackoffSeconds } = retry;
  return answeredDefinition({
    ...definition,
    ...answerDayRules(definition),
    cron: answerCron(definition.cron),
    after: after === null ? null : { scheduleId: after.scheduleId, on: [...after.on] },
    expect: expect && answerExpect(expect),
    observe: observe && { until: isoOrNull(observe.until) },
    target: answerTarget(definition.target),
    retry: { maxAttempts, minBackoffSeconds, maxBackoffSeconds },
  });
}

function answerExpect({ startWithinSeconds, finishWithinSeconds, atLeastSeconds, result }: Expect) {
  const answered = result === null ? null : result.map(answerResultBound);
  return { startWithinSeconds, finishWithinSeconds, atLeastSeconds, result: answered };
}

function answerResultBound({ pointer, min, max, json }: ResultBound) {
  return {
    pointer,
    ...(min !== null && { min }),
    ...(max !== null && { max }),
    ...(json !== null && { equals: parseKeepingDigits(json) }),
  };
}

function answerDayRules({ exclude, onExcluded, every, pick }: Definition) {
  return {
    exclude: exclude === null ? null : answerExclude(exclude),
    onExcluded,
    every: every === null ? null : { n: every.n, unit: every.unit, from: every.from },
    pick: pick === null ? null : { of: pick.of, nth: [...pick.nth] },
  };
}

function answerExclude({ dates, calendars, weekdays = [] }: Exclude) {
  return { dates: [...dates], calendars: [...calendars], weekdays: [...weekdays] };
}

/** As it was sent: a string, or a list in its order. */
export function answerCron(cron: Cron | null): string | string[] | null {
  return cron === null || typeof cron === 'string' ? cron : [...cron];
}

/** Of a run in the list of schedules. */
export function answerRecentRun({ scheduledFor, claimedAt, ...run }: RecentRun) {
  return { ...run, scheduledFor: isoInstant(scheduledFor), claimedAt: isoOrNull(claimedAt) };
}
