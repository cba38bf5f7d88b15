import type { z } from 'zod';
import type { Cron } from '../../core/cron/cron-expressions.ts';
import { isoInstant, isoOrNull } from '../../core/instant.ts';
import { parseKeepingDigits } from '../../core/json-text.ts';
import type { Expect, ResultBound } from '../../core/schedules/expect.ts';
import type { Definition, Schedule } from '../../core/schedules/schedule.ts';
import type { Exclude } from '../../core/timing/day-rules.ts';
import { rawJsonOrNull } from '../http/json/raw-json.ts';
import type { schedule } from './schemas.ts';
import { answerTarget } from '../targets/answers.ts';

type ScheduleAnswer = z.output<typeof schedule>;

/** `pingKey`: null where the caller does not see it, and where there is none. */
export function answerSchedule(stored: Schedule, pingKey: string | null): ScheduleAnswer {
  const { definition } = stored;
  return {
    id: stored.id,
    ...answerDefinition(definition),
    payload: rawJsonOrNull(definition.payload),
    status: stored.status,
    late: stored.late,
    error: stored.error,
    nextFireAt: isoOrNull(stored.nextFireAt),
    lastFireAt: isoOrNull(stored.lastFireAt),
    pingKey,
    lockedBy: stored.lockedBy,
    lockedAt: isoOrNull(stored.lockedAt),
    version: stored.version,
    createdAt: isoInstant(stored.createdAt),
    updatedAt: isoInstant(stored.updatedAt),
  };
}

/**
 * The fields that a client can edit, without the payload; header values are masked. A merge patch is applied to this as
 * well.
 */
export function answerDefinition(definition: Definition) {
  const { description, cron, everySeconds, at, after, timezone, startAt, endAt } = definition;
  const { catchUp, catchUpLimit, graceSeconds, overlap, jitterSeconds } = definition;
  const { pauseAfterFailures, successWithinSeconds, expiresAfterSeconds } = definition;
  const { enabled, pauseReason, pauseUntil, target, retry, timeoutSeconds } = definition;
  const { completion, completionTimeoutSeconds, delivery, priority, limit, labels } = definition;
  const { maxAttempts, minBackoffSeconds, maxBackoffSeconds } = retry;
  return {
    description,
    cron: answerCron(cron),
    everySeconds,
    at: isoOrNull(at),
    after: after === null ? null : { scheduleId: after.scheduleId, on: [...after.on] },
    timezone,
    ...answerDayRules(definition),
    enabled,
    pauseReason,
    pauseUntil: isoOrNull(pauseUntil),
    pauseAfterFailures,
    successWithinSeconds,
    ...answerJudged(definition),
    startAt: isoOrNull(startAt),
    endAt: isoOrNull(endAt),
    target: answerTarget(target),
    catchUp,
    catchUpLimit,
    graceSeconds,
    overlap,
    jitterSeconds,
    retry: { maxAttempts, minBackoffSeconds, maxBackoffSeconds },
    timeoutSeconds,
    completion,
    completionTimeoutSeconds,
    delivery,
    expiresAfterSeconds,
    priority,
    limit,
    labels,
  };
}

function answerJudged({ expect, observe }: Definition) {
  return {
    expect: expect && answerExpect(expect),
    observe: observe && { until: isoOrNull(observe.until) },
  };
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
