import { describe, expect, it } from 'vitest';
import { type OutcomeWatch, judgeLateness, watchAfterEdit } from '../../../src/core/schedules/outcome-watch.ts';
import type { ScheduleStatus } from '../../../src/core/schedules/schedule.ts';
import { definitionOf } from '../../support/pipeline.ts';

const T = Date.UTC(2026, 10, 20, 9);
const MINUTE = 60_000;
const DAY = 86_400_000;
const WATCH: OutcomeWatch = {
  scheduleUid: 'u',
  pauseAfterFailures: null,
  failuresSince: T,
  successWithinSeconds: 3600,
  successSince: T,
  lastSuccessAt: null,
  lookAt: null,
};
const DEADLINE = T + 60 * MINUTE;

describe('a schedule that must succeed in time', () => {
  it('is checked when its time is up, or half a day later at the latest', () => {
    expect(judgeLateness(WATCH, T)).toEqual({ lookAt: DEADLINE + 1000, lateSince: null });
    const longer = { ...WATCH, successWithinSeconds: (366 * DAY) / 1000 };
    expect(judgeLateness(longer, T).lookAt).toBe(T + DAY / 2);
  });

  it('is late as of the moment at which its time was up, and a success ends that', () => {
    const late = { lateSince: DEADLINE, lookAt: DEADLINE + 5 * MINUTE + DAY / 2 };
    expect(judgeLateness(WATCH, DEADLINE + 5 * MINUTE)).toEqual(late);
    const done = { ...WATCH, lastSuccessAt: DEADLINE + MINUTE };
    expect(judgeLateness(done, DEADLINE + 2 * MINUTE)).toMatchObject({ lateSince: null });
    const again = DEADLINE + 61 * MINUTE;
    expect(judgeLateness(done, again + 2000)).toMatchObject({ lateSince: again });
  });

  it('is not late while a success that came in time may still be written, nor while it rests', () => {
    expect(judgeLateness(WATCH, DEADLINE + 999).lateSince).toBeNull();
    expect(judgeLateness(WATCH, DEADLINE + DAY, true)).toEqual({
      lateSince: null,
      lookAt: DEADLINE + DAY + DAY / 2,
    });
  });
});

describe('after an edit', () => {
  const stands = (status: ScheduleStatus, within: number | null, failures: number | null = null) => ({
    uid: 'u',
    status,
    definition: definitionOf({
      url: '',
      enabled: status !== 'paused',
      successWithinSeconds: within,
      pauseAfterFailures: failures,
    }),
  });
  const at = T + 10 * MINUTE;

  it('a schedule that has neither field has no state', () => {
    expect(watchAfterEdit(WATCH, { before: stands('active', 60), after: stands('active', null), at })).toBeNull();
  });

  it('time counts from the creation, from setting the field, from a resume, and otherwise goes on', () => {
    const since = (before: ReturnType<typeof stands> | null, known: OutcomeWatch | null = WATCH) =>
      watchAfterEdit(known, { before, after: stands('active', 3600), at })?.successSince;
    expect(since(null, null)).toBe(at);
    expect(since(stands('active', null, 3), { ...WATCH, successWithinSeconds: null })).toBe(at);
    expect(since(stands('paused', 3600))).toBe(at);
    expect(since(stands('ended', 3600))).toBe(at);
    expect(since(stands('active', 60))).toBe(T);
    expect(since(stands('error', 3600))).toBe(T);
  });

  it('a paused or ended schedule is not checked', () => {
    for (const status of ['paused', 'ended'] as const) {
      const late = { ...WATCH, lookAt: T };
      const kept = watchAfterEdit(late, { before: stands('active', 60), after: stands(status, 60), at });
      expect(kept).toMatchObject({ lookAt: null });
    }
  });

  it('of the time allowed, a schedule that is late by then is checked at once', () => {
    const edit = (within: number) =>
      watchAfterEdit(WATCH, { before: stands('active', 60), after: stands('active', within), at });
    expect(edit(120)).toMatchObject({ lookAt: at });
    expect(edit(3600)).toMatchObject({ lookAt: DEADLINE + 1000 });
  });

  it('failures count from enabling the schedule or setting the number, and otherwise go on', () => {
    const since = (before: ReturnType<typeof stands> | null, known: number | null) =>
      watchAfterEdit({ ...WATCH, pauseAfterFailures: known }, { before, after: stands('active', null, 5), at })
        ?.failuresSince;
    expect(since(stands('active', null, 3), 3)).toBe(T);
    expect(since(stands('paused', null, 3), 3)).toBe(at);
    expect(since(stands('active', 60), null)).toBe(at);
  });
});
