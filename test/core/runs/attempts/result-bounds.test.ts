import { describe, expect, test } from 'vitest';
import { answerFault, resultFault } from '../../../../src/core/runs/attempts/outcome-rules.ts';
import type { ResultBound } from '../../../../src/core/schedules/expect.ts';

const bound = (pointer: string, more: Partial<ResultBound>): ResultBound => ({
  ...{ pointer, min: null, max: null, json: null },
  ...more,
});
const ROWS = bound('/rows', { min: 1, max: 100 });

describe('a result', () => {
  test.each([
    ['{"rows":1}', null],
    ['{"rows":100.0}', null],
    ['{"rows":1e2}', null],
    ['{"rows":0}', 'its result at "/rows" is less than 1'],
    ['{"rows":-3}', 'its result at "/rows" is less than 1'],
    ['{"rows":0.99999999999999999999}', 'its result at "/rows" is less than 1'],
    ['{"rows":100.00000000000000000001}', 'its result at "/rows" is more than 100'],
    ['{"rows":"5"}', 'its result at "/rows" is no number'],
    ['{"rows":null}', 'its result at "/rows" is no number'],
    ['{"rows":[5]}', 'its result at "/rows" is no number'],
    ['{"row":5}', 'its result has nothing at "/rows"'],
    ['[]', 'its result has nothing at "/rows"'],
    ['null', 'its result has nothing at "/rows"'],
    ['{"rows":5', 'its result is no JSON'],
    ['', 'its result is no JSON'],
    [null, 'there was no result'],
  ])('%s: %s', (result, fault) => {
    expect(resultFault([ROWS], result)).toBe(fault);
  });

  test.each([
    ['9007199254740993', 9007199254740992, 1],
    ['0.1', 0.1, 0],
    ['1e-7', 0.0000001, 0],
    ['1E400', 1.5e300, 1],
    ['-1e400', -1.5e300, -1],
    ['-2', -10, 1],
    ['-10', -2, -1],
    ['-0.0', 0, 0],
    ['12', 1.3, 1],
    ['1e21', 1e21, 0],
  ])('%s beside %d is compared by its decimal value', (value, number, order) => {
    const below = resultFault([bound('', { min: number })], value) !== null;
    const above = resultFault([bound('', { max: number })], value) !== null;
    expect([below, above]).toEqual([order < 0, order > 0]);
  });

  test('is told by all that does not hold, and nothing of it is quoted', () => {
    const bounds = [ROWS, bound('/state', { json: '"done"' }), bound('/a~1b/0', { json: '1.0' })];
    expect(resultFault(bounds, '{"rows":7,"state":"done","a/b":[1]}')).toBeNull();
    expect(resultFault(bounds, '{"rows":700,"state":"secret","a/b":[2]}')).toBe(
      'its result at "/rows" is more than 100; its result at "/state" is not what is expected; ' +
        'its result at "/a~1b/0" is not what is expected',
    );
  });

  test('of what a command prints is its last line, where the whole is no JSON', () => {
    expect(resultFault([ROWS], 'reading …\nwriting …\n{"rows":5}\n')).toBeNull();
    expect(resultFault([ROWS], '{\n  "rows": 5\n}\n')).toBeNull();
    expect(resultFault([ROWS], '{"rows":5}\ndone\n')).toBe('its result is no JSON');
  });

  test('is judged up to 64 KiB', () => {
    const long = (bytes: number) => `{"rows":5,"x":"${'x'.repeat(bytes - 17)}"}`;
    expect(Buffer.byteLength(long(65_536))).toBe(65_536);
    expect(resultFault([ROWS], long(65_536))).toBeNull();
    expect(resultFault([ROWS], long(65_537))).toBe(
      'its result is longer than 64 KiB, of which nothing is judged',
    );
  });
});

test('an answer is JSON as a whole, and what was cut or cannot be decoded is none', () => {
  const fault = (text: string) => answerFault([ROWS], Buffer.from(text));
  expect(fault(' {"rows": 5}\n')).toBeNull();
  expect(fault('ok\n{"rows":5}')).toBe('its result is no JSON');
  expect(answerFault([ROWS], null)).toBe('its result is no JSON');
  expect(fault(`{"rows":5,"x":"${'x'.repeat(65_521)}`)).toBe(
    'its result is longer than 64 KiB, of which nothing is judged',
  );
});

test('very deep JSON is none that can be judged, and ends no process', () => {
  expect(resultFault([ROWS], '['.repeat(30_000))).toBe('its result is no JSON');
  expect(resultFault([bound('', { json: '1' })], '['.repeat(30_000) + ']'.repeat(30_000))).toEqual(
    expect.any(String),
  );
});
