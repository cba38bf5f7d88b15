import { afterEach, beforeAll, expect, test } from 'vitest';
import { ATTACK } from '../../support/runner/attack.ts';
import { newToken } from '../access/support.ts';
import { type Answer, SCHEDULE, TARGET, faultPaths, sharedApi, idsOf } from '../api.ts';

const admin = newToken('the-admin', 'admin');
const billing = newToken('billing-admin', 'admin', null, ['billing.', 'bill-']);
const ops = newToken('ops-admin', 'admin', null, ['ops.']);
const api = sharedApi({ apiTokens: [admin.known, billing.known, ops.known] });

type Who = typeof admin;
const as = (who: Who, method: string, path: string, body?: unknown) =>
  api.call(method, `/api/v1/${path}`, body, who.headers);
const statusOf = async (answer: Promise<Answer>) => (await answer).status;

const OWN = ['bill-late', 'billing.a', 'billing.b', 'billing.c'];
const ALL = [...OWN, 'bill', 'billing', 'billinga', 'ops.a', 'ops.b', 'shared.cleanup'];

beforeAll(async () => {
  const labels = { team: 'one' };
  const items = ALL.map((id) => ({ ...SCHEDULE, id, labels, enabled: id !== 'billing.b' && id !== 'ops.b' }));
  expect(await statusOf(as(admin, 'POST', 'schedules/batch', { items }))).toBe(200);
  for (const id of ['billing.days', 'ops.days', 'shared.days'])
    expect(await statusOf(as(admin, 'PUT', `calendars/${id}`, { dates: ['2090-05-01'] }))).toBe(201);
  for (const id of ['billing.few', 'ops.few', 'shared.few'])
    expect(await statusOf(as(admin, 'PUT', `limits/${id}`, { maxRunning: 1 }))).toBe(201);
  expect(await statusOf(as(admin, 'PUT', 'connections/ops.host', { url: 'https://example.com' }))).toBe(201);
});
afterEach(async () => {
  for (const id of idsOf(await as(admin, 'GET', 'schedules?limit=500')).filter((one) => !ALL.includes(one)))
    await as(admin, 'DELETE', `schedules/${id}`);
});

const SEEN = [...OWN, 'shared.cleanup'];

test.each([
  ['', SEEN],
  ['status=active', SEEN.filter((id) => id !== 'billing.b')],
  ['status=paused', ['billing.b']],
  ['enabled=false', ['billing.b']],
  ['late=true', []],
  ['label=team:one', SEEN],
  ['q=a', ['bill-late', 'billing.a', 'shared.cleanup']],
  ['recent=3', SEEN],
  ['maxSchedules=100', SEEN],
])('a list with "%s" has only what the scope shows, and what is shared', async (query, expected) => {
  expect(idsOf(await as(billing, 'GET', `schedules?${query}`))).toEqual(expected);
});

test.each(['limit=1', 'limit=2', 'limit=1&label=team:one', 'limit=2&maxSchedules=1', 'limit=5&maxSchedules=2'])(
  'pages by %s follow each other over the ranges of a scope, without gap or repetition',
  async (query) => {
    const found: string[] = [];
    for (let cursor: string | null = ''; cursor !== null;) {
      const page: Answer = await as(billing, 'GET', `schedules?${query}${cursor === '' ? '' : `&cursor=${cursor}`}`);
      found.push(...idsOf(page));
      cursor = page.body['nextCursor'] as unknown as string | null;
      const after = cursor === null ? null : Buffer.from(cursor, 'base64url').toString();
      if (after !== null) expect(SEEN).toContain((JSON.parse(after) as { after: string }).after);
    }
    expect(found).toEqual(SEEN);
  },
);

test('without a scope a list has all', async () => {
  expect(idsOf(await as(admin, 'GET', 'schedules')).sort()).toEqual([...ALL].sort());
});

test('a batch names each item beyond the scope, and writes none; a dry run too', { tags: [ATTACK] }, async () => {
  const item = (id: string) => ({ ...SCHEDULE, id, description: 'changed' });
  const items = [item('billing.new'), item('ops.a'), item('nobody'), item('shared.cleanup'), item('billing')];
  for (const dryRun of [false, true]) {
    const refused = await as(billing, 'POST', 'schedules/batch', { items, dryRun });
    expect(refused.status).toBe(422);
    expect(faultPaths(refused)).toEqual(['/items/1/id', '/items/2/id', '/items/3/id', '/items/4/id']);
    const said = (refused.body['errors'] as unknown as { message: string }[]).map(({ message }) => message);
    // Whether there is such a schedule, nobody learns.
    expect(new Set(said)).toEqual(new Set(['is outside your scope (billing.|bill-)']));
  }
  expect(await statusOf(as(admin, 'GET', 'schedules/billing.new'))).toBe(404);
  expect((await as(admin, 'GET', 'schedules/ops.a')).body['description']).toBeNull();
  expect(await statusOf(as(billing, 'POST', 'schedules/batch', { items: items.slice(0, 1) }))).toBe(200);
});

test('a bulk action finds and changes only what the scope may change', { tags: [ATTACK] }, async () => {
  const bulk = (action: string, dryRun: boolean) =>
    as(billing, 'POST', 'schedules/bulk', { action, filter: { label: ['team:one'] }, dryRun });
  expect((await bulk('pause', true)).body).toEqual({ matched: 4, changed: 0, remaining: 3, sample: OWN });
  expect((await bulk('pause', false)).body).toMatchObject({ matched: 4, changed: 3, remaining: 0 });
  const paused = idsOf(await as(admin, 'GET', 'schedules?enabled=false'));
  expect(paused).toEqual([...OWN, 'ops.b']);
  await bulk('resume', false);
  await as(billing, 'PATCH', 'schedules/billing.b', { enabled: false });
  expect(idsOf(await as(admin, 'GET', 'schedules?enabled=false'))).toEqual(['billing.b', 'ops.b']);
});

const PULL = (queue: string) => ({ type: 'pull', queue });
const after = (scheduleId: string) => ({ target: TARGET, after: { scheduleId } });

test.each<[what: string, fields: object, path: string, message: string]>([
  ['limit', { ...SCHEDULE, limit: 'ops.few' }, '/limit', 'names a limit that does not exist: ops.few'],
  [
    'connection',
    { ...SCHEDULE, target: { type: 'http', connection: 'ops.host', url: '/a' } },
    '/target/connection',
    'names a connection that does not exist: ops.host',
  ],
  [
    'calendar',
    { ...SCHEDULE, exclude: { calendars: ['billing.days', 'ops.days'] } },
    '/exclude/calendars/1',
    'names a calendar that does not exist: ops.days',
  ],
  ['schedule', after('ops.a'), '/after/scheduleId', 'names a schedule that does not exist: ops.a'],
  ['queue', { cron: '@daily', target: PULL('ops.q') }, '/target/queue', 'is outside your scope (billing.|bill-)'],
  ['wildcard', after('*'), '/after/scheduleId', 'is outside your scope (billing.|bill-)'],
  ['shorter prefix', after('b*'), '/after/scheduleId', 'is outside your scope (billing.|bill-)'],
  ['foreign prefix', after('ops.*'), '/after/scheduleId', 'is outside your scope (billing.|bill-)'],
])(
  'a foreign %s in a body is refused as one that there is not',
  { tags: [ATTACK] },
  async (_what, fields, path, message) => {
    const errors = [{ path, message }];
    const put = await as(billing, 'PUT', 'schedules/billing.new', fields);
    expect([put.status, put.body['errors']]).toEqual([422, errors]);
    const patch = await as(billing, 'PATCH', 'schedules/billing.a', fields);
    expect([patch.status, patch.body['errors']]).toEqual([422, errors]);
    const items = [{ ...fields, id: 'billing.new' }];
    for (const dryRun of [false, true]) {
      const batch = await as(billing, 'POST', 'schedules/batch', { items, dryRun });
      expect([batch.status, batch.body['errors']]).toEqual([422, [{ path: `/items/0${path}`, message }]]);
    }
    // An unknown one is answered in the same words.
    if (message.includes('does not exist')) {
      const text = JSON.stringify(fields).replaceAll(/ops\.\w+/g, 'billing.none');
      const unknown = await as(billing, 'PUT', 'schedules/billing.new', JSON.parse(text));
      expect(unknown.body['errors']).toEqual([{ path, message: message.replace(/ops\.\w+/, 'billing.none') }]);
    }
  },
);

test('what is shared, and what is in the scope, may be named', async () => {
  const put = (id: string, fields: object) => statusOf(as(billing, 'PUT', `schedules/billing.${id}`, fields));
  const exclude = { calendars: ['billing.days', 'shared.days'] };
  expect(await put('x', { ...SCHEDULE, limit: 'shared.few', exclude })).toBe(201);
  expect(await put('y', { cron: '@daily', target: PULL('shared.q'), limit: 'billing.few' })).toBe(201);
  for (const followed of ['shared.cleanup', 'billing.a', 'billing.*', 'billing.a*', 'shared.*'])
    expect([followed, await put('z', after(followed))]).toEqual([followed, expect.toBeOneOf([200, 201])]);
});

test('an edit is judged only by the names that it adds', { tags: [ATTACK] }, async () => {
  const foreign = {
    ...{ cron: '@daily', target: PULL('ops.q'), limit: 'ops.few', exclude: { calendars: ['ops.days'] } },
  };
  expect(await statusOf(as(admin, 'PUT', 'schedules/billing.x', foreign))).toBe(201);
  expect(await statusOf(as(billing, 'PATCH', 'schedules/billing.x', { cron: '@hourly' }))).toBe(200);
  expect(await statusOf(as(admin, 'PUT', 'schedules/billing.y', after('ops.*')))).toBe(201);
  expect(await statusOf(as(billing, 'PATCH', 'schedules/billing.y', { description: 'all of ops' }))).toBe(200);
  // That one schedule of the batch names it lets no other name it.
  const refused = await as(billing, 'POST', 'schedules/batch', {
    items: [
      { ...foreign, id: 'billing.x' },
      { ...SCHEDULE, id: 'billing.z', exclude: { calendars: ['ops.days'] }, limit: 'ops.few' },
    ],
  });
  expect(refused.status).toBe(422);
  expect(faultPaths(refused)).toEqual(['/items/1/exclude/calendars/0', '/items/1/limit']);
  expect(await statusOf(as(billing, 'PATCH', 'schedules/billing.x', { limit: null }))).toBe(200);
  expect(await statusOf(as(billing, 'PATCH', 'schedules/billing.x', { limit: 'ops.few' }))).toBe(422);
});

test(
  'a refused deletion names the followers in the scope, and of others only that there are some',
  { tags: [ATTACK] },
  async () => {
    await as(admin, 'PUT', 'schedules/ops.secret', after('billing.a'));
    const detail = async () => (await as(billing, 'DELETE', 'schedules/billing.a')).body['detail'];
    expect(await detail()).toBe(
      'the schedule is followed by others, outside your scope: delete these first, or let them follow another',
    );
    await as(billing, 'PUT', 'schedules/billing.x', after('billing.a'));
    expect(await detail()).toContain('followed by billing.x and by others, outside your scope: ');
    expect((await as(admin, 'DELETE', 'schedules/billing.a')).body['detail']).toContain(
      'followed by billing.x, ops.secret: ',
    );
  },
);

test('the load counts and names only schedules that the scope shows, page by page too', async () => {
  const at = '2090-06-01T12:00:00Z';
  for (const id of ['billing.x', 'ops.x', 'shared.x'])
    await as(admin, 'PUT', `schedules/${id}`, { target: TARGET, at });
  const day = 'from=2090-06-01T00:00:00Z&to=2090-06-02T00:00:00Z&bucketSeconds=3600&top=10';
  const load = async (who: Who, query = '') => (await as(who, 'GET', `load?${day}${query}`)).body;
  const firing = (...named: string[]) => named.map((id) => ({ id, fires: 1 }));
  const busiest = (fires: number) => ({ at: '2090-06-01T12:00:00.000Z', fires });
  expect(await load(billing)).toMatchObject({ busiest: busiest(2), firing: firing('billing.x', 'shared.x') });
  expect(await load(ops)).toMatchObject({ busiest: busiest(2), firing: firing('ops.x', 'shared.x') });
  expect(await load(admin)).toMatchObject({ busiest: busiest(3) });
  const named: string[] = [];
  let counted = 0;
  for (let cursor: string | null = ''; cursor !== null;) {
    const page = await load(billing, `&maxSchedules=2${cursor === '' ? '' : `&cursor=${cursor}`}`);
    named.push(...(page['firing'] as unknown as { id: string }[]).map(({ id }) => id));
    counted += page['schedules'] as unknown as number;
    cursor = page['nextCursor'] as unknown as string | null;
  }
  expect([named, counted]).toEqual([['billing.x', 'shared.x'], (await load(billing))['schedules']]);
});

test('a cursor of a load without a scope is none of one with a scope', { tags: [ATTACK] }, async () => {
  const next = async (who: Who) =>
    (await as(who, 'GET', 'load?maxSchedules=1')).body['nextCursor'] as unknown as string;
  for (const [who, other] of [
    [billing, admin],
    [admin, billing],
  ] as const) {
    const refused = await as(who, 'GET', `load?cursor=${await next(other)}`);
    expect([refused.status, faultPaths(refused)]).toEqual([400, ['cursor']]);
  }
});
