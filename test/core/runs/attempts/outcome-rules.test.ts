import { describe, expect, test } from 'vitest';
import { judge, overlap, patternFault } from '../../../../src/core/runs/attempts/outcome-rules.ts';
import type { OutcomeRules } from '../../../../src/core/schedules/schedule.ts';

const NO_RULES: OutcomeRules = { succeed: [], retry: [], fail: [], require: null, otherwise: null };

function verdict(
  rules: Partial<OutcomeRules>,
  statusCode: number,
  body = '',
  delivery = 'atLeastOnce' as const,
) {
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
    expect(judge({ ...NO_RULES, ...isTrue, otherwise: 'retry' }, answer, 'atLeastOnce').kind).toBe(
      'rejected',
    );
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
  for (const pattern of [200, 599, '404', '2xx', '5XX', '400-404', '499-499'])
    expect(patternFault(pattern)).toBeNull();
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
