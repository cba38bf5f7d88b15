import { createHash } from 'node:crypto';
import { describe, expect, it } from 'vitest';
import { cronTimes } from '../../../src/core/time/cron.ts';
import {
  DAY_OF_MONTH,
  DAY_OF_WEEK,
  HOUR,
  MINUTE,
  MONTH,
  SECOND,
} from '../../../src/core/time/cron-fields.ts';
import { parseCron } from '../../../src/core/time/cron-parse.ts';
import { at, firesAfter } from './support.ts';

const ID = 'nightly-report';
const resolved = (expression: string, id = ID): string => {
  const { minute, hour, dayOfMonth, month, dayOfWeek } = parseCron(expression, id);
  return [minute, hour, dayOfMonth, month, dayOfWeek].map((field) => field.resolved).join(' ');
};

describe('what firelock picks for H and ?', () => {
  // Written down once and never changed: a version that picked others would move everybody's schedules.
  it('is the same for ever', () => {
    expect(resolved('H H H H H')).toBe('35 8 1 12 1');
    expect(parseCron('H * * * * *', ID).second.resolved).toBe('26');
    expect(resolved('? ? * ? *')).toBe('35 8 * 12 *');
    expect(resolved('H/15 H/6 H/7 H/4 H/3')).toBe('5-59/15 2-23/6 1-28/7 4-12/4 2-6/3');
    expect(resolved('H(0-29) H(9-17) H(1-31) H(JAN-JUN) H(MON-FRI)')).toBe('5 14 13 6 5');
    expect(resolved('H(0-29)/10 * * * *')).toBe('5-29/10 * * * *');
    expect(resolved('0,H * * * *')).toBe('0,35 * * * *');
  });

  it('is SHA-256 of id/field as one number, modulo how many values there are', () => {
    for (const id of ['a', 'billing.monthly', ID, '']) {
      for (const [index, field] of [SECOND, MINUTE, HOUR, DAY_OF_MONTH, MONTH, DAY_OF_WEEK].entries()) {
        const digest = createHash('sha256').update(`${id}/${field.key}`).digest();
        const [from, to] = field.hashed;
        // Digit by digit, as on paper.
        const rest = digest.reduce((left, byte) => (left * 256 + byte) % (to - from + 1), 0);
        const fields = Array.from({ length: 6 }, (_, other) => (other === index ? 'H' : '*'));
        const parsed = parseCron(fields.join(' '), id)[field.key];
        expect(parsed.resolved).toBe(String(from + rest));
      }
    }
  });

  it('is a day that every month has', () => {
    const days = Array.from({ length: 500 }, (_, index) =>
      Number(parseCron('0 0 H * *', `s${index}`).dayOfMonth.resolved),
    );
    expect(new Set(days).size).toBe(28);
    expect(Math.max(...days)).toBe(28);
  });

  it('spreads schedules over the whole range', () => {
    const minutes = new Set(
      Array.from({ length: 1000 }, (_, index) => parseCron('H * * * *', `s${index}`).minute.resolved),
    );
    expect(minutes.size).toBe(60);
  });

  it('starts within the range, however long the step', () => {
    for (let index = 0; index < 100; index += 1) {
      const start = Number(/^\d+/.exec(parseCron('H(0-4)/30 * * * *', `s${index}`).minute.resolved)?.[0]);
      expect(start).toBeLessThanOrEqual(4);
    }
  });

  it('is each schedule’s own, while all others share', () => {
    const from = at('2026-01-01T00:00:00Z');
    expect(cronTimes('H H * * *', null, 'one').next(from)).not.toBe(
      cronTimes('H H * * *', null, 'two').next(from),
    );
    expect(cronTimes('H H * * *', null, 'one')).toBe(cronTimes('H H * * *', null, 'one'));
    expect(cronTimes('0 9 * * THU', null, 'one')).toBe(cronTimes('0 9 * * THU', null, 'two'));
    expect(firesAfter('H H * * *', null, '2026-01-01T00:00:00Z', 2, ID)).toEqual([
      '2026-01-01T08:35:00Z',
      '2026-01-02T08:35:00Z',
    ]);
  });

  it('makes a schedule of one hour one of a time of day', () => {
    expect(firesAfter('H(30-30) H(2-2) * * *', 'Europe/Berlin', '2026-03-28T12:00:00Z', 1)).toEqual([
      '2026-03-29T01:00:00Z',
    ]);
  });
});
