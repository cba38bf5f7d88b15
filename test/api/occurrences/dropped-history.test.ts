import { beforeAll, describe, expect, test } from 'vitest';
import { changeRun } from '../../support/run-rows.ts';
import { TARGET, faultPaths, idsOf, quietApi } from '../api.ts';

const DAY = 86_400_000;

const api = quietApi();
let today: number;
const iso = (daysAgo: number) => new Date(today - daysAgo * DAY).toISOString();
beforeAll(async () => {
  const [row] = await api.sql<{ today: Date }[]>`SELECT date_trunc('day', clock_timestamp(), 'UTC') AS today`;
  today = Number(row?.today);
});

const textOf = (value: unknown) => value as string;
const post = (body: object) => api.call('POST', '/api/v1/runs', { target: TARGET, ...body });
const get = (id: string) => api.call('GET', `/api/v1/runs/${id}`);

async function put(id: string) {
  const answer = await api.call('PUT', `/api/v1/schedules/${id}`, { target: TARGET, cron: '0 12 * * *' });
  expect(answer.status).toBe(201);
  await api.sql`UPDATE schedules SET created_at = ${iso(40)} WHERE id = ${id}`;
  await api.sql`UPDATE schedule_versions SET at = ${iso(40)} WHERE schedule_id = ${id}`;
}

async function created(body: object = {}): Promise<string> {
  const answer = await post(body);
  expect([answer.status, answer.text]).toEqual([201, expect.any(String)]);
  return textOf(answer.body['id']);
}

/** As when the day on which they ended is dropped, unread: keys and dependencies stay behind until they are swept. */
async function endAndDrop(...ids: string[]) {
  for (const id of ids) await changeRun(api.sql, id, { status: 'succeeded' });
  await api.sql`DELETE FROM history WHERE id = ANY (${ids})`;
}

test('a run that was dropped is 404, and in no list', async () => {
  const id = await created({ key: 'listed' });
  await endAndDrop(id);
  expect((await get(id)).status).toBe(404);
  for (const action of ['cancel', 'retry', 'heartbeat'])
    expect((await api.call('POST', `/api/v1/runs/${id}/${action}`)).status).toBe(404);
  expect(idsOf(await api.call('GET', '/api/v1/runs'))).not.toContain(id);
  expect(idsOf(await api.call('GET', '/api/v1/runs?key=listed'))).toEqual([]);
});

describe('a key whose run was dropped is free again', () => {
  test('for the same body and for another', async () => {
    for (const payload of [1, 2]) {
      const id = await created({ key: 'once', payload });
      const again = await post({ key: 'once', payload });
      expect([again.status, again.body['id']]).toEqual([200, id]);
      await endAndDrop(id);
    }
  });

  test('for one of several calls that use it at the same moment', async () => {
    const old = await created({ key: 'contested' });
    await endAndDrop(old);
    const answers = await Promise.all(Array.from({ length: 8 }, () => post({ key: 'contested' })));
    expect(answers.map(({ status }) => status).sort()).toEqual([...Array<number>(7).fill(200), 201]);
    const made = new Set(answers.map(({ body }) => textOf(body['id'])));
    expect([made.size, made.has(old)]).toEqual([1, false]);
    expect(await api.sql`SELECT run_id FROM run_keys WHERE key = 'contested'`).toEqual(
      [...made].map((run_id) => ({ run_id })),
    );
  });

  test('for batches that use several of them in different orders', async () => {
    const keys = Array.from({ length: 20 }, (_, n) => `batched-${n}`);
    const items = keys.map((key, n) => ({ ref: `r${n}`, target: TARGET, key }));
    const batch = (list: object[]) => api.call('POST', '/api/v1/runs/batch', { items: list });
    const old = idsOf(await batch(items));
    await endAndDrop(...old.slice(5, 15));
    const answers = await Promise.all(Array.from({ length: 6 }, (_, n) => batch(n % 2 ? items : items.toReversed())));
    expect(answers.map(({ status }) => status).sort()).toEqual([200, 200, 200, 200, 200, 201]);
    const sets = answers.map((answer) => JSON.stringify(idsOf(answer).toSorted()));
    expect(new Set(sets).size).toBe(1);
    const now = idsOf(await batch(items));
    expect(now.map((id, n) => id === old[n])).toEqual(keys.map((_, n) => n < 5 || n >= 15));
  });

  test('for a manual fire', async () => {
    await put('keyed');
    const fire = () => api.call('POST', '/api/v1/schedules/keyed/fire', {}, { 'idempotency-key': 'k' });
    const first = await fire();
    await endAndDrop(textOf(first.body['id']));
    const second = await fire();
    expect([first.status, second.status]).toEqual([202, 202]);
    expect(second.body['id']).not.toBe(first.body['id']);
    expect((await fire()).body['id']).toBe(second.body['id']);
  });
});

describe('a dropped run', () => {
  test('cannot be a dependency: 422 names it', async () => {
    const id = await created();
    await endAndDrop(id);
    const answer = await post({ dependsOn: [id] });
    expect([answer.status, faultPaths(answer)]).toEqual([422, ['/dependsOn/0']]);
    expect(answer.text).toContain(`names a run that does not exist: ${id}`);
  });

  test('makes no dependent wait, and a dependent can be opened again by itself', async () => {
    const first = await created();
    const second = await created({ dependsOn: [first] });
    await changeRun(api.sql, first, { status: 'running', attempts: 1 });
    await api.call('POST', `/api/v1/runs/${first}/complete`, { status: 'succeeded' });
    await api.applyEffects();
    await endAndDrop(first);
    expect((await get(second)).body).toMatchObject({ status: 'pending', dependsOn: [first] });
    await api.call('POST', `/api/v1/runs/${second}/cancel`);
    const opened = await api.call('POST', `/api/v1/runs/${second}/retry`);
    expect([opened.status, opened.body['status']]).toEqual([200, 'pending']);
  });

  test('is made again by a backfill of its time, under the id it had', async () => {
    await put('again');
    const backfill = async () => {
      const body = { from: iso(12), to: iso(8) };
      const answer = await api.call('POST', '/api/v1/schedules/again/backfill', body);
      const rows = await api.sql<{ id: string }[]>`SELECT id FROM all_runs WHERE schedule_id = 'again' ORDER BY id`;
      return { created: answer.body['created'], ids: rows.map(({ id }) => id) };
    };
    const first = await backfill();
    expect(first.created).toBe(4);
    await endAndDrop(...first.ids);
    expect(await backfill()).toEqual(first);
    expect((await backfill()).created).toBe(0);
  });

  test('leaves its occurrence without a run: because of the retention, or unexplained within it', async () => {
    await put('told');
    const period = { from: iso(32), to: iso(28) };
    await api.call('POST', '/api/v1/schedules/told/backfill', period);
    const states = async () => {
      const query = `from=${period.from}&to=${period.to}`;
      const { body } = await api.call('GET', `/api/v1/schedules/told/occurrences?${query}`);
      const items = body['items'] as unknown as { state: string; reason?: string }[];
      return items.map(({ state, reason }) => [state, reason]);
    };
    expect(await states()).toEqual(Array(4).fill(['fired', undefined]));
    const rows = await api.sql<{ id: string }[]>`SELECT id FROM all_runs WHERE schedule_id = 'told'`;
    await endAndDrop(...rows.map(({ id }) => id));
    const found = await states();
    // The third is on either side, by the time of day.
    expect([...found.slice(0, 2), found[3]]).toEqual([
      ['missed', 'retention'],
      ['missed', 'retention'],
      ['missed', 'unknown'],
    ]);
  });
});
