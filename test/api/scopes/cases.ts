import { SCHEDULE } from '../api.ts';
import { type Prefix, type Team, firstFire } from './worlds.ts';
import type { Asked } from './twins.ts';

type Case = Omit<Asked, 'method' | 'path'> & { at?: string };

const PULL = (queue: string) => ({ type: 'pull', queue });
const HTTP = { type: 'http', url: 'http://127.0.0.1:9/' };
const FOREVER = 'from=2020-01-01T00:00:00Z&to=2040-01-01T00:00:00Z';
const PERIOD = { from: '2023-01-01T00:00:00Z', to: '2024-12-01T00:00:00Z' };
const CHANNEL = { channel: { type: 'webhook', target: HTTP } };
const forged = (content: object) => `cursor=${Buffer.from(JSON.stringify(content)).toString('base64url')}`;
const anyRun = (runs: Team['runs']) => Object.values(runs);

const NAMES = ['active', 'connected', 'after', 'pull', 'paused', 'late', 'ended', 'error', 'gone'];
const eachSchedule = (p: string, query = '', body?: unknown): Case[] =>
  NAMES.map((name) => ({ at: `/schedules/${p}${name}${query}`, body }));
const eachRun = (runs: Team['runs'], end: string, ...bodies: unknown[]): Case[] =>
  anyRun(runs).flatMap((id) => bodies.map((body) => ({ at: `/runs/${id}${end}`, body })));
const queries = (path: string, ...all: string[]): Case[] => all.map((query) => ({ at: `${path}?${query}` }));
const put = (path: string, ...bodies: object[]): Case[] =>
  bodies.flatMap((body) => [
    { at: path, body },
    { at: path, body, headers: { 'if-match': '"1"' } },
    { at: path, body, headers: { 'if-none-match': '*' } },
  ]);
const tries = (path: string, names: readonly string[], body: object): Case[] =>
  names.map((name) => ({ at: `${path}${name}/dry-run`, body }));
const remove = (path: string): Case[] => [{ at: path, headers: { 'if-match': '"77"' } }, { at: path }];

/** Definitions that name what has this prefix. */
const naming = (p: string): object[] => [
  { ...SCHEDULE, limit: `${p}lim` },
  { ...SCHEDULE, exclude: { calendars: [`${p}cal`] } },
  { ...SCHEDULE, target: { ...HTTP, url: '/x', connection: `${p}con` } },
  { ...SCHEDULE, target: PULL(`${p}q`) },
  ...[`${p}active`, `${p}after`, `${p}gone`, `${p}*`, `${p.slice(0, 1)}*`, '*'].map((scheduleId) => ({
    target: HTTP,
    after: { scheduleId },
  })),
];

const oneOffs = (p: string, runs: Team['runs']): object[] => [
  { target: HTTP },
  { target: HTTP, key: `${p}first` },
  { target: HTTP, key: `${p}fresh` },
  { target: HTTP, key: 'ops.a', limit: `${p}lim` },
  { target: { ...HTTP, url: '/x', connection: `${p}con` }, key: 'ops.b' },
  { target: PULL(`${p}q`), key: 'ops.c' },
  ...anyRun(runs).map((id) => ({ target: HTTP, key: `ops.on-${p}`, dependsOn: [id] })),
];

/** Of each route of the API: the calls that name what `p` and `runs` say, and the lists that they may show in. */
export const CASES: Record<string, (p: string, runs: Team['runs']) => Case[]> = {
  'GET /schedules': (p) =>
    queries(
      '/schedules',
      ...['limit=500', 'limit=2', 'recent=5', 'late=true', 'status=paused,ended,error', 'enabled=false'],
      ...[`q=${p}`, `label=who:${p}`, 'label=team:any', 'q=work', 'maxSchedules=3'],
      ...[forged({ after: `${p}active` }), forged({ after: 'a' }), `limit=1&${forged({ after: p.slice(0, -1) })}`],
    ),
  'GET /schedules/{id}': (p) => eachSchedule(p),
  'PUT /schedules/{id}': (p) => [
    ...put(`/schedules/${p}paused`, SCHEDULE),
    ...put(`/schedules/${p}put`, SCHEDULE),
    ...naming(p).flatMap((body) => put('/schedules/ops.naming', body)),
  ],
  'PATCH /schedules/{id}': (p) => [
    ...eachSchedule(p, '', { description: 'changed' }),
    ...naming(p).map((body) => ({ at: '/schedules/ops.connected', body })),
  ],
  'DELETE /schedules/{id}': (p) => [...NAMES, 'put'].toReversed().flatMap((name) => remove(`/schedules/${p}${name}`)),
  'POST /schedules/batch': (p) =>
    [
      { id: `${p}active`, ...SCHEDULE },
      { id: `${p}batch`, ...SCHEDULE },
    ]
      .concat(naming(p).map((body) => ({ ...SCHEDULE, cron: undefined as never, id: 'ops.batch', ...body })))
      .flatMap((item) => [true, false].map((dryRun) => ({ body: { items: [item], dryRun } }))),
  'POST /schedules/bulk': (p) =>
    [{ label: `who:${p}` }, { q: p }, { label: 'team:any' }, { late: true }, { status: ['active', 'error'] }].flatMap(
      (filter) =>
        ['pause', 'resume'].flatMap((action) => [true, false].map((dryRun) => ({ body: { action, filter, dryRun } }))),
    ),
  'POST /schedules/{id}/fire': (p) => [
    ...eachSchedule(p, '/fire', {}),
    ...['one', 'new'].map((key) => ({
      ...{
        at: `/schedules/${p}active/fire`,
        headers: { 'idempotency-key': `${p}${key}` },
        body: { payload: 1 },
      },
    })),
  ],
  'POST /schedules/{id}/skip': (p) => eachSchedule(p, '/skip', firstFire(p as Prefix)),
  'POST /schedules/{id}/unskip': (p) => eachSchedule(p, '/unskip', firstFire(p as Prefix)),
  'POST /schedules/{id}/ping-key': (p) => eachSchedule(p, '/ping-key'),
  'GET /schedules/{id}/observed': (p) => eachSchedule(p, '/observed'),
  'POST /schedules/{id}/backfill': (p) => eachSchedule(p, '/backfill', PERIOD),
  'GET /schedules/{id}/versions': (p) => [
    ...eachSchedule(p, '/versions?limit=1'),
    ...eachSchedule('ops.', `/versions?${forged({ of: `${p}gone`, at: 1.8e12, uid: ZERO, version: 1 })}`),
  ],
  'GET /schedules/{id}/upcoming': (p) => eachSchedule(p, '/upcoming'),
  'POST /preview': (p) => [
    { body: { cron: '0 9 * * *', exclude: { calendars: [`${p}cal`] } } },
    ...NAMES.map((name) => ({ body: { cron: '0 9 * * *', id: p + name } })),
  ],
  'GET /schedules/{id}/occurrences': (p) => eachSchedule(p, `/occurrences?${FOREVER}`),
  'GET /load': () => {
    const period = 'from=2028-02-29T00:00:00Z&to=2028-03-01T00:00:00Z';
    const after = forged({ after: ZERO });
    return queries('/load', period, `${period}&top=5`, `${period}&maxSchedules=3`, `${period}&${after}`);
  },
  'GET /calendars': (p) =>
    queries('/calendars', 'limit=500', 'limit=1', `q=${p}`, 'q=days', forged({ after: `${p}cal` })),
  'GET /calendars/{id}': (p) => [{ at: `/calendars/${p}cal` }],
  'PUT /calendars/{id}': (p) => [
    ...put(`/calendars/${p}cal`, { dates: ['2029-01-01'] }),
    ...put(`/calendars/${p}new`, { dates: [] }),
  ],
  'DELETE /calendars/{id}': (p) => [...remove(`/calendars/${p}cal`), ...remove(`/calendars/${p}new`)],
  'GET /connections': (p) =>
    queries('/connections', 'limit=500', 'limit=1', `q=${p}`, 'q=host', forged({ after: `${p}con` })),
  'GET /connections/{id}': (p) => [{ at: `/connections/${p}con` }],
  'PUT /connections/{id}': (p) => [
    ...put(`/connections/${p}con`, { url: 'https://other.example' }),
    ...put(`/connections/${p}new`, { url: 'https://other.example' }),
  ],
  'DELETE /connections/{id}': (p) => [...remove(`/connections/${p}con`), ...remove(`/connections/${p}new`)],
  'POST /calendars/{id}/dry-run': (p) => tries(`/calendars/${p}`, ['cal', 'never'], { dates: [] }),
  'POST /limits/{id}/dry-run': (p) => tries(`/limits/${p}`, ['lim', 'never'], { maxRunning: 7 }),
  'POST /connections/{id}/dry-run': (p) => tries(`/connections/${p}`, ['con', 'never'], { url: 'https://x.example' }),
  'GET /notifiers': (p) => queries('/notifiers', 'limit=500', 'limit=1', `q=${p}`, forged({ after: `${p}bell` })),
  'GET /notifiers/{id}': (p) => [{ at: `/notifiers/${p}bell` }, { at: `/notifiers/${p}second` }],
  'PUT /notifiers/{id}': (p) => [
    ...put(`/notifiers/${p}bell`, { ...CHANNEL, filter: { ids: [`${p}*`] } }),
    ...put('/notifiers/ops.naming', ...namingNotifiers(p)),
  ],
  'DELETE /notifiers/{id}': (p) => [...remove(`/notifiers/${p}second`), ...remove(`/notifiers/${p}bell`)],
  'POST /notifiers/{id}/dry-run': (p) => [
    { at: `/notifiers/${p}bell/dry-run`, body: CHANNEL },
    ...namingNotifiers(p).map((body) => ({ at: '/notifiers/ops.naming/dry-run', body })),
  ],
  'POST /notifiers/{id}/test': (p) => [{ at: `/notifiers/${p}bell/test` }],
  'GET /runs': (p, runs) =>
    queries(
      '/runs',
      ...['limit=500', 'limit=2', 'status=failed,succeeded', 'trigger=api', 'trigger=notify', 'label=team:any'],
      ...[`scheduleId=${p}active`, `scheduleId=${p}gone`, `key=${p}first`, `label=who:${p}`, 'unmet=start'],
      ...[`batchId=${runs['batch'] ?? ''}`, `label=who:${p}&trigger=api`],
      ...[`trigger=backfill&${FOREVER}`, 'trigger=catchUp', 'status=pending,waiting,running'],
      ...anyRun(runs).map((id) => forged({ of: null, scheduledFor: 1.9e12, id })),
    ),
  'GET /schedules/{id}/runs': (p, runs) => [
    ...eachSchedule(p, '/runs'),
    { at: `/schedules/ops.active/runs?${forged({ of: `${p}active`, scheduledFor: 1.9e12, id: ZERO })}` },
    ...anyRun(runs).map((id) => ({
      at: `/schedules/ops.active/runs?${forged({ of: 'ops.active', scheduledFor: 1.9e12, id })}`,
    })),
  ],
  'POST /runs': (p, runs) => oneOffs(p, runs).map((body) => ({ body })),
  'POST /runs/batch': (p, runs) => oneOffs(p, runs).map((item) => ({ body: { items: [{ ref: 'a', ...item }] } })),
  'GET /runs/{id}': (_, runs) => eachRun(runs, '', undefined),
  'POST /runs/{id}/heartbeat': (p, runs) => eachRun(runs, '/heartbeat', {}, { attempt: 9 }, { workerId: `${p}worker` }),
  'POST /runs/{id}/complete': (p, runs) =>
    eachRun(
      runs,
      '/complete',
      ...[
        { status: 'failed', attempt: 9 },
        { status: 'succeeded', workerId: 'other' },
      ],
      { status: 'succeeded', workerId: `${p}worker` },
    ),
  'POST /runs/{id}/release': (p, runs) => eachRun(runs, '/release', {}, { attempt: 9 }, { workerId: `${p}worker` }),
  'POST /runs/{id}/log': (p, runs) =>
    ['attempt=1&offset=0', 'attempt=9&offset=3', `attempt=1&offset=3&workerId=${p}worker`].flatMap((query) =>
      anyRun(runs).map((id) => ({
        at: `/runs/${id}/log?${query}`,
        body: 'one\n',
        headers: { 'content-type': 'text/plain' },
      })),
    ),
  'GET /runs/{id}/log': (_, runs) =>
    anyRun(runs).flatMap((id) => queries(`/runs/${id}/log`, 'attempt=1', 'offset=1', 'attempt=2&offset=1')),
  'GET /batches/{batchId}': (_, runs) => anyRun(runs).map((id) => ({ at: `/batches/${id}` })),
  'POST /runs/{id}/cancel': (_, runs) => eachRun(runs, '/cancel', undefined),
  'POST /runs/{id}/retry': (_, runs) => eachRun(runs, '/retry', undefined, { dependents: true }),
  'POST /runs/bulk': (p, runs) =>
    [
      { batchId: runs['batch'] },
      { scheduleId: `${p}active` },
      { label: `who:${p}` },
      { label: 'team:any' },
      { trigger: ['api', 'manual'] },
    ].flatMap((filter) =>
      ['cancel', 'retry'].flatMap((action) => [true, false].map((dryRun) => ({ body: { action, filter, dryRun } }))),
    ),
  'POST /queues/{queue}/claim': (p) =>
    ['q', 'never'].map((name) => ({ at: `/queues/${p}${name}/claim`, body: { workerId: 'w', max: 100 } })),
  'GET /queues': () => [{}],
  'GET /limits': (p) => queries('/limits', 'limit=500', 'limit=1', `q=${p}`, forged({ after: `${p}lim` })),
  'GET /limits/{id}': (p) => [{ at: `/limits/${p}lim` }],
  'PUT /limits/{id}': (p) => [
    ...put(`/limits/${p}lim`, { maxRunning: 4 }),
    ...put(`/limits/${p}new`, { maxRunning: 4 }),
  ],
  'DELETE /limits/{id}': (p) => [...remove(`/limits/${p}lim`), ...remove(`/limits/${p}new`)],
  'GET /alerts': (p, runs) =>
    queries(
      '/alerts',
      ...['limit=500', 'limit=1', 'open=true', `scheduleId=${p}pull`],
      ...anyRun(runs).map((after) => forged({ after })),
    ),
  'GET /stats': () => queries('/stats', FOREVER),
  'GET /schedules/{id}/stats': (p) => eachSchedule(p, '/stats'),
  'GET /instances': () => [{}],
  'GET /maintenance': () => [{}],
  'GET /observing': () => [{}],
  'POST /take-over': () => [{ body: { since: '2026-01-01T00:00:00Z' } }],
  'POST /maintenance': () => [{ body: { on: true, reason: 'r' } }],
  'GET /me': () => [{}],
  'POST /session': () => [{}],
  'DELETE /session': () => [{}],
  'GET /verify': () => [{}],
  'GET /audit': (p) =>
    queries(
      '/audit',
      ...['limit=500', 'by=root&limit=3', `scheduleId=${p}active&limit=500`, 'by=billing-admin'],
      ...['schedules.bulk', 'limit.put,notifier.put', 'run.create'].map((action) => `action=${action}&limit=500`),
      `${forged({ at: 1.9e12, id: ZERO })}&limit=500`,
    ),
};

const ZERO = '00000000-0000-4000-8000-000000000000';

function namingNotifiers(p: string): object[] {
  return [
    { ...CHANNEL, fallback: `${p}bell`, filter: { ids: ['ops.*'] } },
    { ...CHANNEL, filter: { ids: [`${p}*`] } },
    { ...CHANNEL, filter: { ids: [`${p}active`, 'ops.active'] } },
    { ...CHANNEL, filter: { ids: [`${p.slice(0, 1)}*`] } },
    { ...CHANNEL, filter: { label: [`who:${p}`] } },
    {
      channel: { type: 'webhook', target: { ...HTTP, url: '/x', connection: `${p}con` } },
      filter: { ids: ['ops.*'] },
    },
    CHANNEL,
  ];
}
