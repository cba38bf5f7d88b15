// @module-tag long
import { describe, expect, test } from 'vitest';
import { newToken } from '../access/support.ts';
import { type Json, SCHEDULE, TARGET, sharedApi } from '../api.ts';

const ann = newToken('ann', 'admin');
const eve = newToken('eve', 'admin', null, ['a.', 'b.']);
const api = sharedApi({ apiTokens: [ann.known, eve.known] });
const MIB = 1024 * 1024;
/** A page ends with the row that reaches 4 MiB. */
const MOST = 4 * MIB + 256 * 1024;
const COUNT = 100;
const PAYLOAD = 'p'.repeat(60 * 1024);
const ids = Array.from({ length: COUNT }, (_, index) => `a.${String(index).padStart(3, '0')}`);

const put = async (path: string, body: unknown, who = ann) => {
  const { status, text } = await api.call('PUT', `/api/v1/${path}`, body, who.headers);
  expect([path, status, status < 300 ? '' : text]).toEqual([path, 201, '']);
};

/** All that a list has, page by page as large as may be, and how large each was. */
async function readAll(path: string, who = ann): Promise<{ items: Json[]; sizes: number[] }> {
  const [items, sizes]: [Json[], number[]] = [[], []];
  const query = `${path}${path.includes('?') ? '&' : '?'}limit=500`;
  let cursor: string | null = null;
  do {
    const page: string = cursor === null ? query : `${query}&cursor=${cursor}`;
    const { status, text, body } = await api.call('GET', `/api/v1/${page}`, undefined, who.headers);
    expect([status, status === 200 ? '' : text]).toEqual([200, '']);
    sizes.push(Buffer.byteLength(text));
    items.push(...(body['items'] as never as Json[]));
    cursor = (body['nextCursor'] ?? null) as never as string | null;
  } while (cursor !== null);
  return { items, sizes };
}

async function expectPages(path: string, expected: readonly (string | number)[], idOf = 'id', who = ann) {
  const { items, sizes } = await readAll(path, who);
  expect([path, items.map((item) => item[idOf])]).toEqual([path, expected]);
  expect(Math.max(...sizes)).toBeLessThan(MOST);
  expect(sizes.length).toBeGreaterThan(1);
}

/** Copies of the row with the first id, under these ids. */
async function copy(table: string, first: string, others: readonly string[], key = 'id'): Promise<void> {
  await api.sql`INSERT INTO ${api.sql(table)} SELECT (jsonb_populate_record(t, jsonb_build_object(${key}::text, x.id))).*
    FROM ${api.sql(table)} t, unnest(${others as string[]}::text[]) AS x(id) WHERE t.${api.sql(key)} = ${first}`;
}

describe('a page ends at four MiB, and nextCursor goes on:', () => {
  test('runs, of a schedule with a large payload and of none; also by label and in a scope', async () => {
    await put('schedules/a.often', {
      cron: '* * * * *',
      enabled: false,
      target: TARGET,
      payload: PAYLOAD,
      labels: { team: 'x' },
    });
    const period = { from: '2026-01-01T00:00:00Z', to: '2026-01-01T02:00:00Z', limit: COUNT };
    const filled = await api.call('POST', '/api/v1/schedules/a.often/backfill', period, ann.headers);
    expect(filled.body).toMatchObject({ created: COUNT });
    const often = await newestFirst();
    const items = ids.map((ref) => ({ ref, key: ref, target: TARGET, payload: PAYLOAD }));
    expect((await api.call('POST', '/api/v1/runs/batch', { items }, ann.headers)).status).toBe(201);
    const all = await newestFirst();
    expect([often.length, all.length]).toEqual([COUNT, 2 * COUNT]);
    for (const who of [ann, eve]) {
      await expectPages('runs', all, 'id', who);
      await expectPages('runs?label=team:x', often, 'id', who);
    }
    await expectPages('schedules/a.often/runs', often);
    await api.call('DELETE', '/api/v1/schedules/a.often', undefined, ann.headers);
  });

  test('schedules and their versions, also by a text, and in a scope', async () => {
    const items = ids.map((id) => ({ ...SCHEDULE, id, description: 'some', payload: PAYLOAD }));
    items.push({ ...SCHEDULE, id: 'b.last', description: 'some', payload: '' });
    expect((await api.call('POST', '/api/v1/schedules/batch', { items }, ann.headers)).status).toBe(200);
    for (const who of [ann, eve])
      for (const path of ['schedules', 'schedules?q=some']) await expectPages(path, [...ids, 'b.last'], 'id', who);
    await api.sql`INSERT INTO schedule_versions SELECT (jsonb_populate_record(v, jsonb_build_object('version', n))).*
      FROM schedule_versions v, generate_series(2, ${COUNT}::int) n WHERE v.schedule_id = 'a.000'`;
    const versions = Array.from({ length: COUNT }, (_, index) => COUNT - index);
    await expectPages('schedules/a.000/versions', versions, 'version');
  });

  test('calendars, connections and notifiers, in a scope too', async () => {
    const dates = Array.from({ length: 2000 }, (_, day) => {
      const date = new Date(Date.UTC(2030, 0, 1 + 2 * day)).toISOString().slice(0, 10);
      return `${date}/${date}`;
    });
    const large = 'h'.repeat(4000);
    const headers = Object.fromEntries(Array.from({ length: 16 }, (_, index) => [`x-${index}`, large]));
    const body = { template: 't'.repeat(60 * 1024), contentType: 'text/plain' };
    const channel = { type: 'webhook', target: { ...TARGET, body } };
    await put('calendars/a.000', { dates });
    await put('connections/a.000', { url: 'https://api.example', headers });
    await put('notifiers/a.000', { on: ['failed'], filter: { ids: ['a.*'] }, channel });
    const rest = [...ids.slice(1), 'b.last'];
    await copy('calendar_versions', 'a.000', rest, 'calendar_id');
    for (const table of ['calendars', 'connections', 'notifiers']) {
      await copy(table, 'a.000', rest);
      // The secret values of connections are not answered, but read.
      for (const who of [ann, eve]) await expectPages(table, [...ids, 'b.last'], 'id', who);
    }
  });
});

async function newestFirst(): Promise<string[]> {
  return (await api.sql<{ id: string }[]>`SELECT id FROM all_runs ORDER BY id DESC`).map(({ id }) => id);
}
