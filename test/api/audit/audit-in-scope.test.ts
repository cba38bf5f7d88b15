import { beforeAll, expect, test, describe } from 'vitest';
import { ATTACK } from '../../support/runner/attack.ts';
import { until } from '../../support/until.ts';
import { SCHEDULE } from '../api.ts';
import { type Teammate, twoTeams, walked } from '../access/support.ts';

const teams = twoTeams();
const { api, call, done } = teams;
const PULL = { target: { type: 'pull', queue: 'ops.pulled' } };

interface Entry {
  by: string;
  action: string | null;
  subject: string | null;
  outcome: string;
  detail: { call?: string; needs?: string; action?: string };
}

/** Each entry as a text; a run by its name. */
const names = new Map<string, string>();
async function read(who: Teammate, query = ''): Promise<string[]> {
  const page = await done(who, 'GET', `/audit?limit=500${query}`);
  return (page['items'] as unknown as Entry[]).map(({ by, action, subject, outcome, detail }) =>
    [outcome === 'refused' ? 'refused' : '', action ?? detail.call, names.get(subject ?? '') ?? subject, 'by', by]
      .filter((word) => word !== '' && word !== null)
      .join(' '),
  );
}

async function newRun(key?: string): Promise<string> {
  const made = await done('all', 'POST', '/runs', { ...PULL, ...(key !== undefined && { key }) });
  const id = made['id'] as unknown as string;
  names.set(id, `run ${key ?? 'without a key'}`);
  return id;
}

beforeAll(async () => {
  const limit = { maxRunning: 1 };
  for (const [who, prefix] of [
    ['billing', 'billing.'],
    ['ops', 'ops.'],
    ['platform', 'shared.'],
  ] as const) {
    await done(who, 'PUT', `/limits/${prefix}l`, limit);
    await done(who, 'PUT', `/schedules/${prefix}s`, SCHEDULE);
  }
  await done('all', 'PUT', '/limits/alone', limit);
  await done('all', 'PUT', '/calendars/billing.c', { dates: [] });
  await done('all', 'POST', '/maintenance', { on: true });
  await done('all', 'POST', '/maintenance', { on: false });
  for (const key of ['billing.run', 'ops.run', undefined])
    await done('all', 'POST', `/runs/${await newRun(key)}/cancel`);
  await done('all', 'POST', '/schedules/bulk', { action: 'pause', filter: { q: 'ops.s' } });
  await done('ops', 'POST', '/schedules/bulk', { action: 'resume', filter: { q: 'ops.s' } });
  for (const [who, path] of [
    ['reader', '/limits/billing.l'],
    ['reader', '/limits/shared.l'],
    ['reader', '/schedules/bulk'],
    ['outsider', '/limits/billing.l'],
    ['outsider', '/limits/ops.l'],
    ['ops', '/limits/shared.l'],
  ] as const)
    expect((await call(who, path.endsWith('bulk') ? 'POST' : 'PUT', path, limit)).status).toBe(403);
  // Of what is not in its scope, no call is refused: it is not there.
  expect((await call('reader', 'PUT', '/limits/ops.l', limit)).status).toBe(404);
  await until(async () => (await api.sql`SELECT FROM audit WHERE outcome = 'refused'`).length === 6 || null);
});

const SHARED = ['limit.put shared.l by platform-admin', 'schedule.create shared.s by platform-admin'];
const OF_BILLING = [
  'limit.put billing.l by billing-admin',
  'schedule.create billing.s by billing-admin',
  'calendar.put billing.c by everything',
  'run.create run billing.run by everything',
  'run.cancel run billing.run by everything',
  'refused limit.put billing.l by billing-reader',
  'refused limit.put shared.l by billing-reader',
  'refused schedules.bulk by billing-reader',
  'refused limit.put billing.l by reads-all',
];
const OF_OPS = [
  'limit.put ops.l by ops-admin',
  'schedule.create ops.s by ops-admin',
  'run.create run ops.run by everything',
  'run.cancel run ops.run by everything',
  'schedules.bulk by ops-admin',
  'refused limit.put ops.l by reads-all',
  'refused limit.put shared.l by ops-admin',
];

test(
  'a team reads what was done to what it sees, whoever did it, and what its own were refused',
  { tags: [ATTACK] },
  async () => {
    expect((await read('billing')).sort()).toEqual([...SHARED, ...OF_BILLING].sort());
    expect((await read('ops')).sort()).toEqual([...SHARED, ...OF_OPS].sort());
    const all = await read('all');
    expect(all).toEqual(expect.arrayContaining([...SHARED, ...OF_BILLING, ...OF_OPS]));
    expect(all).toContain('schedules.bulk by everything');
    expect(all).toContain('run.cancel run without a key by everything');
  },
);

test('no filter reaches what a team does not see', { tags: [ATTACK] }, async () => {
  expect(await read('billing', '&scheduleId=ops.s')).toEqual([]);
  expect(await read('billing', '&scheduleId=unknown')).toEqual([]);
  expect(await read('ops', '&scheduleId=ops.s')).toEqual(['schedule.create ops.s by ops-admin']);
  expect(await read('billing', '&by=ops-admin')).toEqual([]);
  expect(await read('billing', '&action=run.cancel')).toEqual(['run.cancel run billing.run by everything']);
  expect(await read('billing', '&action=maintenance.on')).toEqual([]);
});

test('page by page, behind very many entries of others, it is the same', { tags: [ATTACK] }, async () => {
  await api.sql`INSERT INTO audit (at, role, action, subject, schedule_id, outcome, detail)
    SELECT clock_timestamp(), 'worker', 'run.complete', 'r', 'other', 'done', '{}' FROM generate_series(1, 10500)`;
  const found: string[] = [];
  for (let cursor = ''; ;) {
    const page = await done('billing', 'GET', `/audit?limit=3${cursor}`);
    const items = page['items'] as unknown as Entry[];
    found.push(...items.map(({ by, action, subject }) => [by, action, subject].join(' ')));
    const next = page['nextCursor'] as unknown as string | null;
    if (next === null) break;
    cursor = `&cursor=${encodeURIComponent(next)}`;
  }
  expect(found).toHaveLength(SHARED.length + OF_BILLING.length);
});

test('entries from before there were scopes are read where their schedule or subject says enough', async () => {
  const entry = (action: string, subject: string | null, scheduleId: string | null) => api.sql`
    INSERT INTO audit (at, by, role, action, subject, schedule_id, outcome, detail)
    VALUES (now(), 'once', 'admin', ${action}, ${subject}, ${scheduleId}, 'done', '{}')`;
  await entry('notifier.put', 'billing.old', null);
  await entry('run.cancel', 'of-billing', 'billing.old');
  await entry('run.cancel', 'billing.one-off', null);
  await entry('schedules.bulk', null, null);
  await entry('connection.put', 'ops.old', null);
  expect((await read('billing', '&by=once')).sort()).toEqual([
    'notifier.put billing.old by once',
    'run.cancel of-billing by once',
  ]);
});

test(
  'a worker of a queue of its team leaves no trace of whose the run is in the audit of the team',
  { tags: [ATTACK] },
  async () => {
    const id = await newRun('billing.worked');
    const { items } = (await done('ops', 'POST', '/queues/ops.pulled/claim', {
      workerId: 'w',
    })) as unknown as {
      items: { id: string; attempt: number }[];
    };
    expect(items.map((one) => one.id)).toContain(id);
    await done('ops', 'POST', `/runs/${id}/complete`, { status: 'succeeded', attempt: 1, workerId: 'w' });
    expect(await read('billing', '&action=run.complete')).toEqual(['run.complete run billing.worked by ops-admin']);
    expect(await read('ops', '&action=run.complete')).toEqual([]);
  },
);

describe('episodes', () => {
  /** From the oldest to the newest: a few of each team, and then very many of others. */
  const EPISODES = ['billing.a', 'ops.a', 'billing.b', 'shared.a', 'alone'];
  beforeAll(async () => {
    await api.sql`INSERT INTO alerts (id, schedule_uid, schedule_id, kind, since, broken_at, until)
    SELECT ('019b0000-0000-7000-8000-' || lpad(to_hex(place), 12, '0'))::uuid, gen_random_uuid(), id, 'failed',
      timestamptz '2026-01-01' + place * interval '1 s', timestamptz '2026-01-01' + place * interval '1 s',
      CASE WHEN id = 'billing.a' THEN now() END
    FROM unnest(${EPISODES}::text[]) WITH ORDINALITY AS e(id, place)`;
  });

  const others = (count: number) => api.sql`
  INSERT INTO alerts (id, schedule_uid, schedule_id, kind, since, broken_at)
  SELECT ('019b0000-0000-7000-9000-' || lpad(to_hex(n), 12, '0'))::uuid, gen_random_uuid(), 'other-' || n, 'failed', now(), now()
  FROM generate_series(1, ${count}::int) AS n`;

  async function schedules(who: Teammate, query = ''): Promise<string[]> {
    const page = await done(who, 'GET', `/alerts?limit=500${query}`);
    return (page['items'] as unknown as { scheduleId: string }[]).map(({ scheduleId }) => scheduleId);
  }

  test('a team reads the episodes of its schedules and of shared ones, newest first', { tags: [ATTACK] }, async () => {
    expect(await schedules('reader')).toEqual(['shared.a', 'billing.b', 'billing.a']);
    expect(await schedules('reader', '&open=true')).toEqual(['shared.a', 'billing.b']);
    expect(await schedules('ops')).toEqual(['shared.a', 'ops.a']);
    expect(await schedules('ops', '&scheduleId=ops.a')).toEqual(['ops.a']);
    expect(await schedules('ops', '&scheduleId=billing.a')).toEqual([]);
    expect(await schedules('ops', '&scheduleId=unknown')).toEqual([]);
    expect(await schedules('all')).toEqual([...EPISODES].reverse());
  });

  test(
    'the episodes of a small team are found behind very many of others, page by page',
    { tags: [ATTACK] },
    async () => {
      await others(10_500);
      const small = ['shared.a', 'billing.b', 'billing.a'];
      expect(await schedules('reader')).toEqual(small);
      expect(await schedules('reader', '&open=true')).toEqual(small.slice(0, 2));
      expect(await walked(teams, 'reader', '/alerts?limit=1')).toHaveLength(3);
    },
  );
});
