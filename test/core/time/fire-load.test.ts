import { describe, expect, test } from 'vitest';
import type { Instant } from '../../../src/core/instant.ts';
import type { Timing, Identity } from '../../../src/core/timing/timing.ts';
import { fireTimes } from '../../../src/core/time/fire-times.ts';
import { type LoadPeriod, LoadTooLarge, createLoadCount } from '../../../src/core/time/fire-load.ts';
import { timingOf } from './support.ts';

const FROM = Date.UTC(2026, 10, 20, 9);
const MINUTE = 60_000;
const HOUR = 60 * MINUTE;
const PERIOD: LoadPeriod = { from: FROM, to: FROM + 6 * HOUR, bucketMs: MINUTE };

interface Given {
  timing: Timing;
  identity: Identity;
}

function given(timing: Partial<Timing>, id = 'job', createdAt: Instant = FROM - HOUR): Given {
  return { timing: timingOf(timing), identity: { id, createdAt } };
}

function counted(schedules: readonly Given[], period = PERIOD, maxSteps?: number) {
  const count = createLoadCount(period, { ...(maxSteps !== undefined && { maxSteps }) });
  for (const { timing, identity } of schedules) Array.from(count.add(timing, identity));
  Array.from(count.finish());
  return { buckets: count.buckets(), schedules: count.schedules() };
}

/** One fire after the other, from long before. */
function walked(schedules: readonly Given[], { from, to, bucketMs }: LoadPeriod) {
  const buckets = new Map<Instant, number>();
  for (const { timing, identity } of schedules) {
    const times = fireTimes(timing, identity);
    for (let at = times.next(from - 48 * HOUR); at !== null && at < to; at = times.next(at)) {
      const dueAt = times.dueAt(at);
      const bucket = dueAt - (dueAt % bucketMs);
      if (dueAt >= from && dueAt < to) buckets.set(bucket, (buckets.get(bucket) ?? 0) + 1);
    }
  }
  return [...buckets].sort(([a], [b]) => a - b).map(([at, fires]) => ({ at, fires }));
}

const KINDS: Record<string, Given[]> = {
  'expressions that many have': Array.from({ length: 50 }, (_, n) => given({ cron: '*/5 * * * *' }, `job-${n}`)),
  'several expressions, some moments of which coincide': [
    given({ cron: ['0 * * * *', '*/20 * * * *', '7 10 * * *'] }),
    given({ cron: ['0 * * * *', '*/20 * * * *', '7 10 * * *'] }, 'other'),
    given({ cron: ['H * * * *', '*/20 * * * *'], jitterSeconds: 700 }, 'hashed'),
  ],
  'expressions in zones': [given({ cron: '30 2 * * *', timezone: 'Asia/Tokyo' }), given({ cron: '0 * * * *' })],
  'expressions picked by the id': Array.from({ length: 40 }, (_, n) => given({ cron: 'H * * * *' }, `job-${n}`)),
  'jitter within a bucket and beyond it': [
    given({ cron: '* * * * *', jitterSeconds: 30 }),
    given({ cron: '0 * * * *', jitterSeconds: 3600 }),
    given({ cron: '0 0 * * *', jitterSeconds: 86_400 }),
    given({ cron: '0 0 * * *', jitterSeconds: 86_400 }, 'other'),
    given({ everySeconds: 5, jitterSeconds: 86_400 }),
  ],
  'intervals shorter and longer than a bucket': [
    given({ everySeconds: 1 }),
    given({ everySeconds: 7 }, 'job', FROM - 1234),
    given({ everySeconds: 60 }, 'job', FROM - 1),
    given({ everySeconds: 61 }),
    given({ everySeconds: 5000 }),
  ],
  'intervals that begin and end within it': [
    given({ everySeconds: 3, startAt: FROM + HOUR + 500, endAt: FROM + 2 * HOUR + 1 }),
    given({ everySeconds: 3, endAt: FROM }),
    given({ everySeconds: 3, startAt: FROM + 24 * HOUR }),
    given({ cron: '* * * * *', startAt: FROM + HOUR, endAt: FROM + HOUR + MINUTE }),
  ],
  'single instants': [
    given({ at: FROM }),
    given({ at: FROM - 1 }),
    given({ at: FROM + 6 * HOUR }),
    given({ at: FROM + 1 }),
  ],
};

describe('the load of a period', () => {
  test.each(Object.entries(KINDS))('of %s equals that of a walk over every fire', (_kind, schedules) => {
    for (const bucketMs of [1000, MINUTE, 7000, HOUR, 24 * HOUR]) {
      const period = { from: FROM + 1, to: FROM + 6 * HOUR - 250, bucketMs };
      for (const one of [PERIOD, period]) {
        expect(counted(schedules, one)).toEqual({
          buckets: walked(schedules, one),
          schedules: schedules.length,
        });
      }
    }
  });

  test('of all of them together is their sum', () => {
    const all = Object.values(KINDS).flat();
    expect(counted(all).buckets).toEqual(walked(all, PERIOD));
  });

  test('leaves out schedules that cannot be planned', () => {
    const schedules = [
      given({ cron: 'soon' }),
      given({ cron: '0 * * * *', timezone: 'Mars/Olympus' }),
      given({ at: FROM }),
    ];
    expect(counted(schedules)).toEqual({ buckets: [{ at: FROM, fires: 1 }], schedules: 1 });
  });

  test('counts a shared timing once, and intervals by arithmetic', () => {
    const alike = Array.from({ length: 10_000 }, (_, n) => given({ cron: '* * * * *' }, `job-${n}`));
    expect(counted(alike, PERIOD, 11_000).buckets).toHaveLength(360);
    const seconds = Array.from({ length: 100 }, (_, n) => given({ everySeconds: 1 }, `job-${n}`));
    const month = { from: FROM, to: FROM + 31 * 24 * HOUR, bucketMs: 24 * HOUR };
    expect(counted(seconds, month, 10_000).buckets[1]?.fires).toBe(8_640_000);
  });

  test('tells which schedules fire most, without those that do not, and what was left out taken away', () => {
    const count = createLoadCount(PERIOD, { top: 4 });
    const add = ({ timing, identity }: Given) => Array.from(count.add(timing, identity));
    const skipped = given({ cron: '0 * * * *' }, 'b-skipped');
    Array.from(count.leaveOut(skipped.timing, skipped.identity, [FROM, FROM + HOUR, FROM - HOUR, FROM + 1]));
    add(skipped);
    for (const id of ['z', 'y', 'x']) add(given({ cron: '0 * * * *' }, id));
    add(given({ everySeconds: 1 }, 'often'));
    add(given({ cron: '0 * * * *', jitterSeconds: 1 }, 'jittered'));
    add(given({ at: FROM - 1 }, 'over'));
    Array.from(count.finish());
    expect(count.firing()).toEqual([
      { id: 'often', fires: 21_600 },
      { id: 'jittered', fires: 6 },
      { id: 'x', fires: 6 },
      { id: 'y', fires: 6 },
    ]);
    expect(count.buckets()[0]?.fires).toBe(60 + 4);

    const few = createLoadCount(PERIOD, { top: 1000 });
    Array.from(few.leaveOut(skipped.timing, skipped.identity, [FROM, FROM + HOUR]));
    Array.from(few.add(skipped.timing, skipped.identity));
    for (let n = 0; n < 3000; n += 1)
      Array.from(few.add(given({ everySeconds: 3600 }, `job-${n}`).timing, { id: `job-${n}`, createdAt: FROM }));
    Array.from(few.finish());
    expect(few.firing()).toHaveLength(1000);
    expect(few.firing()[999]).toEqual({ id: 'job-1898', fires: 5 });
    expect(createLoadCount(PERIOD).firing()).toEqual([]);
  });

  test('is refused if it takes too many steps', () => {
    const jittered = Array.from({ length: 100 }, (_, n) => given({ cron: '* * * * *', jitterSeconds: 1 }, `job-${n}`));
    expect(() => counted(jittered, PERIOD, 10_000)).toThrow(LoadTooLarge);
  });

  test('is counted in short steps', () => {
    const count = createLoadCount({ ...PERIOD, to: FROM + 24 * HOUR });
    const { timing, identity } = given({ cron: '* * * * * *' });
    Array.from(count.add(timing, identity));
    expect(Array.from(count.finish()).length).toBeGreaterThan(86_400 / 500);
    const several = createLoadCount({ ...PERIOD, to: FROM + HOUR });
    const cron = Array.from({ length: 16 }, (_, n) => `* * 0-${n},${n + 1}-23 * * *`);
    Array.from(several.add(given({ cron }).timing, identity));
    expect(Array.from(several.finish()).length).toBeGreaterThan((3600 * 16) / 500);
  });
});
