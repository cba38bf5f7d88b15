import { sql } from 'drizzle-orm';
import { beforeEach, describe, expect, it } from 'vitest';
import type { AlertKind } from '../../../src/core/alerts/alert.ts';
import type { Definition } from '../../../src/core/schedules/schedule.ts';
import { instanceOfTest, receiverOfTest, storeOfTest } from '../../support/of-test.ts';
import { type Store, type TestInstance, createInstance } from '../../support/pipeline.ts';
import type { Receiver } from '../../support/receiver.ts';
import { applyAll } from '../../support/effects.ts';
import { until } from '../../support/until.ts';
import { putNotifier } from '../../support/notifiers.ts';

let store: Store;
let instance: TestInstance;
let receiver: Receiver;
/** What it answers, by path. */
let statusOf: (path: string) => number;

beforeEach(async () => {
  store = await storeOfTest();
  statusOf = () => 200;
  receiver = await receiverOfTest(({ path }, response) => {
    response.statusCode = statusOf(path);
    response.end('{}');
  });
  instance = await instanceOfTest(store);
});

interface AlertRow {
  schedule_id: string;
  kind: AlertKind;
  error: string | null;
  is_open: boolean;
}

const alerts = () =>
  store.rows<AlertRow>(
    sql`SELECT schedule_id, kind, error, until IS NULL AS is_open FROM alerts ORDER BY schedule_id, kind, since`,
  );
const kindsOpen = async () => (await alerts()).filter(({ is_open }) => is_open).map(({ kind }) => kind);
const noEffects = () => until(async () => (await store.rows(sql`SELECT FROM effects`)).length === 0 || null);
const messages = (event: string) =>
  store.rows<{ run_id: string; notifier_id: string; status: string; count: number }>(sql`
    SELECT m.run_id, m.notifier_id, r.status, (SELECT count(*)::int FROM message_alerts a WHERE a.run_id = m.run_id) AS count
    FROM messages m JOIN all_runs r ON r.id = m.run_id WHERE m.event = ${event} ORDER BY m.created_at`);
/** As if the ten seconds had passed. */
const gathered = () =>
  store.rows(sql`UPDATE messages SET gathers_until = clock_timestamp() WHERE gathers_until IS NOT NULL`);

const put = (id: string, more: Partial<Definition> = {}) =>
  instance.put(id, {
    cron: '0 0 1 1 *',
    url: `${receiver.url}/${id}`,
    retry: { maxAttempts: 1, minBackoffSeconds: 1, maxBackoffSeconds: 1 },
    ...more,
  });
/** Fires it once, and waits for the end of the run. */
async function fire(id: string): Promise<string> {
  const { id: runId } = await instance.fire(id);
  await until(async () => (await store.rows(sql`SELECT FROM history WHERE id = ${runId}`)).length > 0 || null);
  await noEffects();
  return runId;
}

describe('an episode', () => {
  it('opens with the first run that fails, goes on with the next, and is over with a success', async () => {
    await put('job');
    await instance.start();
    statusOf = () => 400;
    const first = await fire('job');
    await fire('job');
    expect(await store.rows(sql`SELECT run_id, status, error FROM alerts`)).toEqual([
      { run_id: first, status: 'failed', error: expect.stringContaining('400') as unknown },
    ]);
    statusOf = () => 200;
    await fire('job');
    expect((await alerts()).map(({ is_open }) => is_open)).toEqual([false]);
    await fire('job');
    expect(await alerts()).toHaveLength(1);
  });

  it('is opened once, however many instances see to failures of one schedule', async () => {
    await put('job', { overlap: 'allow' });
    const other = await createInstance(store);
    await store.rows(sql`INSERT INTO effects
      (kind, alert_kind, schedule_uid, schedule_version, schedule_id, trigger, status, finished_at, attempt)
      SELECT 'breaks', 'failed', uid, version, id, 'schedule', 'failed', clock_timestamp(), 0
      FROM schedules, generate_series(1, 900)`);
    await putNotifier(store, { id: 'ops', url: `${receiver.url}/ops` });
    for (const { pipeline } of [instance, other]) await pipeline.alertEffects.start();
    await noEffects();
    await other.stop();
    expect(await kindsOpen()).toEqual(['failed']);
    expect(await messages('opened')).toMatchObject([{ count: 1, status: 'waiting' }]);
  });

  it('of a schedule that a person pauses or deletes is closed without a word', async () => {
    await putNotifier(store, { id: 'ops', url: `${receiver.url}/ops` });
    await put('paused');
    await put('deleted');
    await instance.start();
    statusOf = () => 400;
    await fire('paused');
    await fire('deleted');
    expect(await kindsOpen()).toEqual(['failed', 'failed']);
    await put('paused', { enabled: false });
    await instance.remove('deleted');
    await noEffects();
    expect(await kindsOpen()).toEqual([]);
    expect(await messages('recovered')).toEqual([]);
  });

  it('is not opened by a run of a schedule that a person has paused, nor once that is resumed', async () => {
    await put('job', { enabled: false });
    await put('under-way', {});
    await instance.start();
    statusOf = () => 400;
    await fire('job');
    expect(await alerts()).toEqual([]);
    await instance.pipeline.alertEffects.stop();
    const { id } = await instance.fire('under-way');
    await until(async () => (await store.rows(sql`SELECT FROM history WHERE id = ${id}`)).length > 0 || null);
    await put('under-way', { enabled: false });
    await put('under-way', {});
    await applyAll(store);
    expect(await alerts()).toEqual([]);
  });

  it('opens when firelock pauses the schedule, and is over once it is enabled', async () => {
    await put('job', { pauseAfterFailures: 1 });
    await instance.start();
    statusOf = () => 400;
    await fire('job');
    await until(async () => ((await kindsOpen()).length === 2 ? true : null));
    expect(await alerts()).toMatchObject([
      { kind: 'failed', is_open: true },
      { kind: 'paused', is_open: true, error: expect.stringContaining('a run did not succeed') as unknown },
    ]);
    await put('job');
    await until(async () => ((await kindsOpen()).length === 1 ? true : null));
    expect(await kindsOpen()).toEqual(['failed']);
  });

  it('of missed fires says how many, and is over with the next fire', async () => {
    await put('job', { cron: '* * * * * *', catchUp: 'skip', graceSeconds: 0 });
    await store.rows(sql`UPDATE schedules SET next_occurrence_at = date_trunc('second', clock_timestamp()) - interval '60 seconds',
      next_fire_at = date_trunc('second', clock_timestamp()) - interval '60 seconds'`);
    await instance.start();
    await until(async () => ((await alerts()).some(({ is_open }) => !is_open) ? true : null));
    const [missed] = await alerts();
    expect(missed).toMatchObject({ kind: 'missed' });
    expect(missed?.error).toMatch(/^(59|6\d) fires were missed, the first of them that of /);
  });

  it('of a schedule that cannot be planned is over once it is planned', async () => {
    await put('job', { cron: '* * * * * *' });
    await store.rows(sql`UPDATE schedules SET timing = '{"cron":"nonsense"}'`);
    await instance.start();
    await until(async () => ((await kindsOpen())[0] === 'error' ? true : null));
    await put('job', { cron: '* * * * * *', description: 'mended' });
    await until(async () => ((await kindsOpen()).includes('error') ? null : true));
  });
});

describe('a message', () => {
  beforeEach(async () => {
    await putNotifier(store, { id: 'ops', url: `${receiver.url}/ops`, filter: { ids: ['job*'], label: [] } });
  });

  const told = () => receiver.arrivals.filter(({ path }) => path === '/ops').map(({ body }) => body as unknown);

  it('tells of all that opens within ten seconds at once, and of all that is over', async () => {
    for (const id of ['job-1', 'job-2', 'other']) await put(id);
    await instance.start();
    statusOf = (path) => (path === '/ops' ? 200 : 400);
    for (const id of ['job-1', 'job-2', 'other']) await fire(id);
    expect(await messages('opened')).toMatchObject([{ count: 2, status: 'waiting' }]);
    expect(told()).toEqual([]);
    await gathered();
    await until(() => (told().length > 0 ? true : null));
    statusOf = () => 200;
    for (const id of ['job-1', 'job-2', 'other']) await fire(id);
    expect(await messages('recovered')).toMatchObject([{ count: 2, status: 'waiting' }]);
    await gathered();
    await until(() => (told().length > 1 ? true : null));
    expect(told()).toMatchObject([
      {
        event: 'opened',
        notifier: 'ops',
        more: 0,
        alerts: [{ scheduleId: 'job-1', until: null }, { scheduleId: 'job-2' }],
      },
      { event: 'recovered', alerts: [{ scheduleId: 'job-1', kind: 'failed' }, { scheduleId: 'job-2' }] },
    ]);
    expect(await store.rows(sql`SELECT FROM alert_tellings`)).toEqual([]);
  });

  it('names twenty episodes, and counts the others', async () => {
    await put('job-0');
    await store.rows(sql`INSERT INTO schedules
      SELECT (jsonb_populate_record(s, jsonb_build_object('uid', gen_random_uuid(), 'id', 'job-' || n))).*
      FROM schedules s, generate_series(1, 29) AS n`);
    await store.rows(sql`INSERT INTO schedule_versions
      SELECT s.uid, v.version, s.id, v.change, v.at, v.by, v.definition, v.payload
      FROM schedules s, schedule_versions v WHERE v.schedule_id = 'job-0' AND s.id <> 'job-0'`);
    await store.rows(sql`INSERT INTO effects
      (kind, alert_kind, schedule_uid, schedule_version, schedule_id, trigger, status, finished_at, attempt)
      SELECT 'breaks', 'failed', uid, version, id, 'schedule', 'failed', clock_timestamp(), 0 FROM schedules`);
    await instance.start();
    await noEffects();
    await gathered();
    await until(() => (told().length > 0 ? true : null));
    expect(told()).toMatchObject([{ more: 10 }]);
    expect((told()[0] as { alerts: unknown[] }).alerts).toHaveLength(20);
  });

  it('is sent again while an episode stays open', async () => {
    await put('job-1');
    await instance.start();
    statusOf = (path) => (path === '/ops' ? 200 : 400);
    await fire('job-1');
    await store.rows(sql`UPDATE alert_tellings SET remind_at = clock_timestamp()`);
    await until(async () => ((await messages('reminder')).length > 0 ? true : null));
    await gathered();
    await until(() => (told().length === 2 ? true : null));
    expect(
      told()
        .map((one) => (one as { event: string }).event)
        .sort(),
    ).toEqual(['opened', 'reminder']);
    expect(
      await store.rows(sql`SELECT FROM alert_tellings WHERE remind_at > clock_timestamp() + interval '23 hours'`),
    ).toHaveLength(1);
  });

  it('that cannot be delivered goes to the fallback, once', async () => {
    await putNotifier(store, { id: 'last', url: `${receiver.url}/last`, on: [] });
    await store.rows(sql`UPDATE notifiers SET fallback = CASE id WHEN 'ops' THEN 'last' ELSE 'ops' END`);
    await put('job-1');
    await instance.start();
    statusOf = () => 400;
    await fire('job-1');
    await gathered();
    await until(async () =>
      (await messages('opened')).filter(({ status }) => status === 'failed').length === 2 ? true : null,
    );
    await noEffects();
    expect((await messages('opened')).map(({ notifier_id }) => notifier_id)).toEqual(['ops', 'last']);
    expect(receiver.arrivals.find(({ path }) => path === '/last')?.body).toMatchObject({
      fallbackFor: 'ops',
    });
    // Nobody is told of a message.
    expect((await alerts()).map(({ schedule_id }) => schedule_id)).toEqual(['job-1']);
  });
});
