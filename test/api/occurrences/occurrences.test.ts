import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { type Store, type TestInstance, createInstance, createStore } from '../../support/pipeline.ts';
import { type Receiver, startReceiver } from '../../support/receiver.ts';
import { until } from '../../support/until.ts';
import { type Answer, type Api, SCHEDULE, faultPaths, startApi } from '../api.ts';

let store: Store;
let api: Api;
let receiver: Receiver;
let instance: TestInstance;
beforeAll(async () => {
  store = await createStore();
  receiver = await startReceiver();
  instance = await createInstance(store);
  await instance.start();
  api = await startApi(store.url);
});
afterAll(async () => {
  await api.stop();
  await instance.stop();
  await receiver.close();
  await store.drop();
});

const MINUTE = 60_000;
const HOUR = 60 * MINUTE;
const DAY = 24 * HOUR;

interface Item {
  fireAt: string;
  state: string;
  reason?: string;
  runId?: string;
  version: number;
}

const itemsOf = (answer: Answer) => answer.body['items'] as unknown as Item[];
const nextOf = (answer: Answer) => answer.body['nextCursor'] as unknown as string | null;
const iso = (at: number) => new Date(at).toISOString();
const put = async (id: string, more: object) => {
  const target = { type: 'http', url: receiver.url };
  const answer = await api.call('PUT', `/api/v1/schedules/${id}`, { target, ...more });
  expect(answer.status).toBeLessThan(300);
};
const patch = async (id: string, more: object) => {
  expect((await api.call('PATCH', `/api/v1/schedules/${id}`, more)).status).toBe(200);
};
const remove = async (id: string) => {
  expect((await api.call('DELETE', `/api/v1/schedules/${id}`)).status).toBe(204);
};
const ask = (id: string, query: string) => api.call('GET', `/api/v1/schedules/${id}/occurrences?${query}`);

/** All pages. */
async function occurrences(id: string, from: number, to: number, limit = 100): Promise<Item[]> {
  const all: Item[] = [];
  let cursor = '';
  for (;;) {
    const answer = await ask(id, `from=${iso(from)}&to=${iso(to)}&limit=${limit}${cursor}`);
    expect(answer.status).toBe(200);
    all.push(...itemsOf(answer));
    const next = nextOf(answer);
    if (next === null) return all;
    expect(itemsOf(answer).length).toBeLessThanOrEqual(limit);
    cursor = `&cursor=${next}`;
  }
}

/** As if the schedule had been written, and last been looked at, that long ago. Answers when it was written. */
async function rewind(id: string, ms: number): Promise<number> {
  await api.sql`UPDATE schedule_versions SET at = at - make_interval(secs => ${ms / 1000}) WHERE schedule_id = ${id}`;
  const [row] = await api.sql<{ at: Date }[]>`
    SELECT at FROM schedule_versions WHERE schedule_id = ${id} ORDER BY at DESC LIMIT 1`;
  const at = Number(row?.at);
  const [first] = itemsOf(await api.call('GET', `/api/v1/schedules/${id}/upcoming?count=1&from=${iso(at)}`));
  await api.sql`UPDATE schedules SET created_at = ${iso(at)}, next_occurrence_at = ${first?.fireAt ?? null},
    next_fire_at = ${first?.fireAt ?? null} WHERE id = ${id}`;
  return at;
}

/** Until nothing of it is due any more. */
async function planned(id: string): Promise<void> {
  await until(async () => {
    const rows = await api.sql`SELECT FROM schedules WHERE id = ${id} AND next_fire_at > clock_timestamp()`;
    return rows.length > 0 ? true : null;
  });
}

/** The whole minutes of (from, to], or each minute's second. */
function minutes(from: number, to: number, second = 0): string[] {
  const all: string[] = [];
  const [shift, first] = [second * 1000, from - second * 1000];
  for (let at = Math.floor(first / MINUTE) * MINUTE + MINUTE + shift; at <= to; at += MINUTE) all.push(iso(at));
  return all;
}

/**
 * When a schedule fires that does so once in each minute or ten minutes, if no fire is to fall due while a test looks, and the last
 * one is to be late: even without a grace, a fire of the last second is on time.
 */
function farFromNow(): { second: number; minuteOfTen: number } {
  const after = (ms: number) => new Date(Date.now() + ms);
  return {
    second: after(MINUTE / 2).getUTCSeconds(),
    minuteOfTen: after(5 * MINUTE).getUTCMinutes() % 10,
  };
}

function tally(items: readonly Item[]): Record<string, number> {
  const counts: Record<string, number> = {};
  for (const { state, reason } of items) {
    const key = reason === undefined ? state : `${state} ${reason}`;
    counts[key] = (counts[key] ?? 0) + 1;
  }
  return counts;
}

describe('after an outage of three hours every fire is accounted for, with no gap', () => {
  test.each([
    ['latest', { missed: 'missed latest' }],
    ['skip', { missed: 'missed skip' }],
    ['all', { missed: 'missed limit' }],
  ] as const)('under %s', async (catchUp, { missed }) => {
    const { second } = farFromNow();
    await put(catchUp, { cron: `${second} * * * * *`, catchUp, catchUpLimit: 7, graceSeconds: 600 });
    const since = await rewind(catchUp, 3 * HOUR);
    instance.pipeline.tick.wake();
    await planned(catchUp);
    const now = since + 3 * HOUR;
    const items = await occurrences(catchUp, since, now, 37);
    expect(items.map(({ fireAt }) => fireAt)).toEqual(minutes(since, now - 1, second));
    const counts = tally(items);
    const fired = counts['fired'] ?? 0;
    expect(counts).toEqual({ fired, [missed]: items.length - fired });
    // On time are the last ten minutes; `all` fires seven of those before.
    expect(fired).toBe(catchUp === 'all' ? 17 : 10);
    const runs = await api.sql<{ id: string; scheduled_for: Date; coalesced: number }[]>`
      SELECT id, scheduled_for, coalesced FROM all_runs WHERE schedule_id = ${catchUp} AND scheduled_for < ${iso(now)}`;
    const own = new Map(runs.map((run) => [iso(Number(run.scheduled_for)), run.id]));
    const record = runs.find(({ coalesced }) => coalesced > 0);
    for (const { fireAt, runId } of items) expect(runId).toBe(own.get(fireAt) ?? record?.id);
    expect(runs.reduce((sum, run) => sum + 1 + run.coalesced, 0)).toBe(items.length);
  });
});

describe('missed fires', () => {
  test('can be made after all, also while paused: then each has its own run, and none is missed', async () => {
    const cron = `${farFromNow().minuteOfTen}-59/10 * * * *`;
    await put('filled', { cron, catchUp: 'skip', graceSeconds: 0 });
    const since = await rewind('filled', 3 * HOUR);
    instance.pipeline.tick.wake();
    await planned('filled');
    await patch('filled', { enabled: false, timeoutSeconds: 7 });
    const end = since + 3 * HOUR;
    const before = await occurrences('filled', since, end);
    expect(tally(before)).toEqual({ 'missed skip': 18 });
    const answer = await api.call('POST', '/api/v1/schedules/filled/backfill', {
      from: iso(since),
      to: iso(end),
    });
    expect([answer.status, answer.body]).toEqual([202, { created: before.length, existing: 0, remainingFrom: null }]);
    const runs = await until(async () => {
      const rows = await api.sql<{ id: string; status: string; trigger: string }[]>`
        SELECT id, status, trigger FROM all_runs WHERE schedule_id = 'filled'`;
      return rows.every(({ status }) => status !== 'pending' && status !== 'running') ? rows : null;
    });
    expect(new Set(runs.map(({ status, trigger }) => `${status} ${trigger}`))).toEqual(new Set(['succeeded backfill']));
    const arrived = receiver.arrivals.filter(({ body }) => body.scheduleId === 'filled');
    expect(arrived.map(({ body }) => body.scheduledFor).sort()).toEqual(before.map(({ fireAt }) => fireAt));
    const after = await occurrences('filled', since, end);
    expect(after.map(({ fireAt, runId }) => [fireAt, runId])).toEqual(
      arrived.map(({ body }) => [body.scheduledFor, body.runId]).sort(),
    );
    expect(tally(after)).toEqual({ fired: before.length });
  });
});

describe('a schedule that is edited', () => {
  test('shows each occurrence under its version: what was due before the edit stays as it was planned', async () => {
    await put('moved', { cron: '* * * * *', graceSeconds: 0 });
    const since = await rewind('moved', 30 * MINUTE);
    await patch('moved', { cron: '30 * * * * *', timezone: 'Asia/Tokyo' });
    const [row] = await api.sql<{ at: Date }[]>`
      SELECT at FROM schedule_versions WHERE schedule_id = 'moved' AND version = 2`;
    const edit = Number(row?.at);
    const items = await occurrences('moved', since, edit + 5 * MINUTE);
    const before = items.filter(({ version }) => version === 1);
    expect(before.map(({ fireAt }) => fireAt)).toEqual(minutes(since, edit));
    expect(new Set(before.slice(0, -1).map(({ state, reason }) => `${state} ${reason ?? ''}`))).toEqual(
      new Set(['missed latest']),
    );
    expect(before.at(-1)?.state).toBe('fired');
    const after = items.filter(({ version }) => version === 2);
    expect(after).toHaveLength(5);
    expect(after.every(({ fireAt }) => fireAt.endsWith(':30.000Z'))).toBe(true);
    expect(after.at(-1)?.state).toBe('upcoming');
  });

  test('thousands of times is shown in short pages, and completely', async () => {
    await put('busy', { cron: '0 * * * *' });
    const since = await rewind('busy', 6 * DAY);
    // A label every three minutes.
    await api.sql`INSERT INTO schedule_versions (schedule_uid, version, schedule_id, change, at, definition)
      SELECT schedule_uid, n, schedule_id, 'updated', at + n * interval '3 minutes', definition
      FROM schedule_versions, generate_series(2, 2800) n WHERE schedule_id = 'busy' AND version = 1`;
    await api.sql`UPDATE schedules SET version = 2800, next_occurrence_at = next_occurrence_at + interval '10 days',
      next_fire_at = next_fire_at + interval '10 days' WHERE id = 'busy'`;
    const from = `from=${iso(since)}&limit=500`;
    const first = await ask('busy', `${from}&to=${iso(since + 6 * DAY)}`);
    expect(first.body['nextCursor']).not.toBeNull();
    expect(itemsOf(first).length).toBeGreaterThan(0);
    const items = await occurrences('busy', since, since + 5 * DAY, 500);
    expect(items.map(({ fireAt }) => fireAt)).toEqual(
      minutes(since, since + 5 * DAY - 1).filter((minute) => minute.endsWith(':00:00.000Z')),
    );
    for (const { fireAt, version } of items) {
      const written = (Date.parse(fireAt) - since) / (3 * MINUTE);
      expect(Math.abs(version - written)).toBeLessThanOrEqual(1);
    }
  });
});

describe('while it is planned and edited', () => {
  test('no occurrence is ever unexplained', async () => {
    await put('live', { cron: '* * * * * *' });
    const [row] = await api.sql<{ created_at: Date }[]>`SELECT created_at FROM schedules WHERE id = 'live'`;
    const since = Number(row?.created_at);
    const edits = [{ labels: { a: 'b' } }, { jitterSeconds: 1 }, { cron: '*/2 * * * * *' }, { enabled: false }];
    const reset = { labels: null, jitterSeconds: null, cron: '* * * * * *', enabled: true };
    let rounds = 0;
    await until(async () => {
      const answer = await ask('live', `from=${iso(since)}&to=${iso(since + DAY)}&limit=500`);
      expect(itemsOf(answer).filter(({ reason }) => reason === 'unknown')).toEqual([]);
      const edit = edits[Math.floor(rounds / 2) % edits.length] ?? {};
      await patch('live', rounds % 2 === 0 ? edit : reset);
      rounds += 1;
      const fired = itemsOf(answer).filter(({ state }) => state === 'fired');
      return fired.length >= 4 && rounds >= 24 ? true : null;
    });
    await remove('live');
    const [end] = await api.sql<{ at: Date }[]>`
      SELECT at FROM schedule_versions WHERE schedule_id = 'live' AND change = 'deleted'`;
    const items = await occurrences('live', since, Number(end?.at) + DAY);
    expect(items.filter(({ state }) => state !== 'fired' && state !== 'paused')).toEqual([]);
    const runs = await api.sql<{ id: string }[]>`SELECT id FROM all_runs WHERE schedule_id = 'live'`;
    expect(items.flatMap(({ runId }) => runId ?? []).sort()).toEqual(runs.map(({ id }) => id).sort());
  });
});

describe('a deleted schedule', () => {
  test('keeps its occurrences, up to its deletion, and so does the one before it under the id', async () => {
    await put('phoenix', { cron: '* * * * *', graceSeconds: 0 });
    const since = await rewind('phoenix', 20 * MINUTE);
    await remove('phoenix');
    const [row] = await api.sql<{ at: Date }[]>`
      SELECT at FROM schedule_versions WHERE schedule_id = 'phoenix' AND change = 'deleted'`;
    const deleted = Number(row?.at);
    const items = await occurrences('phoenix', since, deleted + HOUR);
    expect(items.map(({ fireAt }) => fireAt)).toEqual(minutes(since, deleted));
    expect(tally(items)).toEqual({ 'missed latest': items.length - 1, fired: 1 });

    await put('phoenix', { cron: '30 * * * * *' });
    const again = await occurrences('phoenix', since, deleted + 10 * MINUTE);
    expect(again.slice(0, items.length)).toEqual(items);
    const later = again.slice(items.length);
    expect(later.length).toBeGreaterThan(5);
    expect(later.every(({ fireAt, version }) => fireAt.endsWith(':30.000Z') && version === 1)).toBe(true);
  });
});

describe('a schedule that cannot be planned', () => {
  test('has upcoming occurrences, with the reason that it is in error', async () => {
    await put('broken', { cron: '* * * * *' });
    // No instance can have planned a fire that is rewound before the schedule is in error.
    await api.sql`UPDATE schedules SET enabled = false WHERE id = 'broken'`;
    const since = await rewind('broken', 5 * MINUTE);
    await api.sql`UPDATE schedules SET enabled = true, error = 'no such zone',
      next_fire_at = clock_timestamp() + interval '1 hour' WHERE id = 'broken'`;
    expect(tally(await occurrences('broken', since, since + 5 * MINUTE))).toEqual({ 'upcoming error': 5 });
  });

  test('is reported for the broken version, and the fires of other versions are shown all the same', async () => {
    await put('odd', { cron: '* * * * *' });
    const since = await rewind('odd', 5 * MINUTE);
    await remove('odd');
    await api.sql`UPDATE schedule_versions SET definition = jsonb_set(definition, '{cron}', '"soon"')
      WHERE schedule_id = 'odd'`;
    const answer = await ask('odd', `from=${iso(since)}&to=${iso(since + HOUR)}`);
    expect(itemsOf(answer).length).toBeGreaterThan(0);
    expect(new Set(itemsOf(answer).map(({ state }) => state))).toEqual(new Set(['fired']));
    expect(answer.body['unplannable']).toMatchObject([{ version: 1, from: iso(since) }]);
  });
});

describe('a page', () => {
  test('is ascending, begins after the previous one, and is quick for a week of seconds', async () => {
    await put('seconds', { cron: '* * * * * *' });
    const since = await rewind('seconds', 7 * DAY);
    await api.sql`UPDATE schedules SET next_occurrence_at = clock_timestamp() + interval '1 day',
      next_fire_at = clock_timestamp() + interval '1 day' WHERE id = 'seconds'`;
    const from = Math.ceil(since / 1000) * 1000;
    const query = `from=${iso(from)}&limit=500`;
    const first = await ask('seconds', query);
    const second = await ask('seconds', `${query}&cursor=${nextOf(first) ?? ''}`);
    const fireTimes = [...itemsOf(first), ...itemsOf(second)].map(({ fireAt }) => Date.parse(fireAt));
    expect(fireTimes).toHaveLength(1000);
    expect(fireTimes.map((at) => (at - Math.min(...fireTimes)) / 1000)).toEqual(
      Array.from({ length: 1000 }, (_, n) => n),
    );
  });

  test('covers the last day by default, or the first day of a period that begins in the future', async () => {
    await put('daily', { cron: '0 * * * *', startAt: '2020-01-01T00:00:00Z' });
    expect(itemsOf(await ask('daily', ''))).toEqual([]);
    const [row] = await api.sql<{ now: Date }[]>`SELECT clock_timestamp() AS now`;
    const now = Number(row?.now);
    const future = itemsOf(await ask('daily', `from=${iso(now + DAY)}`));
    expect(future).toHaveLength(24);
    expect(new Set(future.map(({ state }) => state))).toEqual(new Set(['upcoming']));
    expect(Date.parse(future[0]?.fireAt ?? '') - now).toBeLessThanOrEqual(DAY + HOUR);
  });
});

describe('a question', () => {
  test.each([
    ['from=2026-01-02T00:00:00Z&to=2026-01-02T00:00:00Z', ['to']],
    ['from=x&to=y&limit=0&cursor=z&state=fired', ['cursor', 'from', 'limit', 'state', 'to']],
    [`cursor=${Buffer.from('{"fireAt":1,"uid":"x"}').toString('base64url')}`, ['cursor']],
  ])('that is none is refused: ?%s', async (query, paths) => {
    await put('some', SCHEDULE);
    const answer = await ask('some', query);
    expect([answer.status, faultPaths(answer)]).toEqual([400, paths]);
  });

  test('is 404 if the id was never known', async () => {
    expect((await ask('nobody', '')).status).toBe(404);
  });

  test('about a schedule that follows others is 409, and points at its runs', async () => {
    await put('parent', SCHEDULE);
    await put('follower', { after: { scheduleId: 'parent' } });
    for (const path of ['occurrences', 'upcoming']) {
      const answer = await api.call('GET', `/api/v1/schedules/follower/${path}`);
      expect(answer.status).toBe(409);
      expect(answer.body['detail']).toContain('/schedules/follower/runs');
    }
    await remove('follower');
    expect((await ask('follower', '')).status).toBe(409);
  });
});
