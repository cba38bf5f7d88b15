import { expect, it } from 'vitest';
import { faultOfJson, formatJson, JsonText, parseJson, stringifyJson, textOf } from '../../web/src/api/json.ts';
import { inTurn } from '../../web/src/api/turns.ts';

const PAYLOAD = '{"big":12345678901234567890.10,"e":1E400,"deep":[1,{"payload":[0.10]},"a\\u00e9,]}\\""],"":{}}';

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

it('two reads are under way at once, the others follow in their order, and one that fails keeps no place', async () => {
  const begun: number[] = [];
  const end = new Map<number, (failed: boolean) => void>();
  const read = (n: number) =>
    inTurn(
      () =>
        new Promise<number>((resolve, reject) => {
          begun.push(n);
          end.set(n, (failed) => {
            if (failed) reject(new Error('refused'));
            else resolve(n);
          });
        }),
    );
  const reads = [1, 2, 3, 4, 5].map(read);
  expect(begun).toEqual([1, 2]);
  end.get(2)?.(true);
  await expect(reads[1]).rejects.toThrow('refused');
  expect(begun).toEqual([1, 2, 3]);
  for (const n of [1, 3]) end.get(n)?.(false);
  await Promise.all([reads[0], reads[2]]);
  expect(begun).toEqual([1, 2, 3, 4, 5]);
  for (const n of [4, 5]) end.get(n)?.(false);
  expect(await Promise.all(reads.slice(3))).toEqual([4, 5]);
  const last = [6, 7].map(read);
  expect(begun.slice(5)).toEqual([6, 7]);
  for (const n of [6, 7]) end.get(n)?.(false);
  await Promise.all(last);
});
