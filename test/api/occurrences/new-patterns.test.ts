// @module-tag attack
import { Cron } from 'croner';
import { expect, test, vi } from 'vitest';
import { DEFAULT_TIMING } from '../../../src/core/timing/timing.ts';
import { fireTimes } from '../../../src/core/time/fire-times.ts';
import { lookAhead, outlookOf } from '../../../src/api/schedules/fire-faults.ts';

/** The fifth of a weekday near a day: each a pattern of its own, and some match seldom. */
const NEW = Array.from(
  { length: 16 },
  (_, index) => `0 ${index} ${index + 10}W * +${(index % 5) + 1}#${2 + (index % 3)}`,
);

test('the days of sixteen new expressions are computed a month at a time, and none afterwards', async () => {
  const matches = vi.spyOn(Cron.prototype, 'match');
  let before = 0;
  let most = 0;
  const timing = { ...DEFAULT_TIMING, cron: NEW, at: null, after: null, everySeconds: null };
  await lookAhead(timing, '', () => {
    most = Math.max(most, matches.mock.calls.length - before);
    before = matches.mock.calls.length;
    return undefined;
  });
  expect(before).toBeGreaterThan(1000);
  // For a day of both fields, the weekdays come first.
  expect(most).toBeLessThanOrEqual(2 * 31);

  matches.mockClear();
  const now = Date.UTC(2030, 0, 1);
  outlookOf(timing, '', now);
  const times = fireTimes(timing, { id: '', createdAt: now });
  let at = times.next(now);
  for (let count = 0; count < 100 && at !== null; count += 1) at = times.next(at);
  await lookAhead(timing, '');
  expect(matches).not.toHaveBeenCalled();
});
