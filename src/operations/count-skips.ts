import { setImmediate } from 'node:timers/promises';
import { LRUCache } from 'lru-cache';
import type { Calendars } from '../core/exclusions/exclusion.ts';
import type { Instant } from '../core/instant.ts';
import { readTiming } from '../core/schedules/stored-definition.ts';
import { dependsOnIdentity, fireTimes } from '../core/time/fire-times.ts';
import { type Plan, graceMsOf, walkDue } from '../core/time/plan-due.ts';
import type { DueSchedule, Skip } from '../store/schedules/skip-to-now.ts';
import type { Skips } from '../store/schedules/skips.ts';

export interface Unplannable {
  scheduleId: string;
  error: unknown;
}

/** What to skip of each schedule of a page; and those whose fires cannot be counted. */
export async function skipsOfPage(
  page: readonly DueSchedule[],
  count: (schedule: DueSchedule) => Promise<Plan>,
  { now, signal }: { now: Instant; signal: AbortSignal },
): Promise<{ skips: Skip[]; unplannable: Unplannable[] }> {
  const skips: Skip[] = [];
  const unplannable: Unplannable[] = [];
  for (const schedule of page) {
    try {
      const skip = skipOf(schedule, await count(schedule), now);
      if (skip) skips.push(skip);
    } catch (error) {
      signal.throwIfAborted();
      unplannable.push({ scheduleId: schedule.id, error });
    }
  }
  return { skips, unplannable };
}

const SLICE_STEPS = 500;

/** Everything due counts as missed, whatever the schedule's own policy is. */
const SKIP_ALL = { catchUp: 'skip', catchUpLimit: 0, graceSeconds: -1 } as const;

/** Schedules with one timing usually have the same cursor: one walk serves all of them. */
export function createCounter(
  now: Instant,
  signal: AbortSignal,
): (schedule: DueSchedule, known: { onRequest: Skips | undefined; calendars: Calendars }) => Promise<Plan> {
  const counted = new LRUCache<string, Plan>({ max: 10_000 });
  return async (schedule, { onRequest, calendars }) => {
    const { nextOccurrenceAt } = schedule;
    if (!Number.isFinite(nextOccurrenceAt)) throw new Error('its next occurrence is no moment to count from');
    const timing = readTiming(schedule.timing);
    const isApart = onRequest !== undefined || dependsOnIdentity(timing);
    const key = `${nextOccurrenceAt} ${isApart ? schedule.uid : ''} ${schedule.timing}`;
    const known = counted.get(key);
    if (known) return known;
    const walk = walkDue(fireTimes(timing, schedule, calendars), SKIP_ALL, nextOccurrenceAt, {
      now,
      horizon: -Infinity,
      plannedThrough: null,
      ...(onRequest && { skips: onRequest }),
    });
    for (;;) {
      let steps = 0;
      const plan = walk.step(() => (steps += 1) < SLICE_STEPS);
      if (plan) {
        counted.set(key, plan);
        return plan;
      }
      await setImmediate();
      signal.throwIfAborted();
    }
  };
}

/** Null: with its jitter nothing is due yet. */
function skipOf(schedule: DueSchedule, { fires, nextOccurrenceAt, nextFireAt }: Plan, now: Instant): Skip | null {
  if (fires.length === 0) return null;
  const graceMs = graceMsOf(readTiming(schedule.timing));
  const skipped = fires.map((fire) => {
    const trigger = fire.skipped === 'request' || now - fire.dueAt <= graceMs ? 'schedule' : 'catchUp';
    return { ...fire, trigger, skipped: fire.skipped ?? 'missed' } as const;
  });
  return { schedule, fires: skipped, nextOccurrenceAt, nextFireAt };
}
