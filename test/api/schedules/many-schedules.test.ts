import { expect, test } from 'vitest';
import { SCHEDULE, TARGET, faultPaths, quietApi } from '../api.ts';
import { LONG } from '../../support/runner/long.ts';

const api = quietApi();

const bulk = (body: unknown) => api.call('POST', '/api/v1/schedules/bulk', body);
const read = async (id: string) => (await api.call('GET', `/api/v1/schedules/${id}`)).body;
const list = async (query: string) => {
  const { body } = await api.call('GET', `/api/v1/schedules?limit=500&${query}`);
  return (body['items'] as unknown as { id: string }[]).map(({ id }) => id);
};

/** Schedules of a team of their own. */
async function made(team: string, count: number, more: (n: number) => object = () => ({})): Promise<string[]> {
  const items = Array.from({ length: count }, (_, n) => ({
    ...SCHEDULE,
    id: `${team}-${String(n).padStart(3, '0')}`,
    labels: { team },
    ...more(n),
  }));
  const { status } = await api.call('POST', '/api/v1/schedules/batch', { items });
  expect(status).toBe(200);
  return items.map(({ id }) => id);
}

/** A daily schedule whose last midnight is not planned yet, as if no instance had lived since. */
async function missToday(id: string): Promise<string> {
  const [row] = await api.sql<
    { at: string }[]
  >`UPDATE schedules SET next_occurrence_at = midnight, next_fire_at = midnight
    FROM date_trunc('day', clock_timestamp(), 'UTC') AS midnight WHERE id = ${id} RETURNING to_json(midnight) AS at`;
  return new Date(row?.at ?? '').toISOString();
}

test('pauses all matching schedules, in several batches, with the reason, and resumes them', async () => {
  const ids = await made('red', 450, (n) => (n === 3 ? { cron: undefined, after: { scheduleId: 'red-004' } } : {}));
  await made('blue', 2);
  const pause = { action: 'pause', filter: { label: 'team:red' }, reason: 'stocktaking' };
  const sample = ids.slice(0, 10);
  const dry = await bulk({ ...pause, dryRun: true });
  expect([dry.status, dry.body]).toEqual([200, { matched: 450, changed: 0, remaining: 450, sample }]);
  expect(await list('status=paused')).toEqual([]);
  expect((await bulk(pause)).body).toEqual({ matched: 450, changed: 450, remaining: 0, sample });
  expect(await list('status=paused')).toEqual(ids);
  for (const id of [ids[0], ids[3], ids[449]]) {
    expect(await read(id ?? '')).toMatchObject({ enabled: false, pauseReason: 'stocktaking', version: 2 });
  }
  const resume = { action: 'resume', filter: { label: ['team:red'], status: 'paused' } };
  expect((await bulk(resume)).body).toMatchObject({ matched: 450, changed: 450, remaining: 0 });
  expect(await read(ids[0] ?? '')).toMatchObject({ enabled: true, pauseReason: null, version: 3 });
  expect(await read('red-001')).toHaveProperty('nextFireAt', (await read('blue-001'))['nextFireAt']);
  expect((await bulk(resume)).body).toMatchObject({ matched: 0, changed: 0 });
});

test('a paused schedule keeps its reason, and an enabled one stays as it is', async () => {
  await made('green', 3, (n) => (n === 0 ? { enabled: false, pauseReason: 'its own' } : {}));
  const pause = await bulk({ action: 'pause', filter: { q: 'GREEN-' }, reason: 'ours' });
  expect(pause.body).toMatchObject({ matched: 3, changed: 2, remaining: 0 });
  expect(await read('green-000')).toMatchObject({ pauseReason: 'its own', version: 1 });
  await bulk({ action: 'resume', filter: { label: 'team:green', q: 'green-002' } });
  const resume = await bulk({ action: 'resume', filter: { label: 'team:green' } });
  expect(resume.body).toMatchObject({ matched: 3, changed: 2, remaining: 0 });
  expect(await read('green-002')).toMatchObject({ enabled: true, version: 3 });
});

test('a bulk pause can end by itself, and a resume removes that end', async () => {
  const [id = ''] = await made('until', 2);
  const filter = { label: 'team:until' };
  const past = await bulk({ action: 'pause', filter, until: '2020-01-01T00:00:00Z' });
  expect([past.status, faultPaths(past)]).toEqual([422, ['/until']]);
  const until = '2090-01-01T00:00:00.000Z';
  expect((await bulk({ action: 'pause', filter, until })).body).toMatchObject({ changed: 2 });
  expect(await read(id)).toMatchObject({ enabled: false, pauseUntil: until });
  await bulk({ action: 'resume', filter });
  expect(await read(id)).toMatchObject({ enabled: true, pauseUntil: null });
});

test('a filter on late schedules alone can pause them', async () => {
  const [, second = ''] = await made('late', 3, () => ({ successWithinSeconds: 60 }));
  await api.sql`INSERT INTO alerts (id, schedule_uid, schedule_id, kind, since, broken_at)
    SELECT gen_random_uuid(), uid, id, 'late', now(), now() FROM schedules WHERE id = ${second}`;
  const { body } = await bulk({ action: 'pause', filter: { late: true } });
  expect(body).toEqual({ matched: 1, changed: 1, remaining: 0, sample: [second] });
});

test('does not wait for a schedule that another transaction has locked, nor stop at one that is refused', async () => {
  const ids = await made('held', 5);
  const request = { action: 'pause', filter: { label: 'team:held' } };
  await api.sql`ALTER TABLE schedule_versions ADD CONSTRAINT refused CHECK (schedule_id <> 'held-003' OR version = 1)`;
  const answer = await api.sql.begin(async (tx) => {
    await tx`SELECT FROM schedules WHERE id = 'held-001' FOR UPDATE`;
    return bulk(request);
  });
  await api.sql`ALTER TABLE schedule_versions DROP CONSTRAINT refused`;
  expect(answer.body).toEqual({ matched: 5, changed: 3, remaining: 2, sample: ids });
  expect(await list('label=team:held&enabled=true')).toEqual(['held-001', 'held-003']);
  expect((await bulk(request)).body).toMatchObject({ matched: 5, changed: 2, remaining: 0 });
});

test.each([
  [{}, ['/action', '/filter']],
  [{ action: 'pause', filter: {} }, ['/filter']],
  [{ action: 'pause', filter: { q: '' } }, ['/filter/q']],
  [
    { action: 'pause', filter: { status: 'happy', label: ['a'], enabled: true } },
    ['/filter/enabled', '/filter/label', '/filter/status'],
  ],
  [{ action: 'stop', filter: { q: 'a' }, reason: 1, dryRun: 'yes' }, ['/action', '/dryRun', '/reason']],
  [{ action: 'resume', filter: { q: 'a' }, reason: 'why', nope: 1 }, ['/nope', '/reason']],
  [{ action: 'resume', filter: { q: 'a' }, until: '2030-01-01T00:00:00Z' }, ['/until']],
  [{ action: 'pause', filter: { late: 'yes' }, until: 'tomorrow' }, ['/filter/late', '/until']],
])('refuses %j, and names each fault', async (body, paths) => {
  const answer = await bulk(body);
  expect([answer.status, faultPaths(answer)]).toEqual([400, paths]);
});

test('a list has the newest runs of each schedule if the caller asks for them, open and ended ones merged', async () => {
  const [first = '', second = ''] = await made('runs', 3, () => ({ cron: '0 0 * * *' }));
  const fire = async (id: string) =>
    (await api.call('POST', `/api/v1/schedules/${id}/fire`)).body as unknown as {
      id: string;
      scheduledFor: string;
    };
  const fired = [await fire(first), await fire(first), await fire(first)];
  const other = await fire(second);
  await api.call('POST', `/api/v1/runs/${fired[1]?.id ?? ''}/cancel`);
  await api.sql`UPDATE history SET lateness_ms = 12 WHERE id = ${fired[1]?.id ?? ''}`;
  // Planned runs are found by another index than manual ones.
  const midnight = await missToday(first);
  const planned = {
    scheduledFor: midnight,
    trigger: 'catchUp',
    status: 'pending',
    claimedAt: null,
    latenessMs: null,
  };
  const claimedAt = '2030-01-01T00:00:00.000Z';
  await api.sql`UPDATE runs SET claimed_by = gen_random_uuid(), claimed_at = ${claimedAt} WHERE id = ${other.id}`;
  await api.call('PATCH', `/api/v1/schedules/${first}`, { enabled: false });
  const shown = (
    of: { id: string; scheduledFor: string } | undefined,
    status: string,
    latenessMs: number | null,
    claimed: string | null = null,
  ) => ({
    id: of?.id,
    scheduledFor: of?.scheduledFor,
    trigger: 'manual',
    status,
    claimedAt: claimed,
    latenessMs,
  });
  const newest = fired
    .map((run, n) => (n === 1 ? shown(run, 'cancelled', 12) : shown(run, 'pending', null)))
    .sort((a, b) => ((a.id ?? '') < (b.id ?? '') ? 1 : -1));
  const recent = async (n: number | string) => {
    const { body } = await api.call('GET', `/api/v1/schedules?label=team:runs&recent=${n}`);
    return (body['items'] as unknown as { recentRuns: unknown }[]).map(({ recentRuns }) => recentRuns);
  };
  expect(await recent(50)).toEqual([
    [...newest, { id: expect.any(String) as string, ...planned }],
    [shown(other, 'pending', null, claimedAt)],
    [],
  ]);
  expect((await recent(2))[0]).toEqual(newest.slice(0, 2));
  expect(await recent(0)).toEqual([[], [], []]);
  const [plain] = (await api.call('GET', '/api/v1/schedules?label=team:runs')).body['items'] as unknown as object[];
  expect(plain).not.toHaveProperty('recentRuns');
  for (const wrong of ['51', '-1', 'x', '']) {
    expect(faultPaths(await api.call('GET', `/api/v1/schedules?recent=${wrong}`))).toEqual(['recent']);
  }
});

const batch = (body: unknown) => api.call('POST', '/api/v1/schedules/batch', body);

test('a dry run of a batch answers what each item would change, and changes nothing', async () => {
  const headers = { Authorization: 'first', 'x-team': 'a' };
  const [, , third = ''] = await made('plan', 4, () => ({
    target: { ...TARGET, headers },
    payload: { n: 1 },
    labels: { team: 'plan', tier: 'gold' },
  }));
  const item = (id: string, more: object) => ({ ...SCHEDULE, id, target: { ...TARGET, headers }, ...more });
  const same = { payload: { n: 1 }, labels: { team: 'plan', tier: 'gold' } };
  const items = [
    item('plan-new', {}),
    item('plan-000', same),
    item('plan-001', {
      ...same,
      target: { ...TARGET, headers: { Authorization: 'second', 'x-team': '***', 'x-new': 'b' } },
      retry: { maxAttempts: 9 },
      labels: { team: 'plan', 'a/b~c': 'x' },
      enabled: false,
      pauseReason: 'later',
    }),
    item(third, {
      ...same,
      payload: [1.0],
      target: { type: 'pull', queue: 'work' },
      cron: undefined,
      everySeconds: 60,
    }),
  ];
  const before = await api.sql`SELECT uid, version, xmin::text FROM schedules ORDER BY uid`;
  const dry = await batch({ items, dryRun: true });
  expect([dry.status, dry.body]).toEqual([
    200,
    {
      created: 1,
      updated: 2,
      unchanged: 1,
      changes: [
        { id: 'plan-new', change: 'created', fields: [] },
        { id: 'plan-000', change: 'unchanged', fields: [] },
        {
          id: 'plan-001',
          change: 'updated',
          fields: [
            { path: '/enabled', before: true, after: false },
            { path: '/pauseReason', before: null, after: 'later' },
            { path: '/target/headers/Authorization', before: '***', after: '***' },
            { path: '/target/headers/x-new', before: null, after: '***' },
            { path: '/retry/maxAttempts', before: 5, after: 9 },
            { path: '/labels/tier', before: 'gold', after: null },
            { path: '/labels/a~1b~0c', before: null, after: 'x' },
          ],
        },
        {
          id: third,
          change: 'updated',
          fields: [
            { path: '/cron', before: SCHEDULE.cron, after: null },
            { path: '/everySeconds', before: null, after: 60 },
            { path: '/target/type', before: 'http', after: 'pull' },
            { path: '/target/url', before: TARGET.url, after: null },
            { path: '/target/method', before: 'POST', after: null },
            { path: '/target/headers', before: { Authorization: '***', 'x-team': '***' }, after: null },
            { path: '/target/body', before: 'envelope', after: null },
            { path: '/target/queue', before: null, after: 'work' },
            { path: '/payload', before: { n: 1 }, after: [1] },
          ],
        },
      ],
    },
  ]);
  expect(dry.text).not.toMatch(/first|second/);
  expect(await api.sql`SELECT uid, version, xmin::text FROM schedules ORDER BY uid`).toEqual(before);
  expect((await batch({ items })).body).toEqual({ created: 1, updated: 2, unchanged: 1 });
  expect((await batch({ items, dryRun: true })).body).toMatchObject({ updated: 0, unchanged: 4 });
});

test('a dry run of a batch is refused as the batch would be', async () => {
  const invalid = {
    items: [
      { ...SCHEDULE, id: 'no', cron: 'x' },
      { ...SCHEDULE, id: 'no' },
    ],
    more: 1,
  };
  const paths = ['/items/0/cron', '/items/1/id', '/more'];
  for (const dryRun of [false, true]) {
    const first = await batch({ ...invalid, dryRun });
    expect([first.status, faultPaths(first)]).toEqual([400, paths]);
  }
  expect(faultPaths(await batch({ items: [], dryRun: 'yes' }))).toEqual(['/dryRun']);
  expect((await batch({ items: [], dryRun: true })).body).toEqual({
    created: 0,
    updated: 0,
    unchanged: 0,
    changes: [],
  });
});

const item = (id: string, more: object = {}) => ({ id, ...SCHEDULE, ...more });

test('creates, updates and leaves alone, and counts each kind', async () => {
  expect((await batch({ items: [item('a'), item('b'), item('c')] })).body).toEqual({
    created: 3,
    updated: 0,
    unchanged: 0,
  });
  const again = await batch({ items: [item('a'), item('b', { priority: 'high' }), item('d')] });
  expect([again.status, again.body]).toEqual([200, { created: 1, updated: 1, unchanged: 1 }]);
  expect((await api.call('GET', '/api/v1/schedules/b')).body).toMatchObject({ priority: 'high', version: 2 });
  expect((await batch({ items: [] })).body).toEqual({ created: 0, updated: 0, unchanged: 0 });
});

test('accepts the items of a list', async () => {
  await batch({ items: [item('listed', { target: { ...TARGET, headers: { A: 's' } } })] });
  const list = await api.call('GET', '/api/v1/schedules?limit=500');
  const count = (list.body['items'] as unknown as unknown[]).length;
  expect((await batch({ items: list.body['items'] })).body).toEqual({
    created: 0,
    updated: 0,
    unchanged: count,
  });
});

test('names every fault of every item, and writes none', async () => {
  const answer = await batch({
    items: [
      item('ok-1'),
      item('ok-2', { cron: 'x' }),
      item('ok-1'),
      { ...SCHEDULE },
      'x',
      item('no/slash', { nope: 1 }),
    ],
    more: true,
  });
  expect([answer.status, faultPaths(answer)]).toEqual([
    400,
    ['/items/1/cron', '/items/2/id', '/items/3/id', '/items/4', '/items/5/id', '/items/5/nope', '/more'],
  ]);
  expect((await api.call('GET', '/api/v1/schedules?q=ok-')).body['items']).toEqual([]);
});

test('lists ten thousand faults, and looks for no more', async () => {
  const fields = Object.fromEntries(Array.from({ length: 200 }, (_, n) => [`x${n}`, 1]));
  const answer = await batch({ items: Array.from({ length: 1000 }, (_, n) => item(`x-${n}`, fields)) });
  expect([answer.status, faultPaths(answer).length]).toEqual([400, 10_000]);
  expect(answer.body['detail']).toContain('more faults in the request than are looked for');
});

async function tellsOfFields(many: number): Promise<void> {
  const fields = Object.fromEntries(Array.from({ length: many }, (_, n) => [`x${n}`, 1]));
  const answer = await batch({ items: [item('y-1'), item('y-2', fields)] });
  expect([answer.status, faultPaths(answer)]).toEqual([400, ['/items/1']]);
  const toBatch = await batch({ items: [], ...fields });
  expect([toBatch.status, faultPaths(toBatch)]).toEqual([400, ['']]);
}

test('of a hundred thousand fields is refused with that reason', () => tellsOfFields(100_000));
test('of a million fields too', { tags: [LONG] }, () => tellsOfFields(1_000_000));

test('names a field of any length in a readable answer', async () => {
  const answer = await batch({ items: [item('z', { ['k'.repeat(1_000_000)]: 1, description: 5 })] });
  expect([answer.status, faultPaths(answer)[0]]).toEqual([400, '/items/0/description']);
  expect(answer.text.length).toBeLessThan(2000);
});

test('lists schedules that never fire together with those that cannot follow, and writes none', async () => {
  const answer = await batch({
    items: [
      item('i-1', { cron: '0 0 30 2 *' }),
      { id: 'i-2', target: TARGET, after: { scheduleId: 'i-nobody' } },
      { id: 'i-3', target: TARGET, after: { scheduleId: 'i-1' } },
      item('i-4', { endAt: '2020-01-01T00:00:00Z' }),
    ],
  });
  expect([answer.status, faultPaths(answer)]).toEqual([
    422,
    ['/items/0/cron', '/items/1/after/scheduleId', '/items/3/endAt'],
  ]);
  const circle = await batch({
    items: [
      item('i-1', { cron: '0 0 30 2 *' }),
      { id: 'i-2', target: TARGET, after: { scheduleId: 'i-3' } },
      { id: 'i-3', target: TARGET, after: { scheduleId: 'i-2' } },
    ],
  });
  expect([circle.status, faultPaths(circle)]).toEqual([
    422,
    ['/items/0/cron', '/items/1/after/scheduleId', '/items/2/after/scheduleId'],
  ]);
  expect((await api.call('GET', '/api/v1/schedules?q=i-')).body['items']).toEqual([]);
});

test.each([{}, { items: {} }, { items: null }, [], 'x', { items: [null] }])('refuses %j', async (body) => {
  expect((await batch(body)).status).toBe(400);
});

test('takes 1000 items and no more', async () => {
  const items = Array.from({ length: 1001 }, (_, n) =>
    item(`many-${n}`, { cron: `${n % 60} ${n % 24} * * *`, timezone: 'Europe/Berlin', payload: { n } }),
  );
  const tooMany = await batch({ items });
  expect([tooMany.status, faultPaths(tooMany)]).toEqual([400, ['/items']]);
  expect((await batch({ items: items.slice(1) })).body).toEqual({ created: 1000, updated: 0, unchanged: 0 });
  expect((await batch({ items: items.slice(1) })).body).toEqual({ created: 0, updated: 0, unchanged: 1000 });
});

test('writes each of very many with its own definition and payload, whatever their sizes', async () => {
  const long = [7, 300, 600].map((index) => [index, JSON.stringify('x'.repeat(60_000))] as const);
  const payloads = new Map<number, string>(long);
  for (let index = 20; index < 30; index += 1) payloads.set(index, JSON.stringify('"\\é'.repeat(9_000)));
  const payloadOf = (index: number) => payloads.get(index) ?? `{"n": ${index}}`;
  const items = Array.from({ length: 700 }, (_, index) => {
    const rest = JSON.stringify(item(`each-${index}`, { labels: { n: `${index}` } }));
    return `${rest.slice(0, -1)}, "payload": ${payloadOf(index)}}`;
  });
  expect((await batch(`{"items": [${items.join(', ')}]}`)).body).toMatchObject({ created: 700 });
  for (const index of [0, 7, 19, 20, 29, 249, 250, 300, 499, 500, 600, 699]) {
    const { body } = await api.call('GET', `/api/v1/schedules/each-${index}`);
    expect([body['version'], body['labels']]).toEqual([1, { n: `${index}` }]);
    expect(body['payload']).toEqual(JSON.parse(payloadOf(index)));
  }
});

test('may have bodies that are too large for other calls, up to 16 MiB', async () => {
  const items = Array.from({ length: 200 }, (_, n) => item(`fat-${n}`, { payload: 'x'.repeat(60_000) }));
  expect((await batch({ items })).status).toBe(200);
  const tooLarge = await batch(`{"items":[${' '.repeat(16 * 1024 * 1024)}]}`);
  expect([tooLarge.status, tooLarge.body['title']]).toEqual([413, 'Payload Too Large']);
});

test('two at once that name the same schedules in another order both succeed', async () => {
  const ids = Array.from({ length: 50 }, (_, n) => `both-${n}`);
  const answers = await Promise.all(
    Array.from({ length: 8 }, (_, n) =>
      batch({ items: (n % 2 ? ids : ids.toReversed()).map((id) => item(id, { description: `${n}` })) }),
    ),
  );
  expect(answers.map(({ status }) => status)).toEqual(Array(8).fill(200));
});
