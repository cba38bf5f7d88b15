import { describe, expect, test } from 'vitest';
import { targetAt } from '../../support/targets.ts';
import { opened } from '../../support/secrets.ts';
import { type Answer, SCHEDULE, TARGET, faultPaths, sharedApi } from '../api.ts';

const api = sharedApi();

const put = (id: string, body: object | string) => api.call('PUT', `/api/v1/schedules/${id}`, body);
const patch = (id: string, body: object) => api.call('PATCH', `/api/v1/schedules/${id}`, body);
const get = (id: string) => api.call('GET', `/api/v1/schedules/${id}`);
const withTarget = (target: object) => ({ ...SCHEDULE, target });
const faultsOf = (answer: Answer) => answer.body['errors'] as unknown as { path: string; message: string }[];
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
    expect(faultsOf(answer)).toEqual([{ path: '/target/queue', message: 'is required' }]);
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
      ['body', 'cancel', 'headers', 'lookup', 'method', 'outcome', 'secret', 'url'].map(
        (name) => `/target/${name}`,
      ),
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
  expect(faultsOf(await put('no-type', withTarget(target)))).toEqual([{ path: '/target/type', message }]);
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
    expect(faultsOf(await patch('kind-bad', { target: { type: 'pull' } }))).toEqual([
      { path: '/target/queue', message: 'is required' },
    ]);
    await patch('kind-bad', { target: PULL });
    expect(faultPaths(await patch('kind-bad', { target: { type: 'http' } }))).toEqual(['/target/url']);
    const masked = await patch('kind-bad', { target: { ...TARGET, headers: { 'X-Key': '***' } } });
    expect(faultsOf(masked)).toEqual([
      { path: '/target/headers/X-Key', message: 'is "***", but there is no stored value to keep' },
    ]);
    expect(await stored('kind-bad')).toMatchObject({ target: PULL });
  });

  test('does not mix the types', async () => {
    await put('mixed', withTarget(http));
    expect(faultPaths(await patch('mixed', { target: { queue: 'q' } }))).toEqual(['/target/queue']);
    const named = await patch('mixed', { target: { type: 'pull', queue: 'q', url: TARGET.url } });
    expect(faultsOf(named)).toEqual([
      { path: '/target/url', message: 'is not a field of a target of type "pull"' },
    ]);
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

describe('cancel', () => {
  const url = 'https://status.example/runs/{{runId}}/off?n={{attempt}}';
  const withCancel = (cancel: unknown) => withTarget({ ...TARGET, cancel });

  test('is a POST without headers by default, and null if there is none', async () => {
    const created = await put('c', withCancel({ url }));
    const plain = { url, method: 'POST', headers: {} };
    expect([created.status, created.body['target']]).toMatchObject([201, { lookup: null, cancel: plain }]);
    expect((await stored('c'))?.target['cancel']).toEqual(plain);
    expect((await patch('c', { target: { cancel: { method: 'DELETE' } } })).body).toMatchObject({
      target: { cancel: { ...plain, method: 'DELETE' } },
      version: 2,
    });
    expect((await patch('c', { target: { cancel: null } })).body).toMatchObject({ target: { cancel: null } });
    expect((await stored('c'))?.target['cancel']).toBeNull();
  });

  test.each([
    [{}, ['/target/cancel/url']],
    [{ url: 'example.com' }, ['/target/cancel/url']],
    [{ url, method: 'FETCH', body: 1 }, ['/target/cancel/body', '/target/cancel/method']],
    [
      { url, headers: { Host: 'x', 'X-T': '{{no}}' } },
      ['/target/cancel/headers/Host', '/target/cancel/headers/X-T'],
    ],
    ['https://example.com', ['/target/cancel']],
  ])('cannot be %j', async (cancel, paths) => {
    const answer = await put('c-bad', withCancel(cancel));
    expect([answer.status, faultPaths(answer)]).toEqual([400, paths]);
  });

  test('keeps its masked header values for itself and its own origin', async () => {
    const headers = { 'X-Key': 's3cret' };
    const created = await put('c-mask', withCancel({ url, headers }));
    expect(created.text).not.toContain('s3cret');
    expect(created.body['target']).toHaveProperty('cancel.headers', { 'X-Key': '***' });
    expect((await put('c-mask', created.text)).body['version']).toBe(1);
    const renamed = await patch('c-mask', {
      target: { cancel: { headers: { 'x-key': '***', 'X-New': 'n' } } },
    });
    expect(renamed.status).toBe(200);
    expect((await stored('c-mask'))?.target['cancel']).toMatchObject({
      headers: { 'x-key': 's3cret', 'X-New': 'n' },
    });
    const elsewhere = await patch('c-mask', { target: { cancel: { url: 'https://evil.example/' } } });
    expect([elsewhere.status, faultPaths(elsewhere)]).toEqual([
      400,
      ['/target/cancel/headers/X-New', '/target/cancel/headers/x-key'],
    ]);
    const swapped = await put(
      'c-mask',
      withTarget({ ...TARGET, lookup: { url, headers: { 'X-Key': '***' } } }),
    );
    expect(faultPaths(swapped)).toEqual(['/target/lookup/headers/X-Key']);
    // The target itself may move.
    expect((await patch('c-mask', { target: { url: 'https://other.example/' } })).status).toBe(200);
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
    test.each([...TOO_LONG, ...LONG_LABEL])(
      'cannot have %s: 400, and nothing is stored',
      async (_name, host) => {
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
          expect(faultsOf(answer)[0]?.message).toContain(limit);
        }
        const batches = [
          await api.call('POST', '/api/v1/schedules/batch', { items: [{ id: 'host', ...withTarget(bad) }] }),
          await api.call('POST', '/api/v1/runs/batch', { items: [{ ref: 'a', target: bad }] }),
        ];
        for (const answer of batches)
          expect([answer.status, faultPaths(answer)]).toEqual([400, [`/items/0${path}`]]);
        expect(await rows()).toBe(before);
        expect((await get('host')).body).toMatchObject({ version: 1 });
        expect((await get('new-host')).status).toBe(404);
      },
    );
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
