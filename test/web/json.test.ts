import { expect, it } from 'vitest';
import {
  JsonText,
  faultOfJson,
  formatJson,
  parseJson,
  stringifyJson,
  textOf,
} from '../../web/src/api/json.ts';

const PAYLOAD =
  '{"big":12345678901234567890.10,"e":1E400,"deep":[1,{"payload":[0.10]},"a\\u00e9,]}\\""],"":{}}';

it('a payload that was read is sent again byte for byte', () => {
  const text = `{"id":"a","payload":${PAYLOAD},"labels":{"payload":"x"},"attempts":2}`;
  const run = parseJson(text) as Record<string, unknown>;
  expect(run['payload']).toEqual(new JsonText(PAYLOAD));
  expect(run['labels']).toEqual({ payload: 'x' });
  expect(stringifyJson({ payload: run['payload'] })).toBe(`{"payload":${PAYLOAD}}`);
  expect(stringifyJson(run)).toBe(text);
});

it('payloads are found in lists and in versions, whatever they are', () => {
  const page = parseJson(
    '{"items": [{"payload": 1.0}, {"payload" : null}, {"schedule": {"payload": [ ]}}, {"version": 1},' +
      ' {"payload": "a\\"b"}, {}, {"payload": {}}], "nextCursor": null}',
  ) as { items: { payload?: unknown; schedule?: { payload: unknown } }[] };
  expect(page.items.map(({ payload, schedule }) => textOf(schedule?.payload ?? payload))).toEqual([
    '1.0',
    'null',
    '[ ]',
    'null',
    '"a\\"b"',
    'null',
    '{}',
  ]);
});

it('all other values are as JSON.parse reads them, and undefined is left out', () => {
  for (const text of ['[]', '{}', '"payload"', '{"a":{"payload":1.0}}', '[{"payload":1.0}]'])
    expect(parseJson(text)).toEqual(JSON.parse(text));
  expect(stringifyJson({ a: undefined, b: [undefined, null], c: 'é"\n', d: { e: true } })).toBe(
    '{"b":[null,null],"c":"é\\"\\n","d":{"e":true}}',
  );
});

it('JSON is laid out for readers without a change to any value', () => {
  expect(formatJson('{"a":1.0,"b":[],"c":[1E5,{}],"d":"x,{y}"}')).toBe(
    '{\n  "a": 1.0,\n  "b": [],\n  "c": [\n    1E5,\n    {}\n  ],\n  "d": "x,{y}"\n}',
  );
  expect(faultOfJson('{"a":1}')).toBeNull();
  expect(faultOfJson('{"a":}')).toMatch(/Unexpected token|JSON/);
});
