import { sql } from 'drizzle-orm';
import { beforeEach, describe, expect, it } from 'vitest';
import type { AlertKind } from '../../../src/core/alerts/alert.ts';
import type { Definition } from '../../../src/core/schedules/schedule.ts';
import { findAlertLooks } from '../../../src/store/alerts/alert-rows.ts';
import { applyCauses } from '../../../src/store/alerts/apply-causes.ts';
import { settlePlainIfClaimed } from '../../../src/store/runs/ends/settle-plain.ts';
import { applyAll } from '../../support/effects.ts';
import { putNotifier } from '../../support/notifiers.ts';
import { instanceOfTest, storeOfTest } from '../../support/of-test.ts';
import { runIdAt } from '../../support/pending-runs.ts';
import { plainSuccess } from '../../support/claims.ts';
import type { Store, TestInstance } from '../../support/pipeline.ts';

let store: Store;
let instance: TestInstance;

beforeEach(async () => {
  store = await storeOfTest();
  // It writes schedules; its loops stand still.
  instance = await instanceOfTest(store);
  await putNotifier(store, { id: 'chat', url: '', channel: 'slack' });
  await putNotifier(store, { id: 'pager', url: '', channel: 'pagerduty' });
});

const put = (more: Partial<Definition> = {}) => instance.put('job', { url: 'http://127.0.0.1:1/', ...more });
const ago = (seconds: number) => sql`clock_timestamp() - make_interval(secs => ${seconds})`;

/** A run of it has ended so long ago, and whatever that caused was lost: the writer saw nothing that it could heal. */
async function ended(
  seconds: number,
  {
    status = 'succeeded',
    trigger = 'schedule',
    unmet = [] as string[],
    tookSeconds = 1,
    startedLate = 0,
    result = '{"rows":5}',
  } = {},
): Promise<string> {
  const [row] = await store.rows<{
    id: string;
  }>(sql`INSERT INTO history (id, scheduled_for, schedule_uid, schedule_version,
      schedule_id, trigger, status, lane, priority, due_at, attempts, outcome_watched, unmet, lateness_ms, first_claimed_at,
      handoff_started_at, result_status_code, result_body, created_at, updated_at, finished_at, ended_at)
    SELECT ${runIdAt(sql`began`)}, began, uid, version, id, ${trigger}, ${status}, lane, priority, began, 1, outcome_watched,
      nullif(${`{${unmet.join(',')}}`}::text[], '{}'), ${startedLate * 1000}::bigint, began, began, 200, ${result}, began, now(), at, now()
    FROM schedules, LATERAL (SELECT ${ago(seconds)} AS at, ${ago(seconds + tookSeconds)} AS began) AS t RETURNING id`);
  return row?.id ?? '';
}

const effect = (kind: 'breaks' | 'heals', alertKind: AlertKind, seconds: number, runId: string | null = null) =>
  store.rows(sql`INSERT INTO effects
    (kind, alert_kind, run_id, schedule_uid, schedule_version, schedule_id, trigger, status, finished_at, attempt)
    SELECT ${kind}, ${alertKind}, ${runId}, uid, version, id, 'schedule', 'failed', ${ago(seconds)}, 1 FROM schedules`);

/** What the watch does: at schedules that are due, or at all that have an open episode. */
async function look(which: 'due' | 'all' = 'due'): Promise<void> {
  if (which === 'all') await store.rows(sql`UPDATE alerts SET look_at = now() WHERE until IS NULL`);
  const uids = await store.database.run((db) => findAlertLooks(db, { limit: 10, besides: [] }));
  await store.database.transaction((tx) => applyCauses(tx, { looks: uids }, null));
}

const alerts = () =>
  store.rows<{ kind: AlertKind; is_open: boolean; over_by: string | null }>(
    sql`SELECT kind, until IS NULL AS is_open, over_by FROM alerts ORDER BY since`,
  );
const OPEN = { is_open: true, over_by: null };
const WELL = { is_open: false, over_by: null };

/** As if the time for a success were up since so many seconds. */
async function late(seconds: number): Promise<void> {
  await put({ successWithinSeconds: 60 });
  await store.rows(sql`UPDATE outcome_watches SET success_since = ${ago(60 + seconds)}, look_at = now()`);
  await look();
  expect(await alerts()).toEqual([{ kind: 'late', ...OPEN }]);
}

describe('a schedule that is late', () => {
  it('is well again by a success that ended in time and was written late, and is late again in the same episode', async () => {
    await late(10);
    await ended(15);
    await effect('heals', 'late', 15);
    await applyAll(store);
    expect(await alerts()).toEqual([{ kind: 'late', ...WELL }]);
    await store.rows(sql`UPDATE outcome_watches SET last_success_at = ${ago(64)}, look_at = now()`);
    await store.rows(sql`DELETE FROM history`);
    await look();
    expect(await alerts()).toEqual([{ kind: 'late', ...OPEN }]);
  });

  it('is well again by a success of which no effect tells, once it is looked at', async () => {
    await late(10);
    await ended(1);
    await look('all');
    expect(await alerts()).toEqual([{ kind: 'late', ...WELL }]);
  });

  it('is late no more once nothing is left to fire', async () => {
    await late(10);
    await store.rows(sql`UPDATE schedules SET next_fire_at = NULL, next_occurrence_at = NULL`);
    await look('all');
    expect(await alerts()).toEqual([{ kind: 'late', is_open: false, over_by: 'nothing is left to fire' }]);
  });

  it.each([
    ['more time', { successWithinSeconds: 3600 }],
    ['no bound', { successWithinSeconds: null }],
    ['no bound, and pauses by failures', { successWithinSeconds: null, pauseAfterFailures: 3 }],
  ])('is late no more once it has %s, and nobody reads that it succeeds', async (_, more) => {
    await late(10);
    await put(more);
    await look();
    expect(await alerts()).toMatchObject([{ is_open: false, over_by: expect.any(String) as unknown }]);
    const [row] = await store.rows<{ payload: string }>(
      sql`SELECT own_payload AS payload FROM runs r JOIN messages m ON m.run_id = r.id WHERE m.event = 'recovered' AND own_payload IS NOT NULL`,
    );
    expect(row?.payload ?? '').not.toContain('succeeds again');
  });

  it('that firelock pauses before it has ever succeeded is late no more, and nobody reads that it succeeds', async () => {
    await late(10);
    await store.rows(sql`UPDATE schedules SET enabled = false`);
    await store.rows(sql`UPDATE schedule_versions SET by = 'firelock' WHERE schedule_id = 'job'`);
    await look('all');
    expect(await alerts()).toEqual([{ kind: 'late', is_open: false, over_by: 'firelock paused it' }]);
  });

  it('is what a shorter time for a success makes it at once, and an edit of expect is about the runs after it', async () => {
    await put({
      successWithinSeconds: 3600,
      expect: { startWithinSeconds: null, finishWithinSeconds: 60, atLeastSeconds: null, result: null },
    });
    await ended(90, { tookSeconds: 20 });
    await store.rows(sql`UPDATE outcome_watches SET success_since = ${ago(600)}, look_at = now()`);
    await look();
    expect(await alerts()).toEqual([]);
    await put({
      successWithinSeconds: 60,
      expect: { startWithinSeconds: null, finishWithinSeconds: 10, atLeastSeconds: null, result: null },
    });
    await look();
    expect(await alerts()).toEqual([{ kind: 'late', ...OPEN }]);
  });

  it('stays so under a bound that it does not keep either, in the same episode', async () => {
    await late(30);
    await put({ successWithinSeconds: 80 });
    await look();
    expect(await alerts()).toEqual([{ kind: 'late', ...OPEN }]);
  });
});

describe('what an effect tells late', () => {
  const rows = { pointer: '/rows', min: 1, max: null, json: null };
  const expectation = {
    ...{ startWithinSeconds: 10, finishWithinSeconds: 10, atLeastSeconds: 1 },
    result: [rows],
  };

  it.each([['failed'], ['slow'], ['unstarted'], ['tooFast'], ['result']] as const)(
    'opens nothing where a later run shows that it is well: %s',
    async (kind) => {
      await put({ expect: expectation });
      await ended(5);
      await effect('breaks', kind, 30);
      await applyAll(store);
      expect(await alerts()).toEqual([]);
    },
  );

  it.each([
    ['failed', { status: 'failed' }],
    ['slow', { tookSeconds: 20, unmet: ['finish'] }],
    ['unstarted', { tookSeconds: 20, startedLate: 15, unmet: ['start'] }],
    ['tooFast', { tookSeconds: 0, unmet: ['tooFast'] }],
    ['result', { result: '{"rows":0}', unmet: ['result'] }],
  ] as const)('opens an episode where none does, which is over once one does: %s', async (kind, broken) => {
    await put({ expect: expectation });
    await ended(5, { ...broken, unmet: 'unmet' in broken ? [...broken.unmet] : [] });
    await effect('breaks', kind, 15);
    await applyAll(store);
    expect(await alerts()).toEqual([{ kind, ...OPEN }]);
    await ended(1);
    await look('all');
    expect(await alerts()).toEqual([{ kind, ...WELL }]);
  });

  it.each([
    ['is taken away', null],
    [
      'is one that the newest run keeps',
      { startWithinSeconds: null, finishWithinSeconds: 60, atLeastSeconds: null, result: null },
    ],
  ])('of a run that was slow is over once the bound %s', async (_, given) => {
    await put({ expect: expectation });
    await ended(5, { tookSeconds: 20, unmet: ['finish'] });
    await effect('breaks', 'slow', 15);
    await applyAll(store);
    await put({ expect: given });
    await look();
    expect(await alerts()).toMatchObject([{ kind: 'slow', is_open: false }]);
  });
});

describe('a result that is not as expected', () => {
  const bound = (min: number) => ({ pointer: '/rows', min, max: null, json: null });
  const expectation = (min: number) => ({
    ...{ startWithinSeconds: null, finishWithinSeconds: null, atLeastSeconds: null },
    result: [bound(min)],
  });

  it.each([
    ['which the newest success has, as far as it is kept', '{"rows":5}', 3, WELL],
    ['which the newest success has not either', '{"rows":1}', 3, OPEN],
    ['of which nobody knows, as that is not kept whole', `{"rows":${'5'.repeat(4_087)}`, 3, OPEN],
  ] as const)('under an edit that expects another one, %s', async (_, result, min, state) => {
    await put({ expect: expectation(1e300) });
    await effect('breaks', 'result', 15, await ended(5, { result, unmet: ['result'] }));
    await applyAll(store);
    expect(await alerts()).toEqual([{ kind: 'result', ...OPEN }]);
    await put({ expect: expectation(min) });
    await look();
    expect(await alerts()).toEqual([{ kind: 'result', ...state }]);
  });

  it('is over once nothing is expected of it', async () => {
    await put({ expect: expectation(3) });
    await effect('breaks', 'result', 15);
    await applyAll(store);
    await put({ expect: null });
    await look();
    expect(await alerts()).toEqual([{ kind: 'result', is_open: false, over_by: 'no such bound is left' }]);
  });
});

describe('fires that were missed', () => {
  it('of a schedule of one moment are told, and over since nothing is left to fire', async () => {
    await put({ cron: null, at: Date.now() + 3_600_000 });
    await store.rows(sql`UPDATE schedules SET next_fire_at = NULL, next_occurrence_at = NULL`);
    await effect('breaks', 'missed', 60, await ended(60, { status: 'skipped' }));
    await applyAll(store);
    expect(await alerts()).toEqual([{ kind: 'missed', ...OPEN }]);
    await look('all');
    expect(await alerts()).toEqual([{ kind: 'missed', is_open: false, over_by: 'nothing is left to fire' }]);
  });

  it('are over once the run that catches up with them has succeeded', async () => {
    await put();
    await effect('breaks', 'missed', 60, await ended(60, { status: 'skipped' }));
    await applyAll(store);
    await look('all');
    expect(await alerts()).toEqual([{ kind: 'missed', ...OPEN }]);
    await ended(5, { trigger: 'catchUp' });
    await look('all');
    expect(await alerts()).toEqual([{ kind: 'missed', ...WELL }]);
  });
});

describe('the success of a run', () => {
  const claimed = (trigger: string) =>
    store.rows<{
      id: string;
      instance: string;
    }>(sql`INSERT INTO runs (id, scheduled_for, schedule_uid, schedule_version, schedule_id,
        trigger, status, lane, priority, due_at, ready, attempts, claimed_by, claimed_at, overlap_guarded, created_at, updated_at)
      SELECT ${runIdAt(sql`now()`)}, ${ago(60)}, uid, version, id, ${trigger}, 'pending', lane, priority, now(), true, 1,
        gen_random_uuid(), now(), false, now(), now() FROM schedules RETURNING id, claimed_by AS instance`);
  const healing = () => store.rows<{ alert_kind: string }>(sql`SELECT alert_kind FROM effects WHERE kind = 'heals'`);

  it.each([
    ['catchUp', true],
    ['schedule', false],
  ] as const)('tells that missed fires are caught up with, if they are: %s', async (trigger, isOver) => {
    await put();
    await effect('breaks', 'missed', 60);
    await applyAll(store);
    const [run] = await claimed(trigger);
    if (!run) throw new Error('no run');
    const success = plainSuccess({ runId: run.id, instanceId: run.instance, at: Date.now() });
    await store.database.run((db) => settlePlainIfClaimed(db, [success]));
    expect(await healing()).toEqual(isOver ? [{ alert_kind: 'missed' }] : []);
    await applyAll(store);
    expect(await alerts()).toEqual([{ kind: 'missed', ...(isOver ? WELL : OPEN) }]);
  });
});

describe('a look that changes nothing', () => {
  it('writes one row for each episode, and none until the next one is due', async () => {
    for (let index = 0; index < 40; index += 1)
      await instance.put(`job-${index}`, { url: 'http://127.0.0.1:1/', successWithinSeconds: 86_400 });
    await store.rows(sql`UPDATE schedules SET error = 'x', next_fire_at = now() + interval '30 minutes'`);
    for (const kind of ['missed', 'error', 'failed'] as const) await effect('breaks', kind, 5);
    await applyAll(store);
    const versions = () =>
      store.rows<{ xmin: string }>(
        sql`SELECT xmin::text FROM alerts UNION ALL SELECT xmin::text FROM outcome_watches ORDER BY 1`,
      );
    const opened = await versions();
    expect(opened).toHaveLength(160);
    const uids = await store.rows<{ uid: string }>(sql`SELECT uid FROM schedules`);
    const again = () =>
      store.database.transaction((tx) => applyCauses(tx, { looks: uids.map(({ uid }) => uid) }, null));
    await again();
    expect(await versions()).toEqual(opened);
    await store.rows(sql`UPDATE alerts SET look_at = now() WHERE kind = 'missed'`);
    const made = await versions();
    await again();
    const looked = await versions();
    expect(looked.filter(({ xmin }) => !made.some((one) => one.xmin === xmin))).toHaveLength(40);
    await again();
    expect(await versions()).toEqual(looked);
  });
});

describe('a person who pauses or deletes a schedule', () => {
  const summaries = () =>
    store.rows<{ notifier_id: string; event: string; payload: string | null }>(
      sql`SELECT m.notifier_id, m.event, r.own_payload AS payload FROM messages m JOIN all_runs r ON r.id = m.run_id ORDER BY m.created_at`,
    );

  it.each([['paused'], ['deleted']] as const)('resolves its incident, and no chat hears of it: %s', async (did) => {
    await put();
    await effect('breaks', 'failed', 5);
    await applyAll(store);
    await store.rows(
      sql`UPDATE runs SET claimed_by = gen_random_uuid(), claimed_at = now(), attempts = 1 WHERE status = 'pending'`,
    );
    if (did === 'paused') await put({ enabled: false });
    else await instance.remove('job');
    expect(await alerts()).toEqual([{ kind: 'failed', is_open: false, over_by: did }]);
    await instance.pipeline.alertWatch.start();
    await expect.poll(async () => (await summaries()).filter(({ event }) => event === 'recovered')).toHaveLength(1);
    const [resolved] = (await summaries()).filter(({ event }) => event === 'recovered');
    expect(resolved?.notifier_id).toBe('pager');
    const summary = `Over: job failed (${did})`;
    expect(JSON.parse(resolved?.payload ?? '')).toMatchObject({
      event_action: 'resolve',
      payload: { summary },
    });
    expect(await store.rows(sql`SELECT FROM alert_tellings`)).toEqual([]);
  });
});
