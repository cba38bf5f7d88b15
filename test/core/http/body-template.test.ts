import { describe, expect, test } from 'vitest';
import {
  type BodyValues,
  BodyTooLong,
  compileBody,
  isTooLongWith,
  readContentType,
  renderBody,
} from '../../../src/core/http/body-template.ts';
import { createRandom } from '../../chaos/random.ts';
import { ATTACK } from '../../support/runner/attack.ts';

const VALUES = {
  runId: 'r1',
  runName: null,
  scheduleId: 'nightly',
  scheduledFor: Date.UTC(2026, 10, 20, 9),
  attempt: 3,
  trigger: 'after',
  payload: '{"a":[1.50,"x"], "big":12345678901234567890,"n":null,"a/b":{"~":"t"}}',
  dependencies: [{ runId: 'p1', status: 'failed', error: null, result: null }],
  parent: {
    runId: 'p1',
    scheduleId: 'parent',
    status: 'failed',
    reason: null,
    error: { kind: 'http', message: 'the target answered "500"', statusCode: 500 },
    result: { statusCode: 500, body: 'line\nline' },
  },
} satisfies BodyValues;

function filled(template: string, contentType = 'application/json', values: Partial<BodyValues> = {}): string {
  return renderBody(compiledOf(template, contentType), { ...VALUES, ...values });
}

function compiledOf(template: string, contentType = 'text/plain') {
  const compiled = compileBody({ template, contentType });
  if ('fault' in compiled) throw new Error(compiled.fault);
  return compiled;
}

function faultOf(template: string, contentType = 'application/json'): string | null {
  const compiled = compileBody({ template, contentType });
  return 'fault' in compiled ? compiled.fault : null;
}

test('a secret value stands wherever its placeholder does, written as any other value; one that is not declared is unknown', () => {
  const render = (template: string, contentType: string) => {
    const secrets = { key: 'a"b&c', 'other-1': '{{runId}}' };
    const compiled = compileBody({ template, contentType, secrets });
    return 'fault' in compiled ? compiled.fault : renderBody(compiled, VALUES);
  };
  expect(render('{"k":"x{{secret/key}}","o":{{secret/key}}}', 'application/json')).toBe(
    String.raw`{"k":"xa\"b&c","o":"a\"b&c"}`,
  );
  expect(render('k={{secret/key}}', 'application/x-www-form-urlencoded')).toBe('k=a%22b%26c');
  expect(render('{{secret/other-1}}', 'text/plain')).toBe('{{runId}}');
  for (const name of ['none', 'toString', ''])
    expect(render(`{{secret/${name}}}`, 'text/plain')).toMatch(/^has an unknown placeholder \{\{secret\//);
});

describe('in JSON', () => {
  test.each([
    ['{"a":{{payload}}}', `{"a":${VALUES.payload}}`],
    ['{"a":{{payload/big}}}', '{"a":12345678901234567890}'],
    ['[{{payload/a/0}}, {{payload/a/1}}]', '[1.50, "x"]'],
    ['{"a":"{{payload/a/0}} {{payload/a/1}}"}', '{"a":"1.50 x"}'],
    ['{{payload/a~1b/~0}}', '"t"'],
    [
      '[{{payload/n}},{{payload/none}},{{payload/a/2}},{{payload/a/01}},{{payload/a/length}},{{payload/toString}}]',
      '[null,null,null,null,null,null]',
    ],
    [
      '{"run":{{runName}},"of":{{scheduleId}},"n":{{attempt}},"t":"{{trigger}}"}',
      '{"run":"r1","of":"nightly","n":3,"t":"after"}',
    ],
    ['["at {{scheduledFor}}"]', '["at 2026-11-20T09:00:00.000Z"]'],
    ['{"all":{{dependencies}}}', '{"all":[{"runId":"p1","status":"failed","error":null,"result":null}]}'],
    [
      '["{{parent/scheduleId}}: {{parent/error/message}}", {{parent/error/statusCode}}]',
      '["parent: the target answered \\"500\\"", 500]',
    ],
    ['{"x":{"y":{{attempt}}}}', '{"x":{"y":3}}'],
    ['"\\\\{{runId}}\\\\"', '"\\\\r1\\\\"'],
    ['"\\u007b{ stays"', '"\\u007b{ stays"'],
  ])('%s', (template, expected) => {
    expect(filled(template)).toBe(expected);
  });

  test('without a payload and a parent, a placeholder is null', () => {
    expect(
      filled('[{{payload}},{{payload/a}},{{parent/error}},"{{parent/status}}"]', undefined, {
        payload: null,
        parent: null,
      }),
    ).toBe('[null,null,null,"null"]');
  });

  test('a payload that is a string is that text inside quotes, and the JSON outside', () => {
    expect(filled('["{{payload}}",{{payload}}]', undefined, { payload: '"a\\u0041\\n"' })).toBe(
      '["aA\\n","a\\u0041\\n"]',
    );
  });

  test.each([
    '{"a":{{payload}}',
    '{ {{payload}}:1}',
    '{ {{runName}}:1}',
    '{"a":1,{{runName}}:1}',
    '[1{{attempt}}]',
    '[{{attempt}}2]',
    '[{{attempt}}{{attempt}}]',
    '[{{attempt}} {{attempt}}]',
    '[-{{attempt}}]',
    '"\\{{runId}}"',
    '"\\u00{{attempt}}"',
    '["a" {{payload}}]',
    'x{{payload}}',
    '',
    "{'a':1}",
  ])('%s is refused', (template) => {
    expect(faultOf(template)).toContain('is not JSON once its placeholders are filled in');
  });
});

test('in a form, a value is percent-encoded; elsewhere it is text', () => {
  const form = 'application/x-www-form-urlencoded';
  expect(filled('a={{payload/a/1}}&b={{parent/error/message}}', form)).toBe(
    'a=x&b=the%20target%20answered%20%22500%22',
  );
  expect(filled('{{scheduleId}}: {{parent/result/body}}, {{payload/a}}', 'text/plain')).toBe(
    'nightly: line\nline, [1.50,"x"]',
  );
});

test.each([
  '{{ runId }}',
  '{{runid}}',
  '{{}}',
  '{{payload.a}}',
  '{{payload/}}x{{parent}}',
  '{{parent/~2}}',
  '{{dependencies/0}}',
  '{{runId/0}}',
  '{{toString}}',
])('%s is unknown, and the fault lists what is known', (template) => {
  expect(faultOf(`"${template}"`)).toMatch(/^has an unknown placeholder \{\{.*; known: \{\{runId\}\}/);
});

test('a placeholder that is never closed is a fault, in every type', () => {
  for (const contentType of ['application/json', 'text/plain', 'application/x-www-form-urlencoded'])
    expect(compileBody({ template: '"a {{runId"', contentType })).toEqual({
      fault: 'has a {{ that is never closed by }}',
    });
});

test('media types: what is JSON, what is a form, and which are refused', () => {
  for (const type of [
    'application/json',
    'Application/JSON; charset=UTF-8',
    'application/vnd.api+json',
    'text/json',
    'application/x+json;a="b;c"',
  ])
    expect([type, readContentType(type)]).toEqual([type, { encoding: 'json' }]);
  expect(readContentType('application/x-www-form-urlencoded')).toEqual({ encoding: 'form' });
  for (const type of ['text/plain', 'application/jsonx', 'application/xml; charset="utf-8"'])
    expect(readContentType(type)).toEqual({ encoding: 'text' });
  for (const type of [
    '',
    'json',
    'a/b; c',
    'a/b\r\nx: y',
    'a b/c',
    'text/plain; charset=latin1',
    'text/plain;charset="utf-16"',
  ])
    expect(readContentType(type)).toHaveProperty('fault');
});

test('a body of more than 1 MiB is not built, counted in bytes', () => {
  const filledWith = (text: string) =>
    filled(`[${Array(16).fill('{{payload}}').join(',')}]`, undefined, { payload: JSON.stringify(text) });
  expect(filledWith('x'.repeat(65_000))).toHaveLength(16 * 65_003 + 1);
  expect(() => filledWith('é'.repeat(33_000))).toThrow(BodyTooLong);
});

test('of a payload it is known whether every body with it is too long, but not of what only an attempt has', () => {
  const long = JSON.stringify('x'.repeat(65_000));
  const targetWith = (template: string) => ({ body: { template, contentType: 'text/plain' } });
  expect(isTooLongWith(targetWith('{{payload}}'.repeat(17)), long)).toBe(true);
  expect(isTooLongWith(targetWith('{{payload}}'.repeat(17)), null)).toBe(false);
  expect(isTooLongWith(targetWith('{{runName}}'.repeat(5_900)), long)).toBe(false);
  expect(isTooLongWith({ body: 'envelope' }, long)).toBe(false);
  expect(isTooLongWith({ type: 'pull' }, long)).toBe(false);
});

describe('whatever a value contains, it stays in its place', { tags: [ATTACK] }, () => {
  const random = createRandom(7, 'body templates');
  const some = (texts: readonly string[], most: number) =>
    Array.from({ length: 1 + Math.floor(random.next() * most) }, () => random.pick(texts)).join('');
  const pieces = [
    '"',
    '\\',
    '\\"',
    '\u2028',
    '\0',
    '\n',
    '\r\n',
    '{{payload}}',
    '}}',
    '",',
    '"}',
    '&',
    '=',
    '%',
    '+',
    '#',
    '\ud800',
    '\udc00',
    '😀',
    '</script>',
    "'",
    'a',
    '\\u0022',
    '\\u005c',
  ];
  const cases = Array.from({ length: 500 }, () => some(pieces, 8));
  const valuesWith = (text: string): Partial<BodyValues> => ({
    runName: text,
    payload: JSON.stringify({ [text]: text, t: text, deep: [text, { text }] }),
    parent: { ...VALUES.parent, error: { kind: 'http', message: text } },
    dependencies: [
      {
        runId: text,
        status: 'failed',
        error: { kind: 'http', message: text },
        result: { statusCode: 1, body: text },
      },
    ],
  });

  test('in JSON, the values read back are the values given, and nothing else is there', () => {
    const template =
      '{"a":"{{runName}}","b":"<{{payload/t}}|{{parent/error/message}}>","c":{{payload}},"d":{{dependencies}},"{{payload/t}}_k":1,"e":"{{payload}}","f":{{payload/deep}}}';
    for (const text of cases) {
      const values = valuesWith(text);
      const read: unknown = JSON.parse(filled(template, undefined, values));
      expect(read).toEqual({
        a: text,
        b: `<${text}|${text}>`,
        c: JSON.parse(values.payload ?? '') as unknown,
        d: values.dependencies,
        [`${text}_k`]: 1,
        e: values.payload,
        f: [text, { text }],
      });
    }
  });

  test('in a form, no value adds a field or changes another', () => {
    for (const text of cases) {
      const form = new URLSearchParams(
        filled(
          'a={{runName}}&b={{payload/t}}&c={{parent/error/message}}',
          'application/x-www-form-urlencoded',
          valuesWith(text),
        ),
      );
      const whole = text.toWellFormed();
      expect([...form]).toEqual([
        ['a', whole],
        ['b', whole],
        ['c', whole],
      ]);
    }
  });

  test('in a text, a value is not filled in once more', () => {
    for (const text of cases)
      expect(filled('<{{runName}}>', 'text/plain', valuesWith(text))).toBe(`<${text.toWellFormed()}>`);
  });

  test('a template that is accepted is JSON for every value, and one that is not never becomes a body', () => {
    const parts = [
      '{',
      '}',
      '[',
      ']',
      ',',
      ':',
      '"',
      '\\',
      'a',
      '1',
      ' ',
      '-',
      'null',
      '{{payload}}',
      '{{runName}}',
      '{{payload/t}}',
      '"k":',
      '"{{runName}}"',
      '[{{payload}}]',
    ];
    let accepted = 0;
    for (let count = 0; count < 20_000; count += 1) {
      const template = some(parts, 7);
      const compiled = compileBody({ template, contentType: 'application/json' });
      if ('fault' in compiled) continue;
      accepted += 1;
      for (const text of ['"', '\\', 'u0022', '1', ''])
        expect(() => void JSON.parse(renderBody(compiled, { ...VALUES, ...valuesWith(text) }))).not.toThrow();
      for (const payload of ['{}', '[1]', '-1', '"x"', null])
        expect(() => void JSON.parse(renderBody(compiled, { ...VALUES, payload }))).not.toThrow();
    }
    expect(accepted).toBeGreaterThan(100);
  });
});
