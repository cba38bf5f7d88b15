import { isDeepStrictEqual } from 'node:util';
import { describe, expect, test } from 'vitest';
import { type JsonBody, readJsonBody, isObject } from '../../../src/api/http/json/json-body.ts';
import { splitJson } from '../../../src/api/http/json/json-parts.ts';
import { mergeJsonText } from '../../../src/api/http/json/raw-json.ts';
import { SCHEDULE, faultPaths, sharedApi } from '../api.ts';
import { type Random, createRandom } from '../../chaos/random.ts';

const api = sharedApi();

/** A definition whose payload is this very text. */
const withPayload = (payload: string) => `${JSON.stringify(SCHEDULE).slice(0, -1)}, "payload" : ${payload} }`;
const payloadOf = (text: string) => read(text).payloads.get('/payload');
const read = (text: string) => finished(readJsonBody(Buffer.from(text))).value;

/** What it comes to, and in how many steps. */
function finished<T>(work: Generator<void, T, void>): { value: T; steps: number } {
  for (let steps = 1; ; steps += 1) {
    const step = work.next();
    if (step.done === true) return { value: step.value, steps };
  }
}

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

  test('of a batch belongs to its item', async () => {
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

  test('that occurs twice is refused, in whichever spelling', async () => {
    const twice = withPayload('1').replace(/\}\s*$/, ', "p\\u0061yload": 2.0}');
    const answer = await api.call('PUT', '/api/v1/schedules/twice', twice);
    expect([answer.status, answer.body['detail']]).toEqual([400, '/payload is given more than once']);
  });

  test('null counts as no payload', async () => {
    await api.call('PUT', '/api/v1/schedules/none', withPayload('null'));
    const [row] = await api.sql`SELECT payload FROM schedule_versions WHERE schedule_id = 'none'`;
    expect(row).toEqual({ payload: null });
  });

  test('may have 64 KiB as sent, in bytes, and no more', async () => {
    const fits = `"${'\u00e9'.repeat(32_767)}"`;
    expect((await api.call('PUT', '/api/v1/schedules/big', withPayload(fits))).status).toBe(201);
    const tooBig = await api.call('PUT', '/api/v1/schedules/big', withPayload(`"${'\u00e9'.repeat(32_768)}"`));
    expect([tooBig.status, faultPaths(tooBig)]).toEqual([400, ['/payload']]);
    const merged = await api.call('PUT', '/api/v1/schedules/grow', withPayload(`{"a":"${'x'.repeat(40_000)}"}`));
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

  test('null removes it', () => {
    expect(mergeJsonText('{"a":1}', 'null')).toBeNull();
    expect(mergeJsonText(null, '{"a":1.0,"b":null}')).toBe('{"a":1.0}');
  });
});

describe('the payloads of a body', () => {
  test.each<[string, Record<string, string>]>([
    ['{"payload":1}', { '/payload': '1' }],
    ['{ "a" : { "payload" : 1 } , "payload" : [ "}" , "\\"" ] }', { '/payload': '[ "}" , "\\"" ]' }],
    [
      '{"items":[{"payload":1},{},{"payload":{"payload":2}}]}',
      { '/items/0/payload': '1', '/items/2/payload': '{"payload":2}' },
    ],
    ['{"items":[{"payload":1}],"items":[{},{"payload":3}]}', { '/items/1/payload': '3' }],
    ['{"items":[{"payload":1}],"items":5}', {}],
    [
      '{"items":[{"payload":1,"p\\u0061yload":2.0}],"payload":3,"payload":4}',
      { '/items/0/payload': '2.0', '/payload': '4' },
    ],
    ['{"it\\u0065ms":[{"payload":1}]}', { '/items/0/payload': '1' }],
    ['{"items":{"payload":1}}', {}],
    ['{"items":[[{"payload":1}]]}', {}],
    ['{"x":[{"payload":1}]}', {}],
    ['[{"payload":1}]', {}],
    ['{"a":"\\\\","payload":"\\\\"}', { '/payload': '"\\\\"' }],
    ['\ufeff{"payload":1}', { '/payload': '1' }],
    ['{"a":"payload","b":[{"payload":1}],"payload":null}', { '/payload': 'null' }],
    ['{"result":1.0,"r\\u0065sult" : [ 2.0 ] }', { '/result': '[ 2.0 ]' }],
    [
      '{"items":[{"result":1,"payload":2.0}],"result":3.0,"items":[{"payload":4.0}]}',
      { '/items/0/payload': '4.0', '/result': '3.0' },
    ],
  ])('are found in %s', (text, payloads) => {
    expect(Object.fromEntries(read(text).payloads)).toEqual(payloads);
  });

  test('are left out of its value, which otherwise equals the value of JSON.parse', () => {
    const text =
      '{"a":[1,{"payload":2}],"items":[ {"id":"x","payload":[1]}, "y" , [3] ,{}],"payload":{"a":1},"items":[{"id":"z"}, 7]}';
    const value = JSON.parse(text) as Record<string, unknown>;
    expect(read(text).value).toEqual({ ...value, payload: null });
    expect(read('{"items":[{"payload":1,"id":"a"}]}').value).toEqual({ items: [{ payload: null, id: 'a' }] });
    for (const plain of ['[]', '{"items":[ ]}', '{"items":{}}', '"items"', ' 1 '])
      expect(read(plain).value).toEqual(JSON.parse(plain));
  });

  // The random bodies below are damaged in all other ways.
  test.each([
    '',
    '{"payload":1 2}',
    '{"payload":01}',
    '{"payload":\u00a01}',
    '{"payload":\ufeff1}',
    '{"items":[{"payload":1x}],"items":[]}',
  ])('are refused together with what is not JSON: %s', (text) => {
    expect(() => JSON.parse(text) as unknown).toThrow();
    expect(() => read(text)).toThrow(/^the body is not JSON/);
  });
});

describe('a body that is too large for any call', () => {
  const many = (count: number, member: (n: number) => string) =>
    Array.from({ length: count }, (_, n) => member(n)).join(',');
  const refusals: [name: string, text: string, refusal: RegExp][] = [
    ['millions of items', `{"items":[${'{},'.repeat(1_000_000)}`, /^\/items must be at most 1000 items$/],
    [
      'a million fields of an item',
      `{"items":[{${many(1_000_000, (n) => `"k${n}":1`)}`,
      /^\/items\/0 has more than 5000 members/,
    ],
    ['a million fields', `{${many(1_000_000, (n) => `"k${n}":1`)}`, /^the body has more than 5000 members/],
    [
      '300,000 headers',
      `{"items":[{},{"target":{"headers":{${many(300_000, (n) => `"H${n}":""`)}`,
      /^\/items\/1 has more than 5000 members/,
    ],
    [
      '300,000 ends',
      `{"items":[{"after":{"on":[${many(300_000, () => '"failed"')}`,
      /^\/items\/0 has more than 5000 members/,
    ],
    ['lists of nothing', `{"items":[[${'[],'.repeat(300_000)}`, /^\/items\/0 has more than 5000 members/],
    ['a long name', `{"items":[{"${'x'.repeat(3_000_000)}":1}]}`, /^\/items\/0 must be at most 2097152 bytes of JSON/],
    ['white space', `{"items":[${' '.repeat(3_000_000)}]}`, /^\/items\/0 must be at most 2097152 bytes of JSON/],
    ['white space around', `{"items":[]${' '.repeat(3_000_000)}}`, /^the body must be at most 2097152 bytes of JSON/],
  ];
  // They would be "not JSON" as well, if anybody had looked.
  test.each(refusals)('is refused before it is parsed: %s', (_name, text, refusal) => {
    expect(() => finished(splitJson(Buffer.from(text)))).toThrow(refusal);
  });

  test('does not count what is in payloads, or in strings', () => {
    const list = `[${'1,'.repeat(5000)}1]`;
    expect(read(`{"payload":{"items":${list}}}`).payloads.size).toBe(1);
    expect(read(`{"items":[{"payload":${list}}]}`).payloads.size).toBe(1);
    expect(read(`{"a":"${'{},'.repeat(5000)}"}`).value).toEqual({ a: '{},'.repeat(5000) });
  });

  test('has more than any call takes: 1000 items with 64 headers, twice, and 32 labels', () => {
    const headers = Object.fromEntries(Array.from({ length: 64 }, (_, n) => [`X-Header-${n}`, 'value']));
    const labels = Object.fromEntries(Array.from({ length: 32 }, (_, n) => [`label-${n}`, 'value']));
    const item = {
      ...SCHEDULE,
      target: { ...SCHEDULE.target, headers, lookup: { headers } },
      labels,
      payload: 1,
    };
    const body = { items: Array.from({ length: 1000 }, () => item) };
    const { value, payloads, faults } = read(JSON.stringify(body));
    expect(value).toEqual({ items: body.items.map((one) => ({ ...one, payload: null })) });
    expect([payloads.size, faults]).toEqual([1000, []]);
  });

  test.each([
    ['payloads', JSON.stringify({ items: Array.from({ length: 200 }, () => ({ payload: '€'.repeat(20_000) })) })],
    ['one payload', `{"items":[{"payload":[${'1,'.repeat(4_000_000)}1]}]}`],
    ['escapes', `{"items":[{"payload":"${'\\"'.repeat(4_000_000)}"}]}`],
  ])('or takes many steps, whatever it is made of: %s', (_name, text) => {
    expect(finished(readJsonBody(Buffer.from(text))).steps).toBeGreaterThan(text.length / 200_000);
  });
});

test('random bodies, most of them damaged, are read as JSON.parse reads the whole text', () => {
  const random = createRandom(20_261_120, 'bodies');
  const count = { valid: 0, invalid: 0 };
  for (let round = 0; round < 6_000; round += 1) {
    const text = damaged(random, body(random));
    const whole = parsed(text);
    const read = readOrRefused(text);
    if (whole === null || read === null) {
      if (read !== whole) expect([text, read]).toEqual([text, whole]);
      count.invalid += 1;
      continue;
    }
    count.valid += 1;
    const payloads = takePayloads(whole.value);
    const fields = Object.fromEntries(
      [...read.payloads].map(([path, source]) => [path, JSON.parse(source) as unknown]),
    );
    const sources = [...read.payloads.values()];
    if (!isDeepStrictEqual([read.value, fields], [whole.value, payloads])) {
      expect([text, read.value, fields]).toEqual([text, whole.value, payloads]);
    }
    if (!sources.every((source) => text.includes(source))) expect([text, sources]).toEqual([text, 'in it']);
  }
  expect(Math.min(count.valid, count.invalid)).toBeGreaterThan(1_000);
});

const NAMES = ['"payload"', '"items"', '"p\\u0061yload"', '"result"', '"r\\u0065sult"', '"a"', '"b"'];
const SCALARS = ['1.50', 'null', '"q\\"}"', '"é,:\\\\"'];
const DEBRIS = ['{', '}', '[', ']', ':', ',', '"', '\\', ' ', 'é', '1', '{}', '"payload":', '"items":['];

function body(random: Random): string {
  const items = `"items":[${list(random, 1)}]`;
  const again = random.chance(0.5) ? `,"items":${value(random, 1)}` : '';
  return random.chance(0.5) ? value(random, 0) : `{${items},"payload":${value(random, 2)}${again}}`;
}

function value(random: Random, depth: number): string {
  if (random.chance(depth > 5 ? 0.9 : 0.4)) return random.pick(SCALARS);
  if (random.chance(0.4)) return `[${list(random, depth)}]`;
  const members = some(random).map(() => `${random.pick(NAMES)} :${value(random, depth + 1)}`);
  return `{${members.join(',')}}`;
}

function list(random: Random, depth: number): string {
  return some(random)
    .map(() => value(random, depth + 1))
    .join(' ,');
}

function some(random: Random): unknown[] {
  return Array.from({ length: Math.floor(random.between(0, 4)) });
}

function damaged(random: Random, text: string): string {
  let at = text;
  for (let times = Math.floor(random.between(0, 4)); times > 0; times -= 1) {
    const cut = Math.floor(random.between(0, at.length + 1));
    const put = random.chance(0.5) ? random.pick(DEBRIS) : '';
    at = at.slice(0, cut) + put + at.slice(cut + Math.floor(random.between(0, 3)));
  }
  return at;
}

/** In a box, since null is a value; null: it is none. */
function parsed(text: string): { value: unknown } | null {
  try {
    return { value: JSON.parse(text) };
  } catch {
    return null;
  }
}

function readOrRefused(text: string): JsonBody | null {
  try {
    const steps = readJsonBody(Buffer.from(text));
    for (;;) {
      const step = steps.next();
      if (step.done === true) return step.value;
    }
  } catch {
    return null;
  }
}

/** Takes them out, and leaves null. */
function takePayloads(whole: unknown): Record<string, unknown> {
  const items = isObject(whole) && Array.isArray(whole['items']) ? (whole['items'] as unknown[]) : [];
  const holders = [['', whole] as const, ...items.map((item, index) => [`/items/${index}`, item] as const)];
  const payloads: Record<string, unknown> = {};
  for (const [path, holder] of holders) {
    if (!isObject(holder)) continue;
    for (const name of path === '' ? ['payload', 'result'] : ['payload']) {
      if (!(name in holder)) continue;
      payloads[`${path}/${name}`] = holder[name];
      holder[name] = null;
    }
  }
  return payloads;
}
