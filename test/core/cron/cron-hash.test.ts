import { createHash } from 'node:crypto';
import { describe, expect, it } from 'vitest';
import { cronTimes } from '../../../src/core/cron/cron.ts';
import { parseCron, valuesOf } from '../../../src/core/cron/cron-parse.ts';
import { DAY_OF_MONTH, DAY_OF_WEEK, HOUR, MINUTE, MONTH, SECOND } from '../../../src/core/cron/cron-fields.ts';
import { at, firesAfter } from '../time/support.ts';

const ID = 'nightly-report';
const FIELDS = [SECOND, MINUTE, HOUR, DAY_OF_MONTH, MONTH, DAY_OF_WEEK] as const;

/** The values of a field after reading `text` in it and `*` in all others. In six fields `?` picks no hour and no month. */
function picked(field: (typeof FIELDS)[number], text: string, id = ID): number[] {
  const fields = FIELDS.slice(field === SECOND ? 0 : 1).map((other) => (other === field ? text : '*'));
  return valuesOf(field, parseCron(fields.join(' '), id)[field.key]);
}

describe('the value that firelock chooses for H and ?', () => {
  // Written down once and never changed: a version that chose others would move the schedules of all users.
  it.each([
    [SECOND, 'H', [26]],
    [SECOND, '?', [26]],
    [MINUTE, 'H', [35]],
    [MINUTE, 'h', [35]],
    [MINUTE, 'H/15', [5, 20, 35, 50]],
    [MINUTE, 'H(0-29)', [5]],
    [MINUTE, 'H(0-29)/10', [5, 15, 25]],
    [MINUTE, '0,H', [0, 35]],
    [HOUR, '?', [8]],
    [HOUR, 'H/6', [2, 8, 14, 20]],
    [HOUR, 'H(9-17)', [14]],
    [DAY_OF_MONTH, 'H', [1]],
    [DAY_OF_MONTH, 'H/7', [1, 8, 15, 22]],
    [DAY_OF_MONTH, 'H(1-31)', [13]],
    [MONTH, '?', [12]],
    [MONTH, 'H/4', [4, 8, 12]],
    [MONTH, 'H(JAN-JUN)', [6]],
    [DAY_OF_WEEK, 'H', [1]],
    [DAY_OF_WEEK, 'H/3', [2, 5]],
    [DAY_OF_WEEK, 'H(MON-FRI)', [5]],
  ])('is the same for ever: $key %s', (field, text, values) => {
    expect(picked(field, text)).toEqual(values);
  });

  it('is SHA-256 of id/field as one number, modulo the number of values', () => {
    for (const id of ['a', 'billing.monthly', ID, '']) {
      for (const field of FIELDS) {
        const digest = createHash('sha256').update(`${id}/${field.key}`).digest();
        const [from, to] = field.hashed;
        // Digit by digit, as on paper.
        const rest = digest.reduce((left, byte) => (left * 256 + byte) % (to - from + 1), 0);
        expect(picked(field, 'H', id)).toEqual([from + rest]);
      }
    }
  });

  it('is a day that every month has', () => {
    const days = Array.from({ length: 500 }, (_, index) => picked(DAY_OF_MONTH, 'H', `s${index}`)[0] ?? NaN);
    expect(new Set(days).size).toBe(28);
    expect(Math.max(...days)).toBe(28);
  });

  it('spreads schedules over the whole range', () => {
    const minutes = Array.from({ length: 1000 }, (_, index) => picked(MINUTE, 'H', `s${index}`)[0]);
    expect(new Set(minutes).size).toBe(60);
  });

  it('starts within the range, however long the step', () => {
    for (let index = 0; index < 100; index += 1) {
      const values = picked(MINUTE, 'H(0-4)/30', `s${index}`);
      expect(values).toHaveLength(1);
      expect(values[0]).toBeLessThanOrEqual(4);
    }
  });

  it('belongs to one schedule, while all share the other expressions', () => {
    const from = at('2026-01-01T00:00:00Z');
    expect(cronTimes('H H * * *', null, 'one').next(from)).not.toBe(cronTimes('H H * * *', null, 'two').next(from));
    expect(cronTimes('H H * * *', null, 'one')).toBe(cronTimes('H H * * *', null, 'one'));
    expect(cronTimes('0 9 * * THU', null, 'one')).toBe(cronTimes('0 9 * * THU', null, 'two'));
    expect(firesAfter('H H * * *', null, '2026-01-01T00:00:00Z', 2, ID)).toEqual([
      '2026-01-01T08:35:00Z',
      '2026-01-02T08:35:00Z',
    ]);
  });

  it('that leaves one hour makes an ordinary time of day', () => {
    expect(firesAfter('H(30-30) H(2-2) * * *', 'Europe/Berlin', '2026-03-28T12:00:00Z', 1)).toEqual([
      '2026-03-29T01:00:00Z',
    ]);
  });
});
