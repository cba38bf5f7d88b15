import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { plannedRunId } from '../../../src/core/runs/run.ts';
import { changeRun } from '../../support/run-rows.ts';
import { type Api, TARGET, faultPaths, startApi } from '../api.ts';

let api: Api;
/** A whole hour. */
let now: number;
beforeAll(async () => {
  api = await startApi();
  const [row] = await api.sql<{ now: Date }[]>`SELECT date_trunc('hour', clock_timestamp()) AS now`;
  now = Number(row?.now);
});
afterAll(() => api.stop());

const HOUR = 3_600_000;
const iso = (at: number) => new Date(at).toISOString();
const hours = (ago: number) => iso(now - ago * HOUR);
const pull = (queue: string) => ({ type: 'pull', queue });

/** Writes it once for each definition, and says since how many hours each is in force. */
async function put(id: string, versions: readonly [hoursAgo: number, definition: object][]): Promise<void> {
  for (const [, definition] of versions) {
    const { status } = await api.call('PUT', `/api/v1/schedules/${id}`, { target: TARGET, ...definition });
    expect(status).toBeLessThan(300);
  }
  for (const [index, [hoursAgo]] of versions.entries())
    await api.sql`UPDATE schedule_versions SET at = ${hours(hoursAgo)} WHERE schedule_id = ${id} AND version = ${index + 1}`;
  await api.sql`UPDATE schedules SET created_at = ${hours(versions[0]?.[0] ?? 0)} WHERE id = ${id}`;
}

async function backfill(id: string, fromHours: number, toHours: number, more: object = {}) {
  const body = { from: hours(fromHours), to: hours(toHours), as: 'then', ...more };
  const answer = await api.call('POST', `/api/v1/schedules/${id}/backfill`, body);
  return { ...answer, result: [answer.status, answer.body] };
}

const done = (created: number, existing: number, remainingFrom: string | null = null) => [
  202,
  { created, existing, remainingFrom },
];

/** How many hours ago each run is of, under which version and in which lane. */
async function runs(id: string) {
  const rows = await api.sql<
    { id: string; uid: string; at: Date; version: number; lane: string; trigger: string; status: string }[]
  >`SELECT id, schedule_uid AS uid, scheduled_for AS at, schedule_version AS version, lane, trigger, status FROM all_runs
    WHERE schedule_id = ${id} ORDER BY scheduled_for`;
  for (const row of rows) expect(row.id).toBe(plannedRunId(row.uid, Number(row.at)));
  return rows.map(({ at, version }) => `${(now - Number(at)) / HOUR} v${version}`);
}

describe('a backfill as it was', () => {
  test('makes each moment by the version that was in force, paused or not, and nothing before its creation', async () => {
    await put('edited', [
      [10.5, { cron: '0 * * * *', target: pull('first') }],
      [7.5, { cron: '30 * * * *', target: pull('second'), priority: 'high', expiresAfterSeconds: 600 }],
      [5, { cron: '0 * * * *', target: pull('second'), enabled: false }],
      [2.5, { cron: '0 */2 * * *', target: pull('third') }],
    ]);
    const last = new Date(now).getUTCHours() % 2 === 0 ? ['2 v4'] : ['1 v4'];
    const expected = ['10 v1', '9 v1', '8 v1', '6.5 v2', '5.5 v2', '4 v3', '3 v3', ...last];
    expect((await backfill('edited', 24, 0)).result).toEqual(done(8, 0));
    expect(await runs('edited')).toEqual(expected);
    const rows = await api.sql`SELECT DISTINCT lane, priority, expires_after_seconds AS expires FROM runs
      WHERE schedule_id = 'edited' ORDER BY lane`;
    expect(rows).toEqual([
      { lane: 'pull first', priority: 1, expires: null },
      { lane: 'pull second', priority: 0, expires: 600 },
      { lane: 'pull second', priority: 1, expires: null },
      { lane: 'pull third', priority: 1, expires: null },
    ]);
    expect((await backfill('edited', 24, 0)).result).toEqual(done(0, 8));
  });

  test('says of each moment what the list of occurrences says, which has a run for each afterwards', async () => {
    await put('listed', [
      [40.5, { cron: '*/20 * * * *', jitterSeconds: 600 }],
      [30.2, { everySeconds: 1500 }],
      [20.1, { cron: '0 * * * *', exclude: { dates: [hours(24).slice(0, 10)] } }],
      [10.3, { cron: '7 * * * *', enabled: false, jitterSeconds: 300 }],
    ]);
    const list = async () => {
      const path = `/api/v1/schedules/listed/occurrences?from=${hours(48)}&to=${hours(0)}&limit=500`;
      const { items } = (await api.call('GET', path)).body as unknown as {
        items: { fireAt: string; state: string; version: number }[];
      };
      return items;
    };
    const before = (await list()).filter(({ state }) => state !== 'excluded');
    expect((await backfill('listed', 48, 0)).result).toEqual(done(before.length, 0));
    const after = (await list()).filter(({ state }) => state !== 'excluded');
    expect(after).toEqual(
      before.map(
        ({ fireAt, version }) => expect.objectContaining({ fireAt, version, state: 'fired' }) as unknown,
      ),
    );
  });

  test('goes on where its limit ended it, and opens what was skipped again, under the version of its moment', async () => {
    await put('limited', [
      [10.5, { cron: '0 * * * *' }],
      [6.5, { cron: '0 * * * *', description: 'second' }],
    ]);
    expect((await backfill('limited', 10, 0, { limit: 6 })).result).toEqual(done(6, 0, hours(4)));
    const [eight] = await api.sql<
      { id: string }[]
    >`SELECT id FROM runs WHERE schedule_id = 'limited' AND scheduled_for = ${hours(8)}`;
    await changeRun(api.sql, eight?.id ?? '', {
      ...{
        status: 'skipped',
        trigger: 'schedule',
        reason: 'missed',
        schedule_version: 2,
        finished_at: iso(now),
      },
    });
    expect((await backfill('limited', 10, 3)).result).toEqual(done(2, 5));
    expect(await runs('limited')).toEqual(['10 v1', '9 v1', '8 v1', '7 v1', '6 v2', '5 v2', '4 v2']);
  });

  test('makes nothing of what was observed then, since another scheduler ran it', async () => {
    await put('moved-here', [
      [6.5, { cron: '0 * * * *', observe: { until: null } }],
      [3.5, { cron: '0 * * * *', observe: null }],
    ]);
    const { result } = await backfill('moved-here', 6, 1);
    expect(result).toEqual(done(2, 3));
    expect(await runs('moved-here')).toEqual(['3 v2', '2 v2']);
  });

  test('is refused where a version is not stored any more, and says since when all are', async () => {
    await put('holes', [
      [10.5, { cron: '0 * * * *' }],
      [8.5, { cron: '0 * * * *', description: '2' }],
      [6.5, { cron: '0 * * * *', description: '3' }],
    ]);
    await api.sql`DELETE FROM schedule_versions WHERE schedule_id = 'holes' AND version = 2`;
    const refused = await backfill('holes', 7, 0);
    expect([refused.status, faultPaths(refused)]).toEqual([422, ['/from']]);
    expect(refused.text).toContain(`must be after ${hours(6.5)}`);
    expect((await backfill('holes', 10, 9)).status).toBe(422);
    expect((await backfill('holes', 6, 0)).result).toEqual(done(6, 0));
    expect((await backfill('holes', 7, 0, { as: 'now' })).result).toEqual(done(1, 6));
  });

  test('is refused where a version names a limit or a connection that was deleted, or cannot be planned', async () => {
    await api.call('PUT', '/api/v1/limits/few', { maxRunning: 2 });
    await put('named', [
      [10.5, { cron: '0 * * * *', limit: 'few' }],
      [6.5, { cron: '0 * * * *' }],
    ]);
    await api.sql`UPDATE schedule_versions SET definition = jsonb_set(definition, '{limit}', '"gone"') WHERE schedule_id = 'named' AND version = 1`;
    const refused = await backfill('named', 10, 0);
    expect([refused.status, refused.text]).toEqual([
      422,
      expect.stringContaining('version 1 names the limit gone'),
    ]);
    expect(await runs('named')).toEqual([]);
    await api.sql`UPDATE schedule_versions SET definition = jsonb_set(definition, '{cron}', '"never"') WHERE schedule_id = 'named' AND version = 1`;
    expect((await backfill('named', 10, 0)).text).toContain('version 1 of schedule named cannot be planned');
    expect((await backfill('named', 6, 0)).result).toEqual(done(6, 0));
  });

  test('is written into the audit, and another word is refused', async () => {
    await put('audited', [[5.5, { cron: '0 * * * *' }]]);
    expect((await backfill('audited', 5, 0, { as: 'before' })).status).toBe(400);
    expect((await backfill('audited', 5, 0)).result).toEqual(done(5, 0));
    const [row] =
      await api.sql`SELECT detail->>'as' AS "as" FROM audit WHERE schedule_id = 'audited' AND action = 'schedule.backfill'`;
    expect(row).toEqual({ as: 'then' });
  });
});
