import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { findPayloads } from '../../src/api/json-body.ts';
import { mergeJsonText } from '../../src/api/merge-patch.ts';
import { type Api, SCHEDULE, faultPaths, startApi } from './api.ts';

let api: Api;
beforeAll(async () => {
  api = await startApi();
});
afterAll(() => api.stop());

/** A definition whose payload is this very text. */
const withPayload = (payload: string) => `${JSON.stringify(SCHEDULE).slice(0, -1)}, "payload" : ${payload} }`;
const payloadOf = (text: string) => findPayloads(text).get('/payload');

const TEXTS = [
  '12345678901234567890.1234567890123456789',
  '1e400',
  '-0.0',
  '1E+2',
  '{"a" :\t1.0,\r\n "a": 2.00}',
  '"\\u0000 \\ud800 \\/ \\u00e9 \u00e9 \ud83d\ude00"',
  '[]',
  '{ }',
  '""',
  'false',
  '0',
  '{"payload":{"payload":[1.0]},"items":[{"payload":2}],"__proto__":{"x":1}}',
  `[${'['.repeat(61)}${']'.repeat(61)}]`,
];

describe('a payload', () => {
  test.each(TEXTS)('is answered byte for byte: %s', async (text) => {
    await api.call('DELETE', '/api/v1/schedules/exact');
    const put = await api.call('PUT', '/api/v1/schedules/exact', withPayload(text));
    expect(put.status).toBe(201);
    const read = await api.call('GET', '/api/v1/schedules/exact');
    expect([payloadOf(put.text), payloadOf(read.text)]).toEqual([text, text]);

    const back = await api.call('PUT', '/api/v1/schedules/exact', read.text);
    expect([back.status, back.body['version'], payloadOf(back.text)]).toEqual([200, 1, text]);
    const patched = await api.call('PATCH', '/api/v1/schedules/exact', { description: 'x' });
    expect([patched.body['version'], payloadOf(patched.text)]).toEqual([2, text]);

    const fired = await api.call('POST', '/api/v1/schedules/exact/fire');
    expect(payloadOf(fired.text)).toBe(text);
    const own = await api.call('POST', '/api/v1/schedules/exact/fire', `{"payload": ${text} }`);
    expect(payloadOf(own.text)).toBe(text);
    const run = await api.call('GET', own.headers.get('location') ?? '');
    expect(payloadOf(run.text)).toBe(text);
  });

  test('of a batch is the item’s own', async () => {
    // A batch is nested two deeper, so the deepest of them does not fit.
    const texts = TEXTS.slice(0, -1);
    const items = texts.map((text, n) => `{"id": "b${n}", ${withPayload(text).slice(1)}`);
    const batch = await api.call('POST', '/api/v1/schedules/batch', `{"items": [\n${items.join(' ,\n')}]}`);
    expect(batch.body).toEqual({ created: texts.length, updated: 0, unchanged: 0 });
    for (const [n, text] of texts.entries()) {
      expect(payloadOf((await api.call('GET', `/api/v1/schedules/b${n}`)).text)).toBe(text);
    }
    const list = await api.call('GET', '/api/v1/schedules?q=b&limit=100');
    for (const text of texts) expect(list.text).toContain(`"payload":${text},`);
  });

  test('that stands there twice is the last one, as for every parser', async () => {
    const twice = withPayload('1').replace(/\}\s*$/, ', "p\\u0061yload": 2.0}');
    expect(payloadOf((await api.call('PUT', '/api/v1/schedules/twice', twice)).text)).toBe('2.0');
  });

  test('that is null is none', async () => {
    await api.call('PUT', '/api/v1/schedules/none', withPayload('null'));
    const [row] = await api.sql`SELECT payload FROM schedule_versions WHERE schedule_id = 'none'`;
    expect(row).toEqual({ payload: null });
  });

  test('may have 64 KiB as sent, in bytes, and not one more', async () => {
    const fits = `"${'\u00e9'.repeat(32_767)}"`;
    expect((await api.call('PUT', '/api/v1/schedules/big', withPayload(fits))).status).toBe(201);
    const tooBig = await api.call(
      'PUT',
      '/api/v1/schedules/big',
      withPayload(`"${'\u00e9'.repeat(32_768)}"`),
    );
    expect([tooBig.status, faultPaths(tooBig)]).toEqual([400, ['/payload']]);
    const merged = await api.call(
      'PUT',
      '/api/v1/schedules/grow',
      withPayload(`{"a":"${'x'.repeat(40_000)}"}`),
    );
    expect(merged.status).toBe(201);
    const grown = await api.call('PATCH', '/api/v1/schedules/grow', { payload: { b: 'x'.repeat(40_000) } });
    expect([grown.status, faultPaths(grown)]).toEqual([400, ['/payload']]);
    const fired = await api.call('POST', '/api/v1/schedules/grow/fire', { payload: 'x'.repeat(65_535) });
    expect([fired.status, faultPaths(fired)]).toEqual([400, ['/payload']]);
  });

  test('cannot forge another field of the answer', async () => {
    const text = '"\\",\\"status\\":\\"forged"';
    await api.call('PUT', '/api/v1/schedules/forge', withPayload(text));
    const read = await api.call('GET', '/api/v1/schedules/forge');
    expect(read.body).toMatchObject({ status: 'active', payload: '","status":"forged' });
  });
});

describe('a payload in PATCH', () => {
  test.each([
    ['{"a":1.0,"b":[1.50]}', '{"c":1e2}', '{"a":1.0,"b":[1.50],"c":1e2}'],
    ['{"a":{"x":1.0,"y":2}}', '{"a":{"y":null}}', '{"a":{"x":1.0}}'],
    ['{"a": 1}', '{"a":null}', '{}'],
    ['{"a": 1.0 }', '{"a":1.0}', '{"a": 1.0 }'],
    ['{"a": 1.0 }', '{}', '{"a": 1.0 }'],
    ['[1, 2]', '{"a":1.0}', '{"a":1.0}'],
    ['{"a":1}', '[ 1.00 ]', '[ 1.00 ]'],
    ['{"a":1}', '7.0', '7.0'],
    ['{"__proto__":{"x":1.0}}', '{"y":2}', '{"__proto__":{"x":1.0},"y":2}'],
    ['{"a":1}', '{"__proto__":{"x":1.0}}', '{"a":1,"__proto__":{"x":1.0}}'],
    ['{"a":1}', '{"b":{"c":null,"d":-0.0}}', '{"a":1,"b":{"d":-0.0}}'],
  ])('%s patched with %s is %s', async (before, patch, after) => {
    await api.call('DELETE', '/api/v1/schedules/merge');
    await api.call('PUT', '/api/v1/schedules/merge', withPayload(before));
    const patched = await api.call('PATCH', '/api/v1/schedules/merge', `{"payload": ${patch}}`);
    expect([patched.status, payloadOf(patched.text)]).toEqual([200, after]);
    expect(patched.body['version']).toBe(before === after ? 1 : 2);
  });

  test('null takes it away', () => {
    expect(mergeJsonText('{"a":1}', 'null')).toBeNull();
    expect(mergeJsonText(null, '{"a":1.0,"b":null}')).toBe('{"a":1.0}');
  });
});

describe('findPayloads', () => {
  test.each<[string, Record<string, string>]>([
    ['{"payload":1}', { '/payload': '1' }],
    ['{ "a" : { "payload" : 1 } , "payload" : [ "}" , "\\"" ] }', { '/payload': '[ "}" , "\\"" ]' }],
    [
      '{"items":[{"payload":1},{},{"payload":{"payload":2}}]}',
      { '/items/0/payload': '1', '/items/2/payload': '{"payload":2}' },
    ],
    ['{"items":[{"payload":1}],"items":[{},{"payload":3}]}', { '/items/1/payload': '3' }],
    ['{"x":[{"payload":1}]}', {}],
    ['[{"payload":1}]', {}],
    ['{"a":"\\\\","payload":"\\\\"}', { '/payload': '"\\\\"' }],
    ['{"payload', {}],
    ['}}}]]]"payload":1', {}],
    ['', {}],
  ])('finds in %s', (text, payloads) => {
    expect(Object.fromEntries(findPayloads(text))).toEqual(payloads);
  });
});

test('a body of millions of items is refused before it is parsed', () => {
  const text = `{"items":[${'{},'.repeat(1_000_000)}`;
  // It would be "not JSON" as well, if anybody had looked.
  expect(() => findPayloads(text)).toThrow('/items must be at most 1000 items');
  const items = (count: number) =>
    findPayloads(`{"items":[${Array(count).fill('{"payload":1}').join(',')}]}`);
  expect(items(1000).size).toBe(1000);
  expect(() => items(1001)).toThrow('at most 1000 items');
  expect(findPayloads(`{"payload":{"items":[${'1,'.repeat(5000)}1]}}`).size).toBe(1);
});
