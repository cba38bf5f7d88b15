import { expect, test } from 'vitest';
import { LONG } from '../../support/runner/long.ts';
import { SCHEDULE, TARGET, faultPaths, sharedApi } from '../api.ts';

const api = sharedApi();

const batch = (body: unknown) => api.call('POST', '/api/v1/schedules/batch', body);
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

test('with an item that never fires is 422, and writes none', async () => {
  const answer = await batch({
    items: [item('n-1'), item('n-2', { cron: '0 0 30 2 *' }), item('n-3', { cron: '0 0 31 4 *' })],
  });
  expect([answer.status, faultPaths(answer)]).toEqual([422, ['/items/1/cron', '/items/2/cron']]);
  expect((await api.call('GET', '/api/v1/schedules?q=n-')).body['items']).toEqual([]);
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
