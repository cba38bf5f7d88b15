import { beforeEach, describe, expect, test } from 'vitest';
import { targetAt } from '../../support/targets.ts';
import { opened } from '../../support/secrets.ts';
import { SCHEDULE, TARGET, faultPaths, sharedApi, errorsOf } from '../api.ts';

const api = sharedApi();

const put = (id: string, body: object | string) => api.call('PUT', `/api/v1/schedules/${id}`, body);
const patch = (id: string, body: object) => api.call('PATCH', `/api/v1/schedules/${id}`, body);
const get = (id: string) => api.call('GET', `/api/v1/schedules/${id}`);
const withTarget = (target: object) => ({ ...SCHEDULE, target });
const PULL = { type: 'pull', queue: 'reports' };

async function stored(id: string) {
  const [row] = await api.sql<{ uid: string; target: object; lane: string }[]>`
    SELECT s.uid, v.definition->'target' AS target, s.lane FROM schedules s
    JOIN schedule_versions v ON v.schedule_uid = s.uid AND v.version = s.version WHERE s.id = ${id}`;
  if (!row) return row;
  const target = { ...opened(row.uid, row.target) } as Record<string, unknown>;
  return { target, lane: row.lane };
}

describe('a pull target', () => {
  test('consists of its queue, and the answer of GET can be sent back', async () => {
    const created = await put('p', {
      ...withTarget(PULL),
      retry: { maxAttempts: 2 },
      delivery: 'atMostOnce',
    });
    expect([created.status, created.body['target']]).toEqual([201, PULL]);
    expect(await stored('p')).toEqual({ target: PULL, lane: 'pull reports' });
    const again = await put('p', (await get('p')).text);
    expect([again.status, again.body['version'], again.text]).toEqual([200, 1, created.text]);
    expect((await patch('p', { target: { queue: 'reports' } })).body['version']).toBe(1);
    const moved = await patch('p', { target: { queue: 'other' } });
    expect([moved.body['version'], moved.body['target']]).toEqual([2, { type: 'pull', queue: 'other' }]);
    expect((await stored('p'))?.lane).toBe('pull other');
  });

  test.each(['a', 'A.b_c-9', '-', '..', 'x'.repeat(128)])('may have the queue %s', async (queue) => {
    expect((await put('q', withTarget({ type: 'pull', queue }))).body['target']).toEqual({
      type: 'pull',
      queue,
    });
  });

  test.each(['', 'a/b', 'a b', 'é', 'x'.repeat(129), 'a\n', null, 5, ['a']])(
    'cannot have the queue %j',
    async (queue) => {
      const answer = await put('q-bad', withTarget({ type: 'pull', queue }));
      expect([answer.status, faultPaths(answer)]).toEqual([400, ['/target/queue']]);
    },
  );

  test('needs its queue', async () => {
    const answer = await put('q-bad', withTarget({ type: 'pull' }));
    expect(errorsOf(answer)).toEqual([{ path: '/target/queue', message: 'is required' }]);
  });

  test('has no field of an http target, and the other way round, each named', async () => {
    const { url } = TARGET;
    const call = { url };
    const more = {
      url,
      method: 'POST',
      headers: {},
      body: 'payload',
      outcome: null,
      lookup: call,
      cancel: call,
      secret: null,
    };
    const pull = await put('q-bad', withTarget({ ...PULL, ...more }));
    expect(faultPaths(pull)).toEqual(
      ['body', 'cancel', 'headers', 'lookup', 'method', 'outcome', 'secret', 'url'].map((name) => `/target/${name}`),
    );
    const queued = await put('q-bad', { ...withTarget({ ...TARGET, queue: 'q' }), delivery: 'x' });
    expect([queued.status, faultPaths(queued)]).toEqual([400, ['/delivery', '/target/queue']]);
    expect(queued.text).toContain('is not a field of a target of type \\"http\\"');
  });

  test('comes in a batch as well', async () => {
    const items = [
      { id: 'batch-pull', ...withTarget(PULL) },
      { id: 'batch-http', ...withTarget({ ...TARGET, queue: 'q' }) },
    ];
    const refused = await api.call('POST', '/api/v1/schedules/batch', { items });
    expect(faultPaths(refused)).toEqual(['/items/1/target/queue']);
    const taken = await api.call('POST', '/api/v1/schedules/batch', { items: items.slice(0, 1) });
    expect(taken.status).toBe(200);
    expect((await stored('batch-pull'))?.lane).toBe('pull reports');
  });
});

test.each([
  [{}, 'is required: "http" or "pull"'],
  [{ url: 'https://example.com' }, 'is required: "http" or "pull"'],
  [{ type: 'sqs', queue: 'q' }, 'must be "http" or "pull"'],
  [{ type: null }, 'must be "http" or "pull"'],
])('what %j is nobody knows', async (target, message) => {
  expect(errorsOf(await put('no-type', withTarget(target)))).toEqual([{ path: '/target/type', message }]);
});

describe('a merge patch of the target', () => {
  const http = {
    ...TARGET,
    method: 'PUT',
    headers: { 'X-Key': 's3cret' },
    lookup: { url: 'https://status.example/' },
    cancel: { url: 'https://status.example/off' },
  };

  test('to the other type replaces it completely, there and back', async () => {
    await put('kind', withTarget(http));
    const pulled = await patch('kind', { target: PULL });
    expect([pulled.status, pulled.body['target']]).toEqual([200, PULL]);
    expect(await stored('kind')).toEqual({ target: PULL, lane: 'pull reports' });
    const back = await patch('kind', { target: { ...TARGET, headers: { A: 'b' } } });
    expect(back.status).toBe(200);
    expect(await stored('kind')).toMatchObject({
      target: targetAt(TARGET.url, { headers: { A: 'b' } }),
      lane: 'http https://example.com',
    });
  });

  test('to the other type may remove the old fields by name, as in RFC 7396', async () => {
    await put('kind-null', withTarget(http));
    const nulls = { url: null, method: null, headers: null, lookup: null, cancel: null };
    const pulled = await patch('kind-null', { target: { ...PULL, ...nulls } });
    expect([pulled.status, pulled.body['target']]).toEqual([200, PULL]);
    const back = await patch('kind-null', { target: { ...TARGET, queue: null } });
    expect([back.status, back.body['target']]).toMatchObject([200, TARGET]);
  });

  test('to the other type needs the fields of that type, and keeps no masked header', async () => {
    await put('kind-bad', withTarget(http));
    expect(errorsOf(await patch('kind-bad', { target: { type: 'pull' } }))).toEqual([
      { path: '/target/queue', message: 'is required' },
    ]);
    await patch('kind-bad', { target: PULL });
    expect(faultPaths(await patch('kind-bad', { target: { type: 'http' } }))).toEqual(['/target/url']);
    const masked = await patch('kind-bad', { target: { ...TARGET, headers: { 'X-Key': '***' } } });
    expect(errorsOf(masked)).toEqual([
      { path: '/target/headers/X-Key', message: 'is "***", but there is no stored value to keep' },
    ]);
    expect(await stored('kind-bad')).toMatchObject({ target: PULL });
  });

  test('does not mix the types', async () => {
    await put('mixed', withTarget(http));
    expect(faultPaths(await patch('mixed', { target: { queue: 'q' } }))).toEqual(['/target/queue']);
    const named = await patch('mixed', { target: { type: 'pull', queue: 'q', url: TARGET.url } });
    expect(errorsOf(named)).toEqual([{ path: '/target/url', message: 'is not a field of a target of type "pull"' }]);
    await put('mixed', withTarget(PULL));
    const other = await patch('mixed', { target: { method: 'GET', headers: { A: 'b' } } });
    expect(faultPaths(other)).toEqual(['/target/headers', '/target/method']);
    expect((await patch('mixed', { target: { headers: null, queue: 'r' } })).status).toBe(200);
    expect(faultPaths(await patch('mixed', { target: { queue: null } }))).toEqual(['/target/queue']);
    expect(faultPaths(await patch('mixed', { target: { type: 5, queue: 7, constructor: 1 } }))).toEqual([
      '/target/constructor',
      '/target/queue',
      '/target/type',
    ]);
  });
});

/** Calls of a target beside its own: the one that asks what became of a run, and the one that tells of a cancellation. */
describe.each([
  ['lookup', 'GET'],
  ['cancel', 'POST'],
] as const)('%s', (name, method) => {
  const url = 'https://status.example/runs/{{runId}}?n={{attempt}}';
  const withCall = (call: unknown) => withTarget({ ...TARGET, [name]: call });
  const patchCall = (id: string, call: unknown) => patch(id, { target: { [name]: call } });
  const storedCall = async (id: string) => (await stored(id))?.target[name];
  const paths = (...fields: string[]) => fields.map((field) => `/target/${name}${field}`);
  const call = { url: 'https://status.example/a', headers: { 'X-Key': 's3cret', 'X-Other': 'o' } };
  const kept = { ...call, method };

  test(`is a ${method} without headers by default, and null if there is none`, async () => {
    const plain = { url, method, headers: {} };
    for (const without of [withCall(null), withTarget(TARGET)]) {
      const created = await put('plain', withCall({ url }));
      expect(created.body['target']).toEqual(targetAt(TARGET.url, { [name]: plain }));
      expect(await storedCall('plain')).toEqual(plain);
      expect((await put('plain', without)).body['target']).toHaveProperty(name, null);
      expect(await storedCall('plain')).toBeNull();
    }
  });

  test('accepts the answer of GET as no change', async () => {
    await api.call('DELETE', '/api/v1/schedules/echo');
    const sent = { ...withCall({ ...kept, url }), delivery: 'atMostOnce' };
    const created = await put('echo', sent);
    expect(created.body['target']).toHaveProperty(`${name}.headers`, { 'X-Key': '***', 'X-Other': '***' });
    const echoed = await put('echo', (await get('echo')).text);
    expect([echoed.status, echoed.body['version'], echoed.text]).toEqual([200, 1, created.text]);
    expect((await put('echo', sent)).body['version']).toBe(1);
    expect((await patchCall('echo', {})).body['version']).toBe(1);
    expect((await patchCall('echo', { method: 'PUT' })).body['version']).toBe(2);
  });

  test('is checked as the target is, with the path of every fault', async () => {
    const headers = {
      ...{ 'webhook-id': 'x', 'a b': 'x', 'X-Tpl': '{{nope}}', 'X-Ctl': 'a\nb' },
      ...{ 'X-Twice': '1', 'x-twice': '2' },
    };
    const wrong = { url: 'https://user:pw@example.com/{{runId}}', method: 'FETCH', headers, body: 1 };
    const target = { type: 'http', url: 'ftp://x', headers: { Host: 'x' }, [name]: wrong };
    const answer = await put('bad', { ...SCHEDULE, target, delivery: 'never' });
    const faulty = ['X-Ctl', 'X-Tpl', 'a b', 'webhook-id', 'x-twice'].map((one) => `/headers/${one}`);
    expect([answer.status, faultPaths(answer)]).toEqual([
      400,
      [...['/delivery', '/target/headers/Host', '/target/url'], ...paths('/body', ...faulty, '/method', '/url')].sort(),
    ]);
  });

  test.each<[unknown, string[]]>([
    [{}, ['/url']],
    [{ url: 'example.com' }, ['/url']],
    [{ url: 'https://{{runId}}.example/' }, ['/url']],
    [{ url: `https://example.com/${'x'.repeat(2048)}` }, ['/url']],
    [{ url, headers: { 'X-Long': 'x'.repeat(8193) } }, ['/headers/X-Long']],
    [{ url, headers: null }, ['/headers']],
    [{ url, method: null }, ['/method']],
    [{ url, secret: null, lookup: null }, ['/lookup', '/secret']],
    ['https://example.com', ['']],
    [[], ['']],
    [true, ['']],
  ])('cannot be %j', async (wrong, fields) => {
    const answer = await put('bad', withCall(wrong));
    expect([answer.status, faultPaths(answer)]).toEqual([400, paths(...fields)]);
  });

  test('is changed by a merge patch, which keeps the rest', async () => {
    await put('p', withCall(call));
    expect((await patchCall('p', { method: 'PUT' })).status).toBe(200);
    expect(await storedCall('p')).toEqual({ ...kept, method: 'PUT' });
    const headers = { 'x-KEY': 'new', 'X-Other': null, 'X-New': '{{runId}}' };
    const moved = await patchCall('p', { url: 'https://status.example/b', headers, method: null });
    expect(moved.status).toBe(200);
    expect(await storedCall('p')).toEqual({
      ...{ url: 'https://status.example/b', method, headers: { 'x-KEY': 'new', 'X-New': '{{runId}}' } },
    });
    await patchCall('p', { headers: null });
    expect(await storedCall('p')).toMatchObject({ headers: {} });
  });

  test('is left alone by a patch of the target or the schedule, even if the target moves', async () => {
    await put('p-alone', withCall(call));
    for (const change of [{ description: 'x' }, { target: { url: 'https://elsewhere.example/' } }])
      expect((await patch('p-alone', change)).status).toBe(200);
    expect(await storedCall('p-alone')).toEqual(kept);
  });

  test('is added and removed by a patch, and needs its url', async () => {
    await put('p-none', SCHEDULE);
    expect(faultPaths(await patchCall('p-none', { headers: { A: 'b' } }))).toEqual(paths('/url'));
    expect((await patchCall('p-none', call)).status).toBe(200);
    expect(await storedCall('p-none')).toEqual(kept);
    expect(faultPaths(await patchCall('p-none', { url: null }))).toEqual(paths('/url'));
    expect((await patchCall('p-none', null)).body['target']).toHaveProperty(name, null);
    expect(await storedCall('p-none')).toBeNull();
  });

  test('is refused with every fault of a patch', async () => {
    await put('p-bad', withCall(call));
    const answer = await patchCall('p-bad', { url: 'x', method: 'y', headers: { A: 1 }, nope: 1 });
    expect([answer.status, faultPaths(answer)]).toEqual([400, paths('/headers/A', '/method', '/nope', '/url')]);
    const merged = await patchCall('p-bad', { headers: { Host: 'x', B: '{{nope}}' } });
    expect(faultPaths(merged)).toEqual(paths('/headers/B', '/headers/Host'));
  });
});

const CALLS = [
  ['a target', '/target', (call: object) => ({ ...TARGET, ...call })],
  ['a lookup', '/target/lookup', (lookup: object) => ({ ...TARGET, lookup })],
  ['a cancel', '/target/cancel', (cancel: object) => ({ ...TARGET, cancel })],
] as const;

describe.each(CALLS)('header values of %s', (_what, path, within) => {
  const secret = { url: 'https://status.example/a', headers: { 'X-Key': 's3cret', 'X-Other': 'o' } };
  const [, , name = 'own'] = path.split('/');
  const id = `headers-${name}`;
  const putCall = (call: object) => put(id, withTarget(within(call)));
  const patchCall = (call: object) => patch(id, { target: name === 'own' ? call : { [name]: call } });
  const at = (...names: string[]) => names.map((one) => `${path}/headers/${one}`);
  const storedHeaders = async () => {
    const target = (await stored(id))?.target;
    return (name === 'own' ? target : (target?.[name] as Record<string, unknown>))?.['headers'];
  };
  beforeEach(async () => {
    await api.call('DELETE', `/api/v1/schedules/${id}`);
    expect((await putCall(secret)).status).toBe(201);
  });

  test('are never answered', async () => {
    for (const answer of [
      await putCall(secret),
      await get(id),
      await patch(id, { description: 'x' }),
      await api.call('GET', `/api/v1/schedules?q=${id}`),
    ]) {
      expect(answer.text).not.toContain('s3cret');
      expect(answer.text).toContain('"X-Key":"***"');
    }
    expect(await storedHeaders()).toEqual(secret.headers);
  });

  test('that are sent back masked are kept, in any letter case of the name, also if the path changes', async () => {
    const masked = { url: 'https://status.example/b?x', headers: { 'x-key': '***', 'X-New': 'n' } };
    expect((await putCall(masked)).status).toBe(200);
    expect(await storedHeaders()).toEqual({ 'x-key': 's3cret', 'X-New': 'n' });
    expect((await patchCall({ headers: { 'X-KEY': '***', 'X-New': null } })).status).toBe(200);
    expect(await storedHeaders()).toEqual({ 'X-KEY': 's3cret' });
  });

  test('go to no other origin, nor from one call of the target to another: they must be given again', async () => {
    for (const url of ['https://evil.example/a', 'http://status.example/a', 'https://status.example:444/a']) {
      const moved = await putCall({ url, headers: { 'X-Key': '***', 'X-Other': 'o' } });
      expect([moved.status, faultPaths(moved)]).toEqual([400, at('X-Key')]);
      const patched = await patchCall({ url });
      expect([patched.status, faultPaths(patched)]).toEqual([400, at('X-Key', 'X-Other')]);
    }
    for (const [, other, place] of CALLS.filter((one) => one[1] !== path)) {
      const swapped = await put(id, withTarget(place({ ...secret, headers: { 'X-Key': '***' } })));
      expect([swapped.status, faultPaths(swapped)]).toEqual([400, [`${other}/headers/X-Key`]]);
    }
    expect(await storedHeaders()).toEqual(secret.headers);
    const given = { url: 'https://evil.example/a', headers: { 'X-Key': 'new', 'X-Other': null } };
    expect((await patchCall(given)).status).toBe(200);
    expect(await storedHeaders()).toEqual({ 'X-Key': 'new' });
  });

  test('that are masked without a stored value are refused, in PUT, PATCH and batch, and nothing is stored', async () => {
    const never = { url: secret.url, headers: { A: '***', B: 'b' } };
    for (const answer of [await putCall(never), await patchCall(never)])
      expect([answer.status, faultPaths(answer)]).toEqual([400, at('A')]);
    const items = [
      { id: 'no-mask', ...withTarget(within(never)) },
      { id: 'fine', ...SCHEDULE },
    ];
    const batch = await api.call('POST', '/api/v1/schedules/batch', { items });
    expect([batch.status, faultPaths(batch)]).toEqual([400, at('A').map((one) => `/items/0${one}`)]);
    expect((await get('fine')).status).toBe(404);
  });
});

describe('the hostname of a URL', () => {
  const of = (length: number) => 'a'.repeat(length);
  const longest = [of(63), of(63), of(63), of(61)].join('.');
  /** No two alike, so that in ASCII it is three times as long. */
  const cjk = (length: number) =>
    Array.from({ length }, (_, n) => String.fromCodePoint(0x4e00 + ((n * 7919) % 20_000))).join('');
  const TOO_LONG = [
    ['two thousand CJK characters', cjk(2000)],
    ['CJK characters that fit, and do not in ASCII', [cjk(15), cjk(16), cjk(17), cjk(18), cjk(19)].join('.')],
    ['254 characters', `${longest}a`],
    ['254 characters and the dot of the root', `${longest}a.`],
  ] as const;
  const LONG_LABEL = [
    ['a label of 64 characters', `${of(64)}.example`],
    ['a CJK label that is longer than 63 in ASCII', `${cjk(30)}.example`],
    ['a last label of 64 characters and the dot of the root', `example.${of(64)}.`],
  ] as const;
  const FIELDS = [
    ['/target/url', (url: string) => ({ ...TARGET, url })],
    ['/target/lookup/url', (url: string) => ({ ...TARGET, lookup: { url } })],
    ['/target/cancel/url', (url: string) => ({ ...TARGET, cancel: { url } })],
  ] as const;
  const rows = async () => {
    const [row] = await api.sql<{ count: number }[]>`SELECT (SELECT count(*) FROM schedules)::int
      + (SELECT count(*) FROM schedule_versions)::int + (SELECT count(*) FROM all_runs)::int
      + (SELECT count(*) FROM run_keys)::int AS count`;
    return row?.count;
  };

  describe.each(FIELDS)('%s', (path, target) => {
    test.each([...TOO_LONG, ...LONG_LABEL])('cannot have %s: 400, and nothing is stored', async (_name, host) => {
      await put('host', withTarget(TARGET));
      const before = await rows();
      const bad = target(`https://${host}/x`);
      const limit = TOO_LONG.some(([, long]) => long === host) ? '253' : '63';
      const answers = [
        await put('host', withTarget(bad)),
        await put('new-host', withTarget(bad)),
        await patch('host', { target: bad }),
        await api.call('POST', '/api/v1/runs', { target: bad, key: 'host' }),
      ];
      for (const answer of answers) {
        expect([answer.status, faultPaths(answer)]).toEqual([400, [path]]);
        expect(errorsOf(answer)[0]?.message).toContain(limit);
      }
      const batches = [
        await api.call('POST', '/api/v1/schedules/batch', { items: [{ id: 'host', ...withTarget(bad) }] }),
        await api.call('POST', '/api/v1/runs/batch', { items: [{ ref: 'a', target: bad }] }),
      ];
      for (const answer of batches) expect([answer.status, faultPaths(answer)]).toEqual([400, [`/items/0${path}`]]);
      expect(await rows()).toBe(before);
      expect((await get('host')).body).toMatchObject({ version: 1 });
      expect((await get('new-host')).status).toBe(404);
    });
  });

  test.each([
    longest,
    `${longest}.`,
    `${of(63)}.example`,
    '[2001:db8::1]:65535',
    'bücher.example',
    `${cjk(15)}.example:8443`,
  ])('may be %s, and its runs can be recorded', async (host) => {
    const url = `https://${host}/{{runId}}`;
    const call = { url };
    const written = await put('fits', withTarget({ ...TARGET, url, lookup: call, cancel: call }));
    expect([written.status < 300, written.text]).toEqual([true, expect.any(String)]);
    const lane = (await stored('fits'))?.lane ?? '';
    expect(Buffer.byteLength(lane)).toBeLessThanOrEqual(200);
    const fired = await api.call('POST', '/api/v1/schedules/fits/fire');
    expect([fired.status, fired.text]).toEqual([202, expect.any(String)]);
    const runs = await api.sql`SELECT lane FROM runs WHERE id = ${fired.body['id'] as unknown as string}`;
    expect(runs).toEqual([{ lane }]);
  });
});

describe('delivery', () => {
  const storedDelivery = async (id: string) => {
    const [row] = await api.sql<{ delivery: unknown }[]>`SELECT definition->'delivery' AS delivery
      FROM schedule_versions WHERE schedule_id = ${id} ORDER BY version DESC LIMIT 1`;
    return row?.delivery;
  };

  test('is at least once by default, and null resets it', async () => {
    expect((await put('d', SCHEDULE)).body).toMatchObject({ delivery: 'atLeastOnce', version: 1 });
    expect(await storedDelivery('d')).toBe('atLeastOnce');
    const once = await put('d', { ...SCHEDULE, delivery: 'atMostOnce' });
    expect([once.status, once.body]).toMatchObject([200, { delivery: 'atMostOnce', version: 2 }]);
    expect(await storedDelivery('d')).toBe('atMostOnce');
    expect((await patch('d', { description: 'x' })).body).toMatchObject({ delivery: 'atMostOnce' });
    expect((await patch('d', { delivery: null })).body).toMatchObject({ delivery: 'atLeastOnce' });
    expect((await patch('d', { delivery: 'atMostOnce' })).body).toMatchObject({ delivery: 'atMostOnce' });
    expect((await get('d')).body).toMatchObject({ delivery: 'atMostOnce' });
    expect((await put('d', SCHEDULE)).body).toMatchObject({ delivery: 'atLeastOnce', version: 6 });
  });

  test.each(['exactlyOnce', 'ATMOSTONCE', '', true, 1, ['atMostOnce']])('cannot be %j', async (delivery) => {
    await put('d', SCHEDULE);
    for (const answer of [await put('d', { ...SCHEDULE, delivery }), await patch('d', { delivery })]) {
      expect([answer.status, faultPaths(answer)]).toEqual([400, ['/delivery']]);
    }
  });

  test('comes in a batch as well', async () => {
    const items = [
      { id: 'batch-once', ...SCHEDULE, delivery: 'atMostOnce' },
      { id: 'batch-default', ...SCHEDULE },
    ];
    expect((await api.call('POST', '/api/v1/schedules/batch', { items })).status).toBe(200);
    expect((await get('batch-once')).body['delivery']).toBe('atMostOnce');
    expect((await get('batch-default')).body['delivery']).toBe('atLeastOnce');
    const bad = {
      items: [
        { id: 'x', ...SCHEDULE },
        { id: 'y', ...SCHEDULE, delivery: 'never' },
      ],
    };
    expect(faultPaths(await api.call('POST', '/api/v1/schedules/batch', bad))).toEqual(['/items/1/delivery']);
  });
});

describe('completion', () => {
  test('may be by callback, within a time that is answered', async () => {
    const callback = { ...SCHEDULE, completion: 'callback', completionTimeoutSeconds: 1.5 };
    const created = await put('cb', callback);
    expect([created.status, created.body]).toMatchObject([
      201,
      { completion: 'callback', completionTimeoutSeconds: 1.5 },
    ]);
    expect((await put('cb', created.text)).body['version']).toBe(1);
    const longest = await patch('cb', { completionTimeoutSeconds: 31 * 86_400 });
    expect(longest.body).toMatchObject({ completion: 'callback', completionTimeoutSeconds: 2_678_400 });
    const reset = await patch('cb', { completion: null, completionTimeoutSeconds: null });
    expect(reset.body).toMatchObject({ completion: 'response', completionTimeoutSeconds: 3600 });
  });

  test.each<[object, string[]]>([
    [{ completion: 'poll' }, ['/completion']],
    [{ completion: true, completionTimeoutSeconds: 0 }, ['/completion', '/completionTimeoutSeconds']],
    [{ completionTimeoutSeconds: 0.5 }, ['/completionTimeoutSeconds']],
    [{ completionTimeoutSeconds: 31 * 86_400 + 1 }, ['/completionTimeoutSeconds']],
    [{ completionTimeoutSeconds: '60' }, ['/completionTimeoutSeconds']],
  ])('cannot be %j', async (fields, paths) => {
    await put('cb-bad', SCHEDULE);
    for (const answer of [await put('cb-bad', { ...SCHEDULE, ...fields }), await patch('cb-bad', fields)]) {
      expect([answer.status, faultPaths(answer)]).toEqual([400, paths]);
    }
  });
});

describe('the reason of a pause', () => {
  const paused = { ...SCHEDULE, enabled: false, pauseReason: 'until the move' };

  test('stays until the schedule is resumed, by whichever edit', async () => {
    const created = await put('pause', paused);
    expect(created.body).toMatchObject({ status: 'paused', pauseReason: 'until the move' });
    expect((await api.call('GET', '/api/v1/schedules?q=pause')).body['items']).toMatchObject([
      { id: 'pause', pauseReason: 'until the move' },
    ]);
    expect((await put('pause', created.text)).body['version']).toBe(1);
    expect((await patch('pause', { description: 'x' })).body['pauseReason']).toBe('until the move');
    const resumed = await patch('pause', { enabled: true });
    expect([resumed.status, resumed.body]).toMatchObject([200, { status: 'active', pauseReason: null }]);
    await patch('pause', { enabled: false, pauseReason: 'again' });
    const edited = JSON.stringify({ ...(await get('pause')).body, enabled: true });
    expect((await put('pause', edited)).body).toMatchObject({ enabled: true, pauseReason: null });
    expect((await patch('pause', { enabled: false })).body).toMatchObject({ pauseReason: null });
  });

  test('is not kept if the schedule is not paused, and makes no new version', async () => {
    await put('running', SCHEDULE);
    const same = await put('running', { ...SCHEDULE, pauseReason: 'none' });
    expect([same.status, same.body]).toMatchObject([200, { version: 1, pauseReason: null }]);
    expect((await patch('running', { pauseReason: 'none' })).body).toMatchObject({ version: 1 });
  });

  test.each([5, ['x'], 'x'.repeat(1001)])('cannot be %j', async (pauseReason) => {
    for (const enabled of [true, false]) {
      const answer = await put('pause-bad', { ...SCHEDULE, enabled, pauseReason });
      expect([answer.status, faultPaths(answer)]).toEqual([400, ['/pauseReason']]);
    }
  });

  test('is as long as a description, and part of each version', async () => {
    const pauseReason = '🧯'.repeat(1000);
    expect((await put('pause-long', { ...paused, pauseReason })).body['pauseReason']).toBe(pauseReason);
    const versions = await api.call('GET', '/api/v1/schedules/pause-long/versions');
    expect(versions.body['items']).toMatchObject([{ schedule: { pauseReason, target: { cancel: null } } }]);
  });
});
