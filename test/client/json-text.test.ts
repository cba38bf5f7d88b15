import { expect, test } from 'vitest';
import { JsonText, parseJson, stringifyJson } from '../../clients/typescript/src/json-text.ts';

const BIG = '{"n":12345678901234567890.10}';

test('what callers put into a body is written as they mean it', () => {
  const body = {
    text: new JsonText(BIG),
    integer: 12345678901234567890n,
    at: new Date(0),
    left: undefined,
    list: [undefined, () => 1, new JsonText('1.0')],
  };
  expect(stringifyJson(body)).toBe(
    `{"text":${BIG},"integer":12345678901234567890,"at":"1970-01-01T00:00:00.000Z","list":[null,null,1.0]}`,
  );
});

test('a payload can be read as a value, and be part of what JSON.stringify writes', () => {
  const run = parseJson(`{"id":"a","payload":{"a":[1,2]}}`) as { payload: JsonText };
  expect(run.payload.value()).toEqual({ a: [1, 2] });
  expect(JSON.stringify(run)).toBe('{"id":"a","payload":{"a":[1,2]}}');
});

test('other places can be kept as text too', () => {
  const read = parseJson('{"result":{"rows":1.0},"payload":0.10}', /^result$/);
  expect(read).toEqual({ result: new JsonText('{"rows":1.0}'), payload: new JsonText('0.10') });
});
