import { beforeAll, describe, expect, test } from 'vitest';
import { plannedRunId } from '../../../src/core/runs/run.ts';
import { fireTimes } from '../../../src/core/time/fire-times.ts';
import { definitionOf } from '../../support/pipeline.ts';
import { changeRun } from '../../support/run-rows.ts';
import { TARGET, faultPaths, sharedApi } from '../api.ts';

const api = sharedApi();
let now: number;
beforeAll(async () => {
  const [row] = await api.sql<{ now: Date }[]>`SELECT date_trunc('hour', clock_timestamp()) AS now`;
  now = Number(row?.now);
});

const HOUR = 3_600_000;
const DAY = 24 * HOUR;
const iso = (at: number) => new Date(at).toISOString();

async function put(id: string, more: object): Promise<void> {
  const answer = await api.call('PUT', `/api/v1/schedules/${id}`, { target: TARGET, ...more });
  expect(answer.status).toBeLessThan(300);
}

/** Of whole hours before now. */
async function backfill(id: string, fromHours: number, toHours: number, more: object = {}) {
  const body = { from: iso(now - fromHours * HOUR), to: iso(now - toHours * HOUR), ...more };
  const answer = await api.call('POST', `/api/v1/schedules/${id}/backfill`, body);
  return { ...answer, result: [answer.status, answer.body] };
}

interface Row {
  id: string;
  schedule_uid: string;
  scheduled_for: Date;
  due_at: Date;
  trigger: string;
  status: string;
  reason: string | null;
  schedule_version: number;
  priority: number;
  attempts: number;
  failures: number;
  recoveries: number;
  claimed_by: string | null;
  finished_at: Date | null;
  error: object | null;
  overlap_guarded: boolean;
}

const runs = (id: string) => api.sql<Row[]>`SELECT * FROM all_runs WHERE schedule_id = ${id} ORDER BY scheduled_for`;
const done = (created: number, existing: number, remainingFrom: string | null = null) => [
  202,
  { created, existing, remainingFrom },
];

describe('a backfill', () => {
  test('records a run for each occurrence of the period that has none, due at once, and wakes the dispatcher', async () => {
    await put('hourly', { cron: '0 * * * *', priority: 'high' });
    const woken = api.woken();
    expect((await backfill('hourly', 5, 2)).result).toEqual(done(3, 0));
    expect(api.woken()).toBe(woken + 1);
    const rows = await runs('hourly');
    expect(rows.map(({ scheduled_for }) => now - Number(scheduled_for))).toEqual([5 * HOUR, 4 * HOUR, 3 * HOUR]);
    for (const row of rows) {
      expect(row).toMatchObject({ trigger: 'backfill', status: 'pending', reason: null, claimed_by: null });
      expect(row).toMatchObject({ schedule_version: 1, priority: 0, attempts: 0, overlap_guarded: false });
      expect(row.id).toBe(plannedRunId(row.schedule_uid, Number(row.scheduled_for)));
      expect(row.due_at).toEqual(row.scheduled_for);
    }
    expect((await backfill('hourly', 6, 2)).result).toEqual(done(1, 3));
    expect((await backfill('hourly', 6, 2)).result).toEqual(done(0, 4));
    expect(api.woken()).toBe(woken + 2);
  });

  test('goes on at the place where its limit ended it', async () => {
    await put('limited', { cron: '0 * * * *' });
    expect((await backfill('limited', 10, 0, { limit: 4 })).result).toEqual(done(4, 0, iso(now - 6 * HOUR)));
    expect((await backfill('limited', 6, 0, { limit: 6 })).result).toEqual(done(6, 0));
    expect((await backfill('limited', 10, 0, { limit: 9 })).result).toEqual(done(0, 9, iso(now - HOUR)));
  });

  test('opens skipped and abandoned runs again, under their ids, and leaves all others alone', async () => {
    await put('ended', { cron: '0 * * * *' });
    expect((await backfill('ended', 8, 0)).result).toEqual(done(8, 0));
    const [claimant] = await api.sql<{ id: string }[]>`SELECT gen_random_uuid() AS id`;
    const statuses = 'skipped abandoned succeeded failed unknown cancelled pending running'.split(' ');
    const before = await runs('ended');
    for (const [index, { id }] of before.entries()) {
      const at = iso(now);
      await changeRun(api.sql, id, {
        status: statuses[index],
        trigger: 'schedule',
        reason: 'x',
        attempts: 3,
        failures: 2,
        recoveries: 1,
        claimed_by: claimant?.id,
        claimed_at: at,
        finished_at: at,
        handoff_started_at: at,
        lost_at: at,
        error: { kind: 'network', message: 'm' },
      });
    }
    await put('ended', { cron: '0 * * * *', priority: 'low', overlap: 'skip' });
    expect((await backfill('ended', 8, 0)).result).toEqual(done(2, 6));
    const after = await runs('ended');
    for (const [index, row] of after.entries()) {
      expect(row.id).toBe(before[index]?.id);
      if (index >= 2) {
        // An open run has none.
        const reason = row.finished_at === null ? null : 'x';
        const untouched = {
          status: statuses[index],
          trigger: 'schedule',
          reason,
          attempts: 3,
          schedule_version: 1,
        };
        expect(row).toMatchObject(untouched);
        continue;
      }
      expect(row).toMatchObject({ status: 'pending', trigger: 'backfill', reason: null, error: null });
      expect(row).toMatchObject({
        attempts: 3,
        failures: 0,
        recoveries: 0,
        claimed_by: null,
        finished_at: null,
      });
      expect(row).toMatchObject({
        schedule_version: 2,
        priority: 2,
        overlap_guarded: true,
        handoff_started_at: null,
      });
      expect(Number(row.due_at)).toBeGreaterThanOrEqual(now);
      expect(row).not.toMatchObject({ lost_at: null });
    }
  });

  test('follows the present definition, with its window and its jitter, also for the time before it', async () => {
    await put('changed', { cron: '30 * * * *' });
    expect((await backfill('changed', 3, 1)).result).toEqual(done(2, 0));
    const more = { cron: '0 * * * *', jitterSeconds: 600, startAt: iso(now - 2 * HOUR) };
    await put('changed', more);
    expect((await backfill('changed', 4, 0)).result).toEqual(done(2, 0));
    const rows = (await runs('changed')).filter(({ schedule_version }) => schedule_version === 2);
    const timing = { ...definitionOf({ url: '' }), cron: '0 * * * *', jitterSeconds: 600 };
    const times = fireTimes(timing, { id: 'changed', createdAt: 0 });
    expect(rows.map(({ scheduled_for, due_at }) => [Number(scheduled_for), Number(due_at)])).toEqual(
      [now - 2 * HOUR, now - HOUR].map((at) => [at, times.dueAt(at)]),
    );
  });

  test('is allowed while paused, and marks its runs as ones that must not overlap', async () => {
    await put('paused', { cron: '0 * * * *', enabled: false, overlap: 'queue' });
    expect((await backfill('paused', 3, 0)).result).toEqual(done(3, 0));
    const rows = await runs('paused');
    expect(rows.map(({ status, overlap_guarded }) => [status, overlap_guarded])).toEqual(
      Array(3).fill(['pending', true]),
    );
  });

  test('is one transaction, whichever other calls ask for the same', async () => {
    await put('raced', { cron: '* * * * *' });
    const all = await Promise.all(Array.from({ length: 6 }, () => backfill('raced', 10, 0)));
    expect(all.map(({ status }) => status)).toEqual(Array(6).fill(202));
    const created = all.map(({ body }) => Number(body['created'] as unknown));
    expect(created.sort((a, b) => b - a)).toEqual([600, 0, 0, 0, 0, 0]);
    expect(await runs('raced')).toHaveLength(600);
  });

  test('of ten thousand occurrences is one call', async () => {
    await put('many', { cron: '* * * * *' });
    const { result } = await backfill('many', 200, 0, { limit: 10_000 });
    expect(result).toEqual(done(10_000, 0, iso(now - 200 * HOUR + 10_000 * 60_000)));
  });

  test('reaches back as far as the caller asks, also beyond the retention', async () => {
    await put('old', { cron: '0 12 * * *' });
    const yearAgo = now - 366 * DAY;
    const year = { from: iso(yearAgo), to: iso(yearAgo + 3 * DAY) };
    const answer = await api.call('POST', '/api/v1/schedules/old/backfill', year);
    expect([answer.status, answer.body]).toEqual([202, { created: 3, existing: 0, remainingFrom: null }]);
    const rows = await runs('old');
    for (const { scheduled_for, status, due_at, id, schedule_uid } of rows) {
      expect(Number(scheduled_for)).toBeGreaterThanOrEqual(yearAgo);
      expect([status, due_at, id]).toEqual([
        'pending',
        scheduled_for,
        plannedRunId(schedule_uid, Number(scheduled_for)),
      ]);
    }
    expect((await api.call('POST', '/api/v1/schedules/old/backfill', year)).body).toMatchObject({
      existing: 3,
    });
    const first = { from: '2000-01-01T00:00:00Z', to: '2000-01-03T00:00:00Z' };
    expect((await api.call('POST', '/api/v1/schedules/old/backfill', first)).body).toMatchObject({
      created: 2,
    });
  });

  test('waits until the schedule is caught up with', async () => {
    await put('behind', { cron: '0 * * * *' });
    await api.sql`UPDATE schedules SET next_occurrence_at = ${iso(now - 3 * HOUR)}, next_fire_at = ${iso(now - 3 * HOUR)}
      WHERE id = 'behind'`;
    const answer = await backfill('behind', 5, 0);
    expect([answer.status, answer.headers.get('retry-after')]).toEqual([503, '5']);
    expect((await backfill('behind', 5, 3)).result).toEqual(done(2, 0));
  });
});

describe('a backfill that cannot be', () => {
  test('of coming occurrences is 422 and names the limit', async () => {
    await put('some', { cron: '0 * * * *' });
    const future = await backfill('some', 1, -2);
    expect([future.status, faultPaths(future)]).toEqual([422, ['/to']]);
    expect(future.text).toContain('only past occurrences can be backfilled');
    expect(await runs('some')).toEqual([]);
  });

  test('is 404, or 409 for a schedule that follows others or cannot be planned', async () => {
    expect((await backfill('nobody', 2, 1)).status).toBe(404);
    await put('follower', { after: { scheduleId: '*' } });
    expect((await backfill('follower', 2, 1)).status).toBe(409);
    await put('broken', { cron: '0 * * * *' });
    await api.sql`UPDATE schedule_versions SET definition = jsonb_set(definition, '{cron}', '"soon"')
      WHERE schedule_id = 'broken'`;
    const broken = await backfill('broken', 2, 1);
    expect(broken.status).toBe(409);
    expect(broken.body['detail']).toContain('cannot be planned');
  });

  test.each<[object, string[]]>([
    [{}, ['/from', '/to']],
    [{ from: '2026-01-02T00:00:00Z', to: '2026-01-02T00:00:00Z' }, ['/to']],
    [{ from: 1, to: 'x', limit: 0, all: true }, ['/all', '/from', '/limit', '/to']],
    [{ from: '2026-01-01T00:00:00Z', to: '2026-01-02T00:00:00Z', limit: 10_001 }, ['/limit']],
  ])('is refused: %j', async (body, paths) => {
    const answer = await api.call('POST', '/api/v1/schedules/some/backfill', body);
    expect([answer.status, faultPaths(answer)]).toEqual([400, paths]);
  });
});

const hours = (ago: number) => iso(now - ago * HOUR);
const pull = (queue: string) => ({ type: 'pull', queue });

/** Writes it once for each definition, and says since how many hours each is in force. */
async function written(id: string, versions: readonly [hoursAgo: number, definition: object][]): Promise<void> {
  for (const [, definition] of versions) {
    const { status } = await api.call('PUT', `/api/v1/schedules/${id}`, { target: TARGET, ...definition });
    expect(status).toBeLessThan(300);
  }
  for (const [index, [hoursAgo]] of versions.entries())
    await api.sql`UPDATE schedule_versions SET at = ${hours(hoursAgo)} WHERE schedule_id = ${id} AND version = ${index + 1}`;
  await api.sql`UPDATE schedules SET created_at = ${hours(versions[0]?.[0] ?? 0)} WHERE id = ${id}`;
}

async function backfillThen(id: string, fromHours: number, toHours: number, more: object = {}) {
  const body = { from: hours(fromHours), to: hours(toHours), as: 'then', ...more };
  const answer = await api.call('POST', `/api/v1/schedules/${id}/backfill`, body);
  return { ...answer, result: [answer.status, answer.body] };
}

/** How many hours ago each run is of, under which version and in which lane. */
async function versionsRun(id: string) {
  const rows = await api.sql<
    { id: string; uid: string; at: Date; version: number; lane: string; trigger: string; status: string }[]
  >`SELECT id, schedule_uid AS uid, scheduled_for AS at, schedule_version AS version, lane, trigger, status FROM all_runs
    WHERE schedule_id = ${id} ORDER BY scheduled_for`;
  for (const row of rows) expect(row.id).toBe(plannedRunId(row.uid, Number(row.at)));
  return rows.map(({ at, version }) => `${(now - Number(at)) / HOUR} v${version}`);
}

describe('a backfill as it was', () => {
  test('makes each moment by the version that was in force, paused or not, and nothing before its creation', async () => {
    await written('edited', [
      [10.5, { cron: '0 * * * *', target: pull('first') }],
      [7.5, { cron: '30 * * * *', target: pull('second'), priority: 'high', expiresAfterSeconds: 600 }],
      [5, { cron: '0 * * * *', target: pull('second'), enabled: false }],
      [2.5, { cron: '0 */2 * * *', target: pull('third') }],
    ]);
    const last = new Date(now).getUTCHours() % 2 === 0 ? ['2 v4'] : ['1 v4'];
    const expected = ['10 v1', '9 v1', '8 v1', '6.5 v2', '5.5 v2', '4 v3', '3 v3', ...last];
    expect((await backfillThen('edited', 24, 0)).result).toEqual(done(8, 0));
    expect(await versionsRun('edited')).toEqual(expected);
    const rows = await api.sql`SELECT DISTINCT lane, priority, expires_after_seconds AS expires FROM runs
      WHERE schedule_id = 'edited' ORDER BY lane`;
    expect(rows).toEqual([
      { lane: 'pull first', priority: 1, expires: null },
      { lane: 'pull second', priority: 0, expires: 600 },
      { lane: 'pull second', priority: 1, expires: null },
      { lane: 'pull third', priority: 1, expires: null },
    ]);
    expect((await backfillThen('edited', 24, 0)).result).toEqual(done(0, 8));
  });

  test('says of each moment what the list of occurrences says, which has a run for each afterwards', async () => {
    await written('listed', [
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
    expect((await backfillThen('listed', 48, 0)).result).toEqual(done(before.length, 0));
    const after = (await list()).filter(({ state }) => state !== 'excluded');
    expect(after).toEqual(
      before.map(({ fireAt, version }) => expect.objectContaining({ fireAt, version, state: 'fired' }) as unknown),
    );
  });

  test('goes on where its limit ended it, and opens what was skipped again, under the version of its moment', async () => {
    await written('bounded', [
      [10.5, { cron: '0 * * * *' }],
      [6.5, { cron: '0 * * * *', description: 'second' }],
    ]);
    expect((await backfillThen('bounded', 10, 0, { limit: 6 })).result).toEqual(done(6, 0, hours(4)));
    const [eight] = await api.sql<
      { id: string }[]
    >`SELECT id FROM runs WHERE schedule_id = 'bounded' AND scheduled_for = ${hours(8)}`;
    await changeRun(api.sql, eight?.id ?? '', {
      ...{
        status: 'skipped',
        trigger: 'schedule',
        reason: 'missed',
        schedule_version: 2,
        finished_at: iso(now),
      },
    });
    expect((await backfillThen('bounded', 10, 3)).result).toEqual(done(2, 5));
    expect(await versionsRun('bounded')).toEqual(['10 v1', '9 v1', '8 v1', '7 v1', '6 v2', '5 v2', '4 v2']);
  });

  test('makes nothing of what was observed then, since another scheduler ran it', async () => {
    await written('moved-here', [
      [6.5, { cron: '0 * * * *', observe: { until: null } }],
      [3.5, { cron: '0 * * * *', observe: null }],
    ]);
    const { result } = await backfillThen('moved-here', 6, 1);
    expect(result).toEqual(done(2, 3));
    expect(await versionsRun('moved-here')).toEqual(['3 v2', '2 v2']);
  });

  test('is refused where a version is not stored any more, and says since when all are', async () => {
    await written('holes', [
      [10.5, { cron: '0 * * * *' }],
      [8.5, { cron: '0 * * * *', description: '2' }],
      [6.5, { cron: '0 * * * *', description: '3' }],
    ]);
    await api.sql`DELETE FROM schedule_versions WHERE schedule_id = 'holes' AND version = 2`;
    const refused = await backfillThen('holes', 7, 0);
    expect([refused.status, faultPaths(refused)]).toEqual([422, ['/from']]);
    expect(refused.text).toContain(`must be after ${hours(6.5)}`);
    expect((await backfillThen('holes', 10, 9)).status).toBe(422);
    expect((await backfillThen('holes', 6, 0)).result).toEqual(done(6, 0));
    expect((await backfillThen('holes', 7, 0, { as: 'now' })).result).toEqual(done(1, 6));
  });

  test('is refused where a version names a limit or a connection that was deleted, or cannot be planned', async () => {
    await api.call('PUT', '/api/v1/limits/few', { maxRunning: 2 });
    await written('named', [
      [10.5, { cron: '0 * * * *', limit: 'few' }],
      [6.5, { cron: '0 * * * *' }],
    ]);
    await api.sql`UPDATE schedule_versions SET definition = jsonb_set(definition, '{limit}', '"gone"') WHERE schedule_id = 'named' AND version = 1`;
    const refused = await backfillThen('named', 10, 0);
    expect([refused.status, refused.text]).toEqual([422, expect.stringContaining('version 1 names the limit gone')]);
    expect(await versionsRun('named')).toEqual([]);
    await api.sql`UPDATE schedule_versions SET definition = jsonb_set(definition, '{cron}', '"never"') WHERE schedule_id = 'named' AND version = 1`;
    expect((await backfillThen('named', 10, 0)).text).toContain('version 1 of schedule named cannot be planned');
    expect((await backfillThen('named', 6, 0)).result).toEqual(done(6, 0));
  });

  test('is written into the audit, and another word is refused', async () => {
    await written('audited', [[5.5, { cron: '0 * * * *' }]]);
    expect((await backfillThen('audited', 5, 0, { as: 'before' })).status).toBe(400);
    expect((await backfillThen('audited', 5, 0)).result).toEqual(done(5, 0));
    const [row] =
      await api.sql`SELECT detail->>'as' AS "as" FROM audit WHERE schedule_id = 'audited' AND action = 'schedule.backfill'`;
    expect(row).toEqual({ as: 'then' });
  });
});
