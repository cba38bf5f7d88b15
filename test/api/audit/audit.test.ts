import { randomUUID } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { expect, test } from 'vitest';
import { AUDIT_ACTIONS } from '../../../src/core/audit.ts';
import { ROLES } from '../../../src/core/access/roles.ts';
import { newToken } from '../access/support.ts';
import { type Answer, type Json, SCHEDULE, TARGET, faultPaths, sharedApi } from '../api.ts';

const tokens = Object.fromEntries(ROLES.map((role) => [role, newToken(`the-${role}`, role)])) as Record<
  (typeof ROLES)[number],
  ReturnType<typeof newToken>
>;
const PULL = { target: { type: 'pull', queue: 'audited' } };

const api = sharedApi({ apiTokens: ROLES.map((role) => tokens[role].known) });

type Role = (typeof ROLES)[number];

async function call(method: string, path: string, body?: unknown, role: Role = 'admin'): Promise<Answer> {
  const isText = path.includes('/log?');
  const headers = { ...tokens[role].headers, ...(isText && { 'content-type': 'text/plain' }) };
  return api.call(method, `/api/v1${path}`, body, headers);
}

/** It must succeed. */
async function done(method: string, path: string, body?: unknown, role: Role = 'admin'): Promise<Answer> {
  const answer = await call(method, path, body, role);
  expect([method, path, answer.status < 300 ? 'done' : answer.text]).toEqual([method, path, 'done']);
  return answer;
}

interface Entry {
  at: string;
  by: string | null;
  role: string;
  action: string | null;
  subject: string | null;
  scheduleId: string | null;
  outcome: string;
  detail: Record<string, unknown>;
}

async function entries(query = ''): Promise<Entry[]> {
  const { body } = await done('GET', `/audit?limit=500${query}`);
  return body['items'] as unknown as Entry[];
}

/** What the audit has of this call, and nothing of what was there before. */
async function writtenBy(work: () => Promise<unknown>): Promise<Entry[]> {
  const before = (await entries()).length;
  await work();
  const after = await entries();
  return after.slice(0, after.length - before);
}

function idIn(run: Json | undefined): string {
  return run?.['id'] as unknown as string;
}

async function newRun(): Promise<string> {
  return idIn((await done('POST', '/runs', PULL)).body);
}

async function claimedRun(): Promise<string> {
  await newRun();
  const { body } = await done('POST', '/queues/audited/claim', { workerId: 'w' }, 'worker');
  return idIn(body['items']?.[0]);
}

async function cancelledRun(): Promise<string> {
  const id = await newRun();
  await done('POST', `/runs/${id}/cancel`);
  return id;
}

const NEXT = '2028-02-29T12:00:00.000Z';
const notifierAt = (url: string, key?: string) => ({
  channel: {
    type: 'webhook',
    target: { type: 'http', url, ...(key !== undefined && { headers: { 'x-key': key } }) },
  },
});
const put = (id: string, more: object = {}) => done('PUT', `/schedules/${id}`, { ...SCHEDULE, ...more });

/** For each operation of the API that may change something: what has to be there, the call, and the entry that it leaves. */
interface Walk {
  prepare?: () => Promise<unknown>;
  request: (prepared: never) => [path: string, body?: unknown];
  leaves: Partial<Entry> | null;
}

function walk<Prepared>(
  prepare: () => Promise<Prepared>,
  request: (prepared: Prepared) => [path: string, body?: unknown],
  leaves: Partial<Entry> | null,
): Walk {
  return { prepare, request: request, leaves };
}

const ofSchedule = (id: string) => ({ subject: id, scheduleId: id });
const ANY_ID = expect.stringMatching(/^[\da-f-]{36}$/) as string;

const WALKS: Record<string, Walk> = {
  putSchedule: {
    request: () => ['/schedules/put', SCHEDULE],
    leaves: { action: 'schedule.create', ...ofSchedule('put'), detail: { version: 1 } },
  },
  patchSchedule: walk(
    () => put('patched'),
    () => [
      '/schedules/patched',
      { description: 'd', payload: { secret: 'p' }, target: { headers: { 'x-key': 's3cret' } } },
    ],
    {
      action: 'schedule.update',
      ...ofSchedule('patched'),
      detail: { version: 2, fields: ['/description', '/target/headers/x-key', '/payload'] },
    },
  ),
  mintPingKey: walk(
    () => put('observed', { observe: {} }),
    () => ['/schedules/observed/ping-key'],
    { action: 'schedule.pingKey', ...ofSchedule('observed'), detail: {} },
  ),
  deleteSchedule: walk(
    () => put('gone'),
    () => ['/schedules/gone'],
    { action: 'schedule.delete', ...ofSchedule('gone'), detail: { version: 2, abandonedRuns: 0 } },
  ),
  putSchedules: {
    request: () => ['/schedules/batch', { items: ['batch-1', 'batch-2'].map((id) => ({ id, ...SCHEDULE })) }],
    leaves: {
      ...{ action: 'schedules.bulk', subject: null, scheduleId: null },
      detail: { action: 'put', created: 2, updated: 0, unchanged: 0 },
    },
  },
  actOnSchedules: walk(
    () => Promise.all([put('bulk-1'), put('bulk-2')]),
    () => ['/schedules/bulk', { action: 'pause', filter: { q: 'bulk-' } }],
    { action: 'schedules.bulk', subject: null, detail: { action: 'pause', matched: 2, changed: 2 } },
  ),
  fireSchedule: walk(
    () => put('fired'),
    () => ['/schedules/fired/fire', { payload: { secret: 'p' } }],
    { action: 'schedule.fire', ...ofSchedule('fired'), detail: { runId: ANY_ID } },
  ),
  skipFire: walk(
    () => put('skips'),
    () => ['/schedules/skips/skip', { fireAt: NEXT, reason: 'r' }],
    { action: 'schedule.skip', ...ofSchedule('skips'), detail: { fireAt: NEXT } },
  ),
  unskipFire: walk(
    async () => {
      await put('unskips');
      await done('POST', '/schedules/unskips/skip', { fireAt: NEXT });
    },
    () => ['/schedules/unskips/unskip', { fireAt: NEXT }],
    { action: 'schedule.unskip', ...ofSchedule('unskips'), detail: { fireAt: NEXT } },
  ),
  backfillSchedule: walk(
    () => put('filled', { cron: '0 0 1 1 *' }),
    () => ['/schedules/filled/backfill', { from: '2020-01-01T00:00:00Z', to: '2023-01-01T00:00:00Z' }],
    {
      ...{ action: 'schedule.backfill', ...ofSchedule('filled') },
      detail: { from: '2020-01-01T00:00:00.000Z', to: '2023-01-01T00:00:00.000Z', as: 'now', created: 3 },
    },
  ),
  beginSession: { request: () => ['/session'], leaves: null },
  endSession: { request: () => ['/session'], leaves: null },
  previewFires: { request: () => ['/preview', { cron: '0 0 * * *' }], leaves: null },
  tryCalendar: { request: () => ['/calendars/tried/dry-run', { dates: [] }], leaves: null },
  tryLimit: { request: () => ['/limits/tried/dry-run', { maxRunning: 1 }], leaves: null },
  putCalendar: {
    request: () => ['/calendars/put', { dates: ['2027-01-01'] }],
    leaves: {
      ...{ action: 'calendar.put', subject: 'put', scheduleId: null },
      detail: { change: 'created', version: 1, dates: 1 },
    },
  },
  deleteCalendar: walk(
    () => done('PUT', '/calendars/gone', { dates: [] }),
    () => ['/calendars/gone'],
    { action: 'calendar.delete', subject: 'gone', detail: { version: 2 } },
  ),
  tryConnection: {
    request: () => ['/connections/tried/dry-run', { url: 'https://a.example' }],
    leaves: null,
  },
  putConnection: walk(
    () => done('PUT', '/connections/put', { url: 'https://a.example', headers: { 'x-a': 's3cret', 'x-b': 'b' } }),
    () => ['/connections/put', { url: 'https://a.example/v2', headers: { 'x-a': 's3cret-2', 'x-b': '***' } }],
    {
      ...{ action: 'connection.put', subject: 'put', scheduleId: null },
      detail: { change: 'updated', version: 2, fields: ['/url', '/headers/x-a'] },
    },
  ),
  deleteConnection: walk(
    () => done('PUT', '/connections/gone', { url: 'https://a.example' }),
    () => ['/connections/gone'],
    { action: 'connection.delete', subject: 'gone', detail: { version: 1 } },
  ),
  tryNotifier: { request: () => ['/notifiers/tried/dry-run', notifierAt('https://a.example')], leaves: null },
  putNotifier: walk(
    () => done('PUT', '/notifiers/put', notifierAt('https://a.example', 's3cret')),
    () => ['/notifiers/put', { ...notifierAt('https://a.example', 's3cret-2'), on: ['late'] }],
    {
      ...{ action: 'notifier.put', subject: 'put', scheduleId: null },
      detail: { change: 'updated', version: 2, fields: ['/on', '/channel/target/headers/x-key'] },
    },
  ),
  testNotifier: walk(
    () => done('PUT', '/notifiers/tested', notifierAt('https://a.example')),
    () => ['/notifiers/tested/test'],
    { action: 'notifier.test', subject: 'tested', scheduleId: null, detail: { runId: ANY_ID } },
  ),
  deleteNotifier: walk(
    () => done('PUT', '/notifiers/gone', notifierAt('https://a.example')),
    () => ['/notifiers/gone'],
    { action: 'notifier.delete', subject: 'gone', detail: { version: 1, abandonedRuns: 0 } },
  ),
  putLimit: {
    request: () => ['/limits/put', { maxRunning: 3 }],
    leaves: { action: 'limit.put', subject: 'put', detail: { change: 'created', version: 1, maxRunning: 3 } },
  },
  deleteLimit: walk(
    () => done('PUT', '/limits/gone', { maxRunning: 1 }),
    () => ['/limits/gone'],
    { action: 'limit.delete', subject: 'gone', detail: { version: 1 } },
  ),
  createRun: {
    request: () => ['/runs', { ...PULL, payload: { secret: 'p' } }],
    leaves: {
      ...{ action: 'run.create', subject: ANY_ID, scheduleId: null },
      detail: { runAt: null, dependencies: 0 },
    },
  },
  createRuns: {
    request: () => ['/runs/batch', { items: ['a', 'b'].map((ref) => ({ ref, ...PULL })) }],
    leaves: {
      action: 'run.create',
      subject: expect.any(String) as string,
      detail: { name: null, created: 2, existing: 0 },
    },
  },
  actOnRuns: walk(
    async () => {
      await put('runs');
      for (let n = 0; n < 3; n += 1) await done('POST', '/schedules/runs/fire');
    },
    () => ['/runs/bulk', { action: 'cancel', filter: { scheduleId: 'runs' } }],
    {
      ...{ action: 'runs.bulk', subject: null, scheduleId: 'runs' },
      detail: {
        ...{ action: 'cancel', matched: 3, changed: 3, part: 1 },
        ...{ filter: { scheduleId: 'runs' }, runs: [ANY_ID, ANY_ID, ANY_ID] },
      },
    },
  ),
  cancelRun: walk(newRun, (id) => [`/runs/${id}/cancel`], {
    ...{ action: 'run.cancel', subject: ANY_ID, detail: { was: 'pending' } },
  }),
  retryRun: walk(cancelledRun, (id) => [`/runs/${id}/retry`], {
    ...{ action: 'run.retry', subject: ANY_ID, detail: { was: 'cancelled' } },
  }),
  completeRun: walk(
    claimedRun,
    (id) => [`/runs/${id}/complete`, { status: 'failed', error: 's3cret', result: 'p', workerId: 'w' }],
    { action: 'run.complete', subject: ANY_ID, detail: { was: 'running', status: 'failed', attempt: 1 } },
  ),
  releaseRun: walk(claimedRun, (id) => [`/runs/${id}/release`, { workerId: 'w' }], {
    ...{ action: 'run.release', subject: ANY_ID, detail: { was: 'running', attempt: 1 } },
  }),
  heartbeatRun: walk(claimedRun, (id) => [`/runs/${id}/heartbeat`, { workerId: 'w' }], null),
  appendRunLog: walk(claimedRun, (id) => [`/runs/${id}/log?attempt=1&offset=0`, 'printed'], null),
  claimRuns: walk(newRun, () => ['/queues/audited/claim', { workerId: 'w' }], null),
  takeOver: {
    request: () => ['/take-over', { since: '2026-01-01T00:00:00Z' }],
    leaves: {
      ...{ action: 'installation.take-over', subject: null, scheduleId: null },
      detail: expect.objectContaining({ since: '2026-01-01T00:00:00.000Z', moved: 0, skipped: 0 }) as Record<
        string,
        unknown
      >,
    },
  },
  setMaintenance: {
    request: () => ['/maintenance', { on: true, dispatch: 'hold' }],
    leaves: {
      ...{ action: 'maintenance.on', subject: null, scheduleId: null },
      detail: { dispatch: 'hold', until: null, replaced: false },
    },
  },
};

const operations = Object.entries(
  (
    JSON.parse(readFileSync('openapi/openapi.json', 'utf8')) as {
      paths: Record<string, Record<string, { operationId: string }>>;
    }
  ).paths,
).flatMap(([path, methods]) =>
  Object.entries(methods)
    // Reports of observed jobs are no calls of somebody.
    .filter(([method]) => method !== 'get' && path.startsWith('/api/v1/'))
    .map(([method, { operationId }]) => [operationId, method.toUpperCase()] as const),
);

test('every operation that may change something is walked here', () => {
  expect(Object.keys(WALKS).sort()).toEqual(operations.map(([operationId]) => operationId).sort());
});

test.each(operations)('%s leaves exactly the entry that it should', async (operationId, method) => {
  const { prepare, request, leaves } = WALKS[operationId] ?? { request: () => [''], leaves: null };
  const prepared = (await prepare?.()) as never;
  const [path, body] = request(prepared);
  const written = await writtenBy(() => done(method, path, body));
  if (operationId === 'setMaintenance') await done('POST', '/maintenance', { on: false });
  const expected = { by: 'the-admin', role: 'admin', outcome: 'done', ...leaves };
  expect(written).toMatchObject(leaves === null ? [] : [expected]);
  if (leaves?.detail) expect(written[0]?.detail).toEqual(leaves.detail);
  expect(JSON.stringify(written)).not.toMatch(/s3cret|"p"/);
});

test('a call that changes nothing has no entry', async () => {
  await put('same');
  await done('PUT', '/calendars/same', { dates: ['2027-01-01'] });
  await done('PUT', '/limits/same', { maxRunning: 1 });
  const connection = { url: 'https://a.example', auth: { type: 'bearer', token: 's3cret' } };
  await done('PUT', '/connections/same', connection);
  const run = await cancelledRun();
  const fire = { 'Idempotency-Key': 'same', ...tokens.admin.headers };
  await api.call('POST', '/api/v1/schedules/same/fire', undefined, fire);
  await done('POST', '/runs', { ...PULL, key: 'same' });
  await done('POST', '/schedules/same/skip', { fireAt: NEXT });
  await done('POST', '/maintenance', { on: true, reason: 'r' });
  const written = await writtenBy(async () => {
    await put('same');
    await done('PATCH', '/schedules/same', { description: null });
    await done('POST', '/schedules/batch', { items: [{ id: 'same', ...SCHEDULE }] });
    await done('POST', '/schedules/batch', { items: [{ id: 'never', ...SCHEDULE }], dryRun: true });
    await done('POST', '/schedules/bulk', { action: 'pause', filter: { q: 'same' }, dryRun: true });
    await done('POST', '/schedules/bulk', { action: 'resume', filter: { q: 'same' } });
    await done('PUT', '/calendars/same', { dates: ['2027-01-01'] });
    await done('PUT', '/limits/same', { maxRunning: 1 });
    await done('PUT', '/connections/same', connection);
    await done('POST', `/runs/${run}/cancel`);
    await done('POST', '/runs/bulk', { action: 'cancel', filter: { scheduleId: 'nobody' } });
    await api.call('POST', '/api/v1/schedules/same/fire', undefined, fire);
    await done('POST', '/runs', { ...PULL, key: 'same' });
    await done('POST', '/schedules/same/skip', { fireAt: NEXT });
    await done('POST', '/maintenance', { on: true, reason: 'r' });
    const past = { from: '2021-01-01T00:00:00Z', to: '2022-01-01T00:00:00Z' };
    await done('POST', '/schedules/same/backfill', past);
    // Refused: nothing is changed either.
    expect((await call('PUT', '/schedules/x', { cron: 'nonsense', target: TARGET })).status).toBe(400);
    expect((await call('DELETE', '/schedules/nobody')).status).toBe(404);
    expect((await call('POST', `/runs/${run}/complete`, { status: 'succeeded' })).status).toBe(409);
  });
  expect(written).toEqual([]);
  const ended = await writtenBy(() => done('POST', '/maintenance', { on: false }));
  expect(ended).toMatchObject([{ action: 'maintenance.off', detail: {} }]);
  expect(await writtenBy(() => done('POST', '/maintenance', { on: false }))).toEqual([]);
});

test('the entry of a change that is rolled back is rolled back too', async () => {
  // The database refuses the last statement of the transaction: its COMMIT.
  await api.sql
    .unsafe(`CREATE FUNCTION refuse() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN RAISE unique_violation; END';
    CREATE CONSTRAINT TRIGGER refuse AFTER INSERT ON run_keys DEFERRABLE INITIALLY DEFERRED
    FOR EACH ROW EXECUTE FUNCTION refuse()`);
  const written = await writtenBy(async () => {
    expect((await call('POST', '/runs', { ...PULL, key: 'refused' })).status).not.toBe(201);
  });
  await api.sql.unsafe('DROP FUNCTION refuse CASCADE');
  expect(written).toEqual([]);
});

test('a bulk action of several transactions has one entry, with all of its changes', async () => {
  const items = Array.from({ length: 450 }, (_, n) => ({ id: `many-${n}`, ...SCHEDULE }));
  await done('POST', '/schedules/batch', { items });
  const paused = await writtenBy(() => done('POST', '/schedules/bulk', { action: 'pause', filter: { q: 'many-' } }));
  expect(paused).toMatchObject([{ detail: { action: 'pause', matched: 450, changed: 450 } }]);
});

test('a bulk action on runs names all of them, a hundred in each entry, and its filter', async () => {
  const items = Array.from({ length: 230 }, () => ({ ...PULL, key: randomUUID(), ref: randomUUID() }));
  const recorded = (await done('POST', '/runs/batch', { items })).body['items'] as unknown as {
    id: string;
  }[];
  const none = { action: 'cancel', filter: { label: 'team:nobody' } };
  expect(await writtenBy(() => done('POST', '/runs/bulk', none, 'operator'))).toEqual([]);
  const filter = { status: 'pending,running', trigger: ['api'], from: '2026-01-01T01:00:00+01:00' };
  const written = await writtenBy(() =>
    done('POST', '/runs/bulk', { action: 'cancel', filter, limit: 230 }, 'operator'),
  );
  const details = written.reverse().map(({ detail }) => detail);
  expect(details.map(({ changed, part }) => [changed, part])).toEqual([
    [100, 1],
    [100, 2],
    [30, 3],
  ]);
  const named = details.flatMap(({ runs }) => runs as string[]);
  expect(named.toSorted()).toEqual(recorded.map(({ id }) => id).toSorted());
  const shown = { status: ['pending', 'running'], trigger: ['api'], from: '2026-01-01T00:00:00.000Z' };
  for (const detail of details) expect(detail).toMatchObject({ action: 'cancel', filter: shown });
});

test('the filter of a bulk action is kept in part if it is very long', async () => {
  const labels = { ['k'.repeat(63)]: 'v'.repeat(255) };
  await put('labelled', { labels });
  await done('POST', '/schedules/labelled/fire');
  const label = Array.from({ length: 50 }, () => `${'k'.repeat(63)}:${'v'.repeat(255)}`);
  const [entry] = await writtenBy(() => done('POST', '/runs/bulk', { action: 'cancel', filter: { label } }));
  const kept = (entry?.detail['filter'] as { label: string[] }).label;
  expect(kept.map((text) => text.length)).toEqual(Array.from({ length: 20 }, () => 200));
});

test('entries are found by caller, action, schedule and time, newest first, page by page', async () => {
  await put('found');
  const run = idIn((await done('POST', '/schedules/found/fire', undefined, 'operator')).body);
  await done('POST', `/runs/${run}/cancel`, undefined, 'operator');
  const ofFound = await entries('&scheduleId=found');
  expect(ofFound.map(({ by, action, subject }) => [by, action, subject])).toEqual([
    ['the-operator', 'run.cancel', run],
    ['the-operator', 'schedule.fire', 'found'],
    ['the-admin', 'schedule.create', 'found'],
  ]);
  expect((await entries('&scheduleId=found&by=the-admin')).map(({ action }) => action)).toEqual(['schedule.create']);
  const [cancelled, fired] = ofFound;
  const some = await entries('&scheduleId=found&action=schedule.create,run.cancel');
  expect(some.map(({ action }) => action)).toEqual(['run.cancel', 'schedule.create']);
  expect(await entries(`&scheduleId=found&from=${cancelled?.at}`)).toContainEqual(cancelled);
  expect(await entries(`&scheduleId=found&to=${fired?.at}`)).not.toContainEqual(fired);

  const all = await entries();
  const pages: Entry[] = [];
  for (let cursor: string | null = ''; cursor !== null;) {
    const { body } = await done('GET', `/audit?limit=7${cursor}`);
    const page = body as unknown as { items: Entry[]; nextCursor: string | null };
    pages.push(...page.items);
    cursor = page.nextCursor === null ? null : `&cursor=${page.nextCursor}`;
  }
  expect(pages).toEqual(all);
  expect(all.map(({ at }) => at)).toEqual(
    all
      .map(({ at }) => at)
      .sort()
      .reverse(),
  );
});

test('a query that cannot be answered names every fault', async () => {
  const answer = await call('GET', '/audit?action=run.claim&scheduleId=%20&from=x&limit=0&cursor=x&who=me');
  expect([answer.status, faultPaths(answer)]).toEqual([
    400,
    ['action', 'cursor', 'from', 'limit', 'scheduleId', 'who'],
  ]);
});

test('the planner uses each index for its query', async () => {
  await api.sql.unsafe('SET enable_seqscan = off; SET enable_sort = off');
  const planOf = async (condition: string) => {
    const rows = await api.sql.unsafe(
      `EXPLAIN SELECT * FROM audit WHERE ${condition} ORDER BY at DESC, id DESC LIMIT 50`,
    );
    return rows.map((row) => String(row['QUERY PLAN'])).join('\n');
  };
  // The indexes of partitions are named after their columns.
  expect(await planOf('true')).toMatch(/_pkey/);
  expect(await planOf(`by = 'a'`)).toMatch(/_by_at_id_idx/);
  expect(await planOf(`schedule_id = 'a'`)).toMatch(/_schedule_id_at_id_idx/);
  expect(await planOf(`action <> 'run.complete' AND action = 'run.cancel'`)).toMatch(/_action_at_id_idx/);
  await api.sql.unsafe('RESET enable_seqscan; RESET enable_sort');
});

test('some call writes each action of the contract', async () => {
  const seen = new Set((await entries()).map(({ action }) => action));
  expect([...seen].filter((action) => action !== null).sort()).toEqual([...AUDIT_ACTIONS].sort());
});
