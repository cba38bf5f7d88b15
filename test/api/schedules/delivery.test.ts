import { describe, expect, test } from 'vitest';
import type { HttpTarget } from '../../../src/core/schedules/schedule.ts';
import { opened } from '../../support/secrets.ts';
import { SCHEDULE, TARGET, faultPaths, sharedApi } from '../api.ts';
import { targetAt } from '../../support/targets.ts';

const api = sharedApi();

const put = (id: string, body: object) => api.call('PUT', `/api/v1/schedules/${id}`, body);
const patch = (id: string, body: object) => api.call('PATCH', `/api/v1/schedules/${id}`, body);
const get = (id: string) => api.call('GET', `/api/v1/schedules/${id}`);
const withTarget = (target: object) => ({ ...SCHEDULE, target: { ...TARGET, ...target } });
const withLookup = (lookup: unknown) => withTarget({ lookup });

async function stored(id: string) {
  const [row] = await api.sql<{ uid: string; delivery: unknown; target: HttpTarget }[]>`
    SELECT schedule_uid AS uid, definition->'delivery' AS delivery, definition->'target' AS target FROM schedule_versions
    WHERE schedule_id = ${id} ORDER BY version DESC LIMIT 1`;
  if (!row) return row;
  const { uid, delivery, target } = row;
  return { delivery, lookup: target.lookup && (opened(uid, target) as HttpTarget<string>).lookup };
}

describe('delivery', () => {
  test('is at least once by default, and null resets it', async () => {
    expect((await put('d', SCHEDULE)).body).toMatchObject({ delivery: 'atLeastOnce', version: 1 });
    expect((await stored('d'))?.delivery).toBe('atLeastOnce');
    const once = await put('d', { ...SCHEDULE, delivery: 'atMostOnce' });
    expect([once.status, once.body]).toMatchObject([200, { delivery: 'atMostOnce', version: 2 }]);
    expect((await stored('d'))?.delivery).toBe('atMostOnce');
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

describe('lookup', () => {
  const url = 'https://status.example/runs/{{runId}}?n={{attempt}}';

  test('is a GET without headers by default, and null if there is none', async () => {
    const { status, body } = await put('l', withLookup({ url }));
    expect(status).toBe(201);
    const lookup = { url, method: 'GET', headers: {} } as const;
    expect(body['target']).toEqual(targetAt(TARGET.url, { lookup }));
    expect((await stored('l'))?.lookup).toEqual({ url, method: 'GET', headers: {} });
    for (const without of [withLookup(null), withTarget({})]) {
      await put('l', withLookup({ url }));
      expect((await put('l', without)).body['target']).toHaveProperty('lookup', null);
      expect((await stored('l'))?.lookup).toBeNull();
    }
  });

  test('accepts the answer of GET as no change', async () => {
    const lookup = { url, method: 'POST', headers: { 'X-Key': 'k', Accept: 'application/json' } };
    const created = await put('l-echo', { ...withLookup(lookup), delivery: 'atMostOnce' });
    expect(created.body['target']).toHaveProperty('lookup.headers', { 'X-Key': '***', Accept: '***' });
    const echoed = await api.call('PUT', '/api/v1/schedules/l-echo', (await get('l-echo')).text);
    expect([echoed.status, echoed.body['version'], echoed.text]).toEqual([200, 1, created.text]);
    expect((await put('l-echo', { ...withLookup(lookup), delivery: 'atMostOnce' })).body['version']).toBe(1);
    expect((await patch('l-echo', { target: { lookup: {} } })).body['version']).toBe(1);
    expect((await patch('l-echo', { target: { lookup: { method: 'PUT' } } })).body['version']).toBe(2);
  });

  test('is checked as the target is, with the path of every fault', async () => {
    const lookup = {
      url: 'https://user:pw@example.com/{{runId}}',
      method: 'FETCH',
      headers: {
        'webhook-id': 'x',
        'a b': 'x',
        'X-Tpl': '{{nope}}',
        'X-Twice': '1',
        'x-twice': '2',
        'X-Ctl': 'a\nb',
      },
      body: 1,
    };
    const answer = await put('l-bad', {
      ...SCHEDULE,
      target: { type: 'http', url: 'ftp://x', headers: { Host: 'x' }, lookup },
      delivery: 'never',
    });
    expect([answer.status, faultPaths(answer)]).toEqual([
      400,
      [
        '/delivery',
        '/target/headers/Host',
        '/target/lookup/body',
        '/target/lookup/headers/X-Ctl',
        '/target/lookup/headers/X-Tpl',
        '/target/lookup/headers/a b',
        '/target/lookup/headers/webhook-id',
        '/target/lookup/headers/x-twice',
        '/target/lookup/method',
        '/target/lookup/url',
        '/target/url',
      ],
    ]);
  });

  test.each([
    [{}, ['/target/lookup/url']],
    [{ url: 'example.com' }, ['/target/lookup/url']],
    [{ url: 'https://{{runId}}.example/' }, ['/target/lookup/url']],
    [{ url: `https://example.com/${'x'.repeat(2048)}` }, ['/target/lookup/url']],
    [{ url, headers: { 'X-Long': 'x'.repeat(8193) } }, ['/target/lookup/headers/X-Long']],
    [{ url, headers: null }, ['/target/lookup/headers']],
    [{ url, method: null }, ['/target/lookup/method']],
    ['https://example.com', ['/target/lookup']],
    [[], ['/target/lookup']],
    [true, ['/target/lookup']],
  ])('cannot be %j', async (lookup, paths) => {
    const answer = await put('l-bad', withLookup(lookup));
    expect([answer.status, faultPaths(answer)]).toEqual([400, paths]);
  });

  test('has no lookup or secret of its own', async () => {
    const nested = await put('l-bad', withLookup({ url, secret: null, lookup: null }));
    expect(faultPaths(nested)).toEqual(['/target/lookup/lookup', '/target/lookup/secret']);
  });
});

describe('a merge patch of the lookup', () => {
  const lookup = { url: 'https://status.example/a', headers: { 'X-Key': 's3cret', 'X-Other': 'o' } };
  const kept = { url: lookup.url, method: 'GET', headers: lookup.headers };

  test('changes what it names, and keeps the rest', async () => {
    await put('p', withLookup(lookup));
    expect((await patch('p', { target: { lookup: { method: 'POST' } } })).status).toBe(200);
    expect((await stored('p'))?.lookup).toEqual({ ...kept, method: 'POST' });
    const headers = { 'x-KEY': 'new', 'X-Other': null, 'X-New': '{{runId}}' };
    const answer = await patch('p', {
      target: { lookup: { url: 'https://status.example/b', headers, method: null } },
    });
    expect(answer.status).toBe(200);
    expect((await stored('p'))?.lookup).toEqual({
      url: 'https://status.example/b',
      method: 'GET',
      headers: { 'x-KEY': 'new', 'X-New': '{{runId}}' },
    });
    await patch('p', { target: { lookup: { headers: null } } });
    expect((await stored('p'))?.lookup).toMatchObject({ headers: {} });
  });

  test('of the target or the schedule leaves it alone, even if the target moves', async () => {
    await put('p-alone', withLookup(lookup));
    expect((await patch('p-alone', { description: 'x' })).status).toBe(200);
    expect((await patch('p-alone', { target: { url: 'https://elsewhere.example/' } })).status).toBe(200);
    expect((await stored('p-alone'))?.lookup).toEqual(kept);
  });

  test('adds one, removes it, and needs its url', async () => {
    await put('p-none', SCHEDULE);
    const partial = await patch('p-none', { target: { lookup: { headers: { A: 'b' } } } });
    expect([partial.status, faultPaths(partial)]).toEqual([400, ['/target/lookup/url']]);
    expect((await patch('p-none', { target: { lookup } })).status).toBe(200);
    expect((await stored('p-none'))?.lookup).toEqual(kept);
    const urlless = await patch('p-none', { target: { lookup: { url: null } } });
    expect([urlless.status, faultPaths(urlless)]).toEqual([400, ['/target/lookup/url']]);
    const removed = await patch('p-none', { target: { lookup: null } });
    expect(removed.body['target']).toHaveProperty('lookup', null);
    expect((await stored('p-none'))?.lookup).toBeNull();
  });

  test('names every fault', async () => {
    await put('p-bad', withLookup(lookup));
    const answer = await patch('p-bad', {
      target: { lookup: { url: 'x', method: 'y', headers: { A: 1 }, nope: 1 } },
    });
    expect([answer.status, faultPaths(answer)]).toEqual([
      400,
      ['headers/A', 'method', 'nope', 'url'].map((name) => `/target/lookup/${name}`),
    ]);
    const merged = await patch('p-bad', { target: { lookup: { headers: { Host: 'x', B: '{{nope}}' } } } });
    expect(faultPaths(merged)).toEqual(['/target/lookup/headers/B', '/target/lookup/headers/Host']);
  });
});

describe('header values of the lookup', () => {
  const headers = { 'X-Key': 's3cret', 'X-Other': 'o' };
  const secret = withLookup({ url: 'https://status.example/a', headers });
  const storedHeaders = async (id: string) =>
    ((await stored(id))?.lookup as { headers: object } | null | undefined)?.headers;

  test('are never answered', async () => {
    for (const answer of [
      await put('masked', secret),
      await get('masked'),
      await patch('masked', { description: 'x' }),
      await api.call('GET', '/api/v1/schedules?q=masked'),
    ]) {
      expect(answer.text).not.toContain('s3cret');
      expect(answer.text).toContain('"X-Key":"***"');
    }
    expect(await storedHeaders('masked')).toEqual(headers);
  });

  test('sent back masked are kept while the origin of its own URL is', async () => {
    await put('keep', secret);
    const moved = { type: 'http', url: 'https://other.example/' };
    const lookup = { url: 'https://status.example/b?x', headers: { 'x-key': '***', 'X-New': 'n' } };
    expect((await put('keep', { ...SCHEDULE, target: { ...moved, lookup } })).status).toBe(200);
    expect(await storedHeaders('keep')).toEqual({ 'x-key': 's3cret', 'X-New': 'n' });
    const patched = await patch('keep', {
      target: { lookup: { headers: { 'X-KEY': '***', 'X-New': null } } },
    });
    expect(patched.status).toBe(200);
    expect(await storedHeaders('keep')).toEqual({ 'X-KEY': 's3cret' });
  });

  test('go to no other origin, and not from the target to its lookup or back', async () => {
    await put('origin', secret);
    const paths = ['/target/lookup/headers/X-Key', '/target/lookup/headers/X-Other'];
    for (const url of ['https://evil.example/a', 'http://status.example/a', 'https://status.example:444/a']) {
      const masked = { 'X-Key': '***', 'X-Other': '***' };
      const answer = await put('origin', withLookup({ url, headers: masked }));
      expect([answer.status, faultPaths(answer)]).toEqual([400, paths]);
      const patched = await patch('origin', { target: { lookup: { url } } });
      expect([patched.status, faultPaths(patched)]).toEqual([400, paths]);
    }
    const swapped = { type: 'http', url: 'https://status.example/a', headers: { 'X-Key': '***' } };
    const answer = await put('origin', { ...SCHEDULE, target: swapped });
    expect([answer.status, faultPaths(answer)]).toEqual([400, ['/target/headers/X-Key']]);
    expect(await storedHeaders('origin')).toEqual(headers);
    const given = { url: 'https://evil.example/a', headers: { 'X-Key': 'new', 'X-Other': null } };
    expect((await patch('origin', { target: { lookup: given } })).status).toBe(200);
    expect(await storedHeaders('origin')).toEqual({ 'X-Key': 'new' });
  });

  test('that are masked without a stored value are refused, next to those of the target', async () => {
    const target = {
      headers: { A: '***' },
      lookup: { url: 'https://status.example/', headers: { B: '***', C: 'c' } },
    };
    const both = ['/target/headers/A', '/target/lookup/headers/B'];
    const created = await put('no-mask', withTarget(target));
    expect([created.status, faultPaths(created)]).toEqual([400, both]);
    const batch = await api.call('POST', '/api/v1/schedules/batch', {
      items: [{ id: 'no-mask', ...withTarget(target) }],
    });
    expect([batch.status, faultPaths(batch)]).toEqual([400, both.map((path) => `/items/0${path}`)]);
    await put('no-mask', withLookup(null));
    const patched = await patch('no-mask', { target: { lookup: target.lookup } });
    expect([patched.status, faultPaths(patched)]).toEqual([400, ['/target/lookup/headers/B']]);
  });
});
