import { describe, expect, test } from 'vitest';
import {
  answerFault,
  judge,
  overlap,
  patternFault,
  resultFault,
} from '../../../../src/core/runs/attempts/outcome-rules.ts';
import type { OutcomeRules } from '../../../../src/core/schedules/schedule.ts';
import type { ResultBound } from '../../../../src/core/schedules/expect.ts';

const NO_RULES: OutcomeRules = { succeed: [], retry: [], fail: [], require: null, otherwise: null };

function verdict(rules: Partial<OutcomeRules>, statusCode: number, body = '', delivery = 'atLeastOnce' as const) {
  return judge({ ...NO_RULES, ...rules }, { statusCode, body: Buffer.from(body), isDecoded: true }, delivery);
}

test('a status in a list is what the list says, and the error names the list', () => {
  const rules = { succeed: [409, '3xx'], retry: ['400-404'], fail: [503] };
  expect(verdict(rules, 409)).toEqual({ kind: 'accepted' });
  expect(verdict(rules, 302)).toEqual({ kind: 'accepted' });
  expect(verdict(rules, 404)).toEqual({
    kind: 'transient',
    error: { kind: 'http', message: 'the target answered 404, which is in outcome.retry', statusCode: 404 },
  });
  expect(verdict(rules, 503)).toEqual({
    kind: 'rejected',
    error: { kind: 'http', message: 'the target answered 503, which is in outcome.fail', statusCode: 503 },
  });
});

test('a status in no list is judged as without rules', () => {
  const rules = { succeed: [409] };
  expect([200, 500, 429, 405, 410].map((status) => verdict(rules, status))).toEqual([
    { kind: 'accepted' },
    { kind: 'transient', error: null },
    { kind: 'transient', error: null },
    { kind: 'rejected', error: null },
    { kind: 'rejected', error: null },
  ]);
});

describe('what is required', () => {
  const isTrue = { require: { pointer: '/ok', json: 'true' } };

  test.each([
    ['{"ok":true}', 'accepted'],
    [' {"ok" : true, "x":1}\n', 'accepted'],
    ['{"ok":"true"}', 'transient'],
    ['{"ok":1}', 'transient'],
    ['{"OK":true}', 'transient'],
    ['{"ok":true', 'transient'],
    ['[{"ok":true}]', 'transient'],
    ['', 'transient'],
    ['true', 'transient'],
  ])('%s is %s', (body, kind) => {
    expect(verdict(isTrue, 200, body)).toMatchObject({ kind });
  });

  test('the value must be exactly the one that is named, null and large numbers too', () => {
    const equal = (json: string, body: string) => verdict({ require: { pointer: '', json } }, 200, body).kind;
    expect(equal('null', 'null')).toBe('accepted');
    expect(equal('null', '')).toBe('transient');
    expect(equal('{"a":[1,{"b":null}]}', '{"a":[1,{"b":null}]}')).toBe('accepted');
    expect(equal('{"a":[1,{"b":null}]}', '{"a":[1,{"b":null}],"c":1}')).toBe('transient');
    expect(equal('{"a":1,"b":[]}', '{"b":[],"a":1}')).toBe('accepted');
    expect(equal('[]', '{}')).toBe('transient');
    expect(equal('{"a":1}', '{"b":1}')).toBe('transient');
    expect(equal('"x"', '"x"')).toBe('accepted');
    expect(verdict({ require: { pointer: '/a', json: 'null' } }, 200, '{}').kind).toBe('transient');
  });

  test.each([
    ['1.10', '1.10', true],
    ['1.0', '1', true],
    ['1e2', '100', true],
    ['100', '1.0E+2', true],
    ['0.001', '1e-3', true],
    ['-0', '0.00', true],
    ['12345678901234567890', '12345678901234567890', true],
    ['12345678901234567890', '12345678901234567891', false],
    ['9007199254740992', '9007199254740993', false],
    ['1e999999999999999999999', '1e999999999999999999999', true],
    ['1e999999999999999999999', '1e999999999999999999998', false],
    ['1', '-1', false],
    ['10', '1', false],
    ['1', '"1"', false],
    ['{"a":[1.50]}', '{"a":[15e-1]}', true],
  ])('numbers are compared by their decimal value: %s and %s', (json, body, isEqual) => {
    const { kind } = verdict({ require: { pointer: '', json } }, 200, body);
    expect(kind).toBe(isEqual ? 'accepted' : 'transient');
  });

  test('a text must contain it', () => {
    const rules = { require: { contains: 'déjà OK' } };
    expect(verdict(rules, 200, '<p>déjà OK</p>').kind).toBe('accepted');
    expect(verdict(rules, 200, '<p>déjà ok</p>')).toEqual({
      kind: 'transient',
      error: {
        kind: 'http',
        message: 'the target answered 200, and its text does not contain what outcome.require.contains says',
        statusCode: 200,
      },
    });
  });

  test('it is asked of what would have succeeded, also by a list, and of nothing else', () => {
    expect(verdict({ ...isTrue, succeed: [409] }, 409, '{"ok":false}').kind).toBe('transient');
    expect(verdict({ ...isTrue, fail: [200] }, 200, '{"ok":true}').kind).toBe('rejected');
    expect(verdict(isTrue, 404, '{"ok":true}')).toEqual({ kind: 'rejected', error: null });
    expect(verdict(isTrue, 500, '{"ok":true}')).toEqual({ kind: 'transient', error: null });
  });

  test('a body that cannot be decoded does not meet it, and is not asked for again whatever is said', () => {
    const answer = { statusCode: 200, body: Buffer.from('{"ok":true}'), isDecoded: false };
    expect(judge({ ...NO_RULES, ...isTrue, otherwise: 'retry' }, answer, 'atLeastOnce').kind).toBe('rejected');
    expect(judge(NO_RULES, answer, 'atLeastOnce').kind).toBe('accepted');
  });

  test('what is without it is tried again, or has failed: as said, else by the delivery', () => {
    const atMostOnce = (rules: Partial<OutcomeRules>) =>
      judge(
        { ...NO_RULES, ...isTrue, ...rules },
        { statusCode: 200, body: Buffer.alloc(0), isDecoded: true },
        'atMostOnce',
      ).kind;
    expect(verdict({ ...isTrue, otherwise: 'fail' }, 200).kind).toBe('rejected');
    expect(atMostOnce({})).toBe('rejected');
    expect(atMostOnce({ otherwise: 'retry' })).toBe('transient');
  });
});

test('patterns: what is refused, and what matches the same status', () => {
  for (const pattern of [200, 599, '404', '2xx', '5XX', '400-404', '499-499']) expect(patternFault(pattern)).toBeNull();
  for (const pattern of [
    199,
    600,
    0,
    -200,
    204.5,
    '1xx',
    '6xx',
    '4x',
    'abc',
    '',
    ' 404',
    '400 - 404',
    '400-',
    '100-200',
    '200-600',
  ])
    expect(patternFault(pattern)).toContain('must be a status');
  expect(patternFault('404-400')).toBe('ends before it begins');
  expect(overlap('4xx', '400-404')).toBe(true);
  expect(overlap(404, '404')).toBe(true);
  expect(overlap('2xx', '300-399')).toBe(false);
});

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
    expect(resultFault([ROWS], long(65_537))).toBe('its result is longer than 64 KiB, of which nothing is judged');
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
  expect(resultFault([bound('', { json: '1' })], '['.repeat(30_000) + ']'.repeat(30_000))).toEqual(expect.any(String));
});
