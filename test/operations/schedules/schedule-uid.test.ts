import { expect, test } from 'vitest';
import { newScheduleUid } from '../../../src/operations/schedules/schedule-writes.ts';

const NOW = Date.parse('2030-01-01T00:00:00.123Z');

test('the uids of schedules that are created together differ, and are in the order of their creation', () => {
  // The counter may start again once in so many.
  const uids = Array.from({ length: 3_000 }, () => newScheduleUid(NOW));
  const steps = uids.slice(1).map((uid, index) => uid > (uids[index] ?? ''));
  expect(steps.filter((isUp) => !isUp).length).toBeLessThanOrEqual(1);
  expect(new Set(uids).size).toBe(uids.length);
});

test('a uid begins with the time of its creation, and has the layout of UUIDv7', () => {
  const uid = newScheduleUid(NOW);
  expect(uid).toMatch(/^[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/);
  expect(parseInt(uid.slice(0, 8) + uid.slice(9, 13), 16)).toBe(NOW);
  expect(newScheduleUid(NOW + 1) > uid).toBe(true);
});
