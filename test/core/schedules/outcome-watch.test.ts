import { describe, expect, it } from 'vitest';
import {
  type OutcomeWatch,
  judgeLateness,
  watchAfterEdit,
} from '../../../src/core/schedules/outcome-watch.ts';
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
  lateSince: null,
};
const DEADLINE = T + 60 * MINUTE;

describe('a schedule that must succeed in time', () => {
  it('is checked when its time is up, or half a day later at the latest', () => {
    expect(judgeLateness(WATCH, T)).toEqual({ lookAt: DEADLINE + 1000, lateSince: null, begins: false });
    const longer = { ...WATCH, successWithinSeconds: (366 * DAY) / 1000 };
    expect(judgeLateness(longer, T).lookAt).toBe(T + DAY / 2);
  });

  it('is late as of the moment at which its time was up, and a success ends that', () => {
    const late = judgeLateness(WATCH, DEADLINE + 5 * MINUTE);
    expect(late).toMatchObject({ lateSince: DEADLINE, begins: true });
    const seen = { ...WATCH, lateSince: DEADLINE };
    expect(judgeLateness(seen, DEADLINE + DAY)).toMatchObject({ lateSince: DEADLINE, begins: false });
    const done = { ...seen, lastSuccessAt: DEADLINE + MINUTE };
    expect(judgeLateness(done, DEADLINE + 2 * MINUTE)).toMatchObject({ lateSince: null, begins: false });
  });

  it('is looked at once more for a success that was being written, then seldom: successes have it looked at', () => {
    const found = judgeLateness(WATCH, DEADLINE + DAY);
    expect(found).toMatchObject({ begins: true, lookAt: DEADLINE + DAY + 20_000 });
    const again = judgeLateness({ ...WATCH, lateSince: DEADLINE }, DEADLINE + DAY);
    expect(again).toMatchObject({ begins: false, lookAt: DEADLINE + DAY + 10 * MINUTE });
  });

  it('is late anew if a success in between was found only after its time was up again', () => {
    const seen = { ...WATCH, lateSince: DEADLINE, lastSuccessAt: DEADLINE + MINUTE };
    const again = DEADLINE + 61 * MINUTE;
    expect(judgeLateness(seen, again + 2000)).toMatchObject({ lateSince: again, begins: true });
  });

  it('is not late while a success that came in time may still be written, nor while it rests', () => {
    expect(judgeLateness(WATCH, DEADLINE + 999).lateSince).toBeNull();
    expect(judgeLateness({ ...WATCH, lateSince: DEADLINE }, DEADLINE + DAY, true).lateSince).toBeNull();
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
    expect(
      watchAfterEdit(WATCH, { before: stands('active', 60), after: stands('active', null), at }),
    ).toBeNull();
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

  it('a paused or ended schedule is neither late nor checked', () => {
    for (const status of ['paused', 'ended'] as const) {
      const late = { ...WATCH, lateSince: T, lookAt: T };
      const kept = watchAfterEdit(late, { before: stands('active', 60), after: stands(status, 60), at });
      expect(kept).toMatchObject({ lateSince: null, lookAt: null });
    }
  });

  it('of the time allowed, a late schedule stays so in the same episode, or is no longer late', () => {
    const late = { ...WATCH, successWithinSeconds: 60, lateSince: T + MINUTE };
    const edit = (within: number) =>
      watchAfterEdit(late, { before: stands('active', 60), after: stands('active', within), at });
    const still = edit(120);
    expect(still).toMatchObject({ lateSince: T + 2 * MINUTE, lookAt: at });
    expect(still && judgeLateness(still, at)).toMatchObject({ begins: false });
    expect(edit(3600)).toMatchObject({ lateSince: null, lookAt: DEADLINE + 1000 });
  });

  it('failures count from enabling the schedule or setting the number, and otherwise go on', () => {
    const since = (before: ReturnType<typeof stands> | null, known: number | null) =>
      watchAfterEdit(
        { ...WATCH, pauseAfterFailures: known },
        { before, after: stands('active', null, 5), at },
      )?.failuresSince;
    expect(since(stands('active', null, 3), 3)).toBe(T);
    expect(since(stands('paused', null, 3), 3)).toBe(at);
    expect(since(stands('active', 60), null)).toBe(at);
  });
});
