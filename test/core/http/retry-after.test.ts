import { expect, test } from 'vitest';
import { parseRetryAfter } from '../../../src/core/http/answer-head.ts';

const now = Date.UTC(1994, 10, 6, 8, 49, 0);

test.each([
  ['120', 120],
  [' 120 ', 120],
  ['0', 0],
  ['-5', 0],
  ['Sun, 06 Nov 1994 08:49:37 GMT', 37],
  ['Sunday, 06-Nov-94 08:49:37 GMT', 37],
  ['Sun Nov  6 08:49:37 1994', 37],
  ['Sun, 06 Nov 1994 08:48:00 GMT', 0],
  ['9'.repeat(400), Number.MAX_SAFE_INTEGER],
])('reads %j as %d seconds', (value, seconds) => {
  expect(parseRetryAfter(value, now)).toBe(seconds);
});

test.each([
  '',
  'soon',
  '1.5',
  '1e3',
  '0x10',
  '12 s',
  '1994-11-06',
  'Sun, 99 Nov 1994 08:49:37 GMT',
  'Infinity',
])('takes %j for garbage', (value) => {
  expect(parseRetryAfter(value, now)).toBeNull();
});

test('rounds a part of a second up, so that no attempt comes too early', () => {
  expect(parseRetryAfter('Sun, 06 Nov 1994 08:49:01 GMT', now + 500)).toBe(1);
});
