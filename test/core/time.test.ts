import { describe, expect, it } from 'vitest';
import { backoffMs } from '../../src/core/time/backoff.ts';
import { CronError, cronTimes } from '../../src/core/time/cron.ts';
import { isZone, localTime } from '../../src/core/time/zone.ts';

const at = (text: string): number => Date.parse(text);

describe('a cron expression', () => {
  it.each([
    ['*/15 * * * *', null, '2026-11-20T12:01:00Z', '2026-11-20T12:15:00Z'],
    ['30 */2 * * * *', null, '2026-11-20T12:00:30Z', '2026-11-20T12:02:30Z'],
    ['0 9 * * MON-FRI', 'Europe/Paris', '2026-11-20T09:00:00Z', '2026-11-23T08:00:00Z'],
    ['0 0 L * *', 'UTC', '2026-02-01T00:00:00Z', '2026-02-28T00:00:00Z'],
    ['@daily', 'america/new_york', '2026-11-20T12:00:00Z', '2026-11-21T05:00:00Z'],
    // The calendar must not lose the first of March where the days selected also match the 30th of February.
    ['0 0 */5 * *', null, '2026-02-26T00:00:00Z', '2026-03-01T00:00:00Z'],
    ['0 0 29 2 *', null, '2026-01-01T00:00:00Z', '2028-02-29T00:00:00Z'],
  ])('%s in %s is next due after %s at %s', (expression, zone, after, next) => {
    expect(cronTimes(expression, zone).next(at(after))).toBe(at(next));
  });

  it('that can never match answers null', () => {
    expect(cronTimes('0 0 31 2 *', null).next(at('2026-01-01T00:00:00Z'))).toBeNull();
  });

  it.each([
    ['', '5 fields'],
    ['* * * *', '5 fields'],
    ['* * * * * * *', '5 fields'],
    ['60 * * * *', '60'],
    ['1* * * * * *', '1*'],
    ['0 10:00 * * *', 'field 2'],
    ['? * * * *', 'field 1'],
    ['H * * * *', 'H and ?'],
    ['5/15 * * * *', '5/15'],
    ['@reboot', 'nickname'],
    ['TZ=UTC * * * * *', 'timezone'],
    [`${'0,'.repeat(200)}0 * * * *`, '256'],
  ])('%j is refused, and the reason names %j', (expression, hint) => {
    expect(() => cronTimes(expression, null)).toThrow(CronError);
    expect(() => cronTimes(expression, null)).toThrow(hint);
  });
});

describe('a zone', () => {
  it.each(['UTC', 'Europe/Paris', 'europe/paris', 'Etc/GMT+5', 'EST5EDT'])('%s is one', (name) => {
    expect(isZone(name)).toBe(true);
  });
  it.each(['', 'local', 'system', '+02:00', 'UTC+2', 'Mars/Phobos', 'Europe/Paris ', '../etc'])(
    '%j is none',
    (name) => {
      expect(isZone(name)).toBe(false);
    },
  );
  it('tells local time with its offset', () => {
    expect(localTime(at('2026-03-29T01:00:00Z'), 'Europe/Paris')).toBe('2026-03-29T03:00:00.000+02:00');
    expect(localTime(at('2026-03-29T01:00:00Z'), null)).toBe('2026-03-29T01:00:00.000Z');
  });
});

describe('the wait before another attempt', () => {
  const policy = { maxAttempts: 10, minBackoffSeconds: 10, maxBackoffSeconds: 60 };
  it('doubles with each failure up to the cap, give or take a tenth', () => {
    expect([1, 2, 3, 4, 5].map((failures) => backoffMs(policy, failures, null, 0.5))).toEqual([
      10_000, 20_000, 40_000, 60_000, 60_000,
    ]);
    expect(backoffMs(policy, 1, null, 0)).toBe(9_000);
    expect(backoffMs(policy, 1, null, 0.999999)).toBe(11_000);
  });
  it('is lengthened by the target’s wish up to the cap, never shortened', () => {
    expect(backoffMs(policy, 1, 30, 0.5)).toBe(30_000);
    expect(backoffMs(policy, 1, 3600, 0.5)).toBe(60_000);
    expect(backoffMs(policy, 3, 1, 0.5)).toBe(40_000);
  });
});
