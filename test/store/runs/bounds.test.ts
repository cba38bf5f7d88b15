import { sql } from 'drizzle-orm';
import { beforeEach, describe, expect, it } from 'vitest';
import type { Expect } from '../../../src/core/schedules/expect.ts';
import { cancelRun, retryRun } from '../../../src/operations/runs/act-on-runs.ts';
import { createEventBus } from '../../../src/runtime/event-bus.ts';
import { claimPullRuns, takeBackIfStillLeased } from '../../../src/store/queues/pull-claims.ts';
import { findPassedBounds, judgePassedBounds } from '../../../src/store/runs/bounds.ts';
import { claimReadyRuns } from '../../../src/store/runs/claims/claims.ts';
import { claimOf, startHandoffsIfClaimed } from '../../../src/store/runs/claims/held-claims.ts';
import { settleLockedRuns } from '../../../src/store/runs/ends/settle-locked.ts';
import { settlePlainIfClaimed } from '../../../src/store/runs/ends/settle-plain.ts';
import { instanceOfTest, storeOfTest } from '../../support/of-test.ts';
import type { Store, TestInstance } from '../../support/pipeline.ts';
import { plainSuccess } from '../../support/claims.ts';

const BOTH: Expect = { startWithinSeconds: 60, finishWithinSeconds: 900, atLeastSeconds: null, result: null };
const url = 'http://127.0.0.1:9/';

let store: Store;
let instance: TestInstance;

beforeEach(async () => {
  store = await storeOfTest();
  instance = await instanceOfTest(store);
});

const actions = () => ({
  database: store.database,
  events: createEventBus(),
  wake: instance.pipeline.wake,
  scope: null,
});

interface BoundedRun {
  status: string;
  unmet: string[] | null;
  next_bound: string | null;
  /** In seconds from when it was due. */
  bound_after: number | null;
  begun_after: number | null;
  finish_within_seconds: number | null;
}

async function runOf(id: string): Promise<BoundedRun> {
  const since = (column: string) => sql.raw(`extract(epoch FROM ${column} - due_at)::float8`);
  const [run] =
    await store.rows<BoundedRun>(sql`SELECT status, to_json(unmet) AS unmet, next_bound, ${since('bound_at')} AS bound_after,
      ${since('handoff_started_at')} AS begun_after, finish_within_seconds FROM runs WHERE id = ${id}
    UNION ALL SELECT status, to_json(unmet), NULL, NULL, ${since('handoff_started_at')}, NULL FROM history WHERE id = ${id}`);
  if (!run) throw new Error(`there is no run ${id}`);
  return run;
}

/** What is written of the schedules' episodes since this was asked last. */
async function causes(): Promise<string[]> {
  const rows = await store.rows<{ cause: string }>(
    sql`WITH gone AS (DELETE FROM effects RETURNING *) SELECT kind || ' ' || alert_kind AS cause FROM gone WHERE alert_kind IS NOT NULL ORDER BY id`,
  );
  return rows.map(({ cause }) => cause);
}

/** An episode of that kind is open from now on. */
const openAlert = (uid: string, kind: string) =>
  store.rows(sql`INSERT INTO alerts (id, schedule_uid, schedule_id, kind, since, broken_at)
    VALUES (gen_random_uuid(), ${uid}, 's', ${kind}, now(), now())`);

/** Its bound has passed by so many seconds. */
const passBound = (id: string, secondsAgo = 0.1) =>
  store.rows(sql`UPDATE runs SET bound_at = clock_timestamp() - make_interval(secs => ${secondsAgo}) WHERE id = ${id}`);

async function fired(expected: Expect | null = BOTH) {
  const schedule = await instance.put('s', { url, expect: expected });
  const { id } = await instance.fire('s');
  return { id, schedule };
}

async function claimed() {
  const room = { limit: 10, freeByLane: new Map<string, number>(), freePerLane: 10, targetTypes: ['http'] };
  const [claim] = await store.database.run((db) => claimReadyRuns(db, { ...room, instanceId: instance.id }));
  if (!claim) throw new Error('nothing was claimed');
  return claim;
}

/** Its first attempt begins. */
async function begun(expected: Expect | null = BOTH) {
  const run = await fired(expected);
  await begin();
  return run;
}
async function begin(): Promise<void> {
  const claim = await claimed();
  const bounded = claim.toBegin;
  const started = await store.database.run((db) => startHandoffsIfClaimed(db, [claimOf(claim)], { bounded }));
  expect(started).toEqual(new Set([claim.id]));
}

const success = (runId: string, at = Date.now()) => plainSuccess({ runId, instanceId: instance.id, at });
const settlePlain = async (id: string, at?: number) =>
  (await store.database.run((db) => settlePlainIfClaimed(db, [success(id, at)]))).settled(id);
const settleLocked = (id: string, at?: number) =>
  store.database.transaction((tx) => settleLockedRuns(tx, [success(id, at)], 'wait'));
const watch = () =>
  store.database.transaction(async (tx) =>
    judgePassedBounds(tx, await findPassedBounds(tx, { limit: 10, besides: [] })),
  );

describe('the beginning of the first attempt', () => {
  it('is to be durable where bounds go by it, and the bound of the end counts from it', async () => {
    const { id } = await fired();
    expect(await runOf(id)).toMatchObject({
      next_bound: 'start',
      bound_after: 60,
      finish_within_seconds: 900,
    });
    await begin();
    const { begun_after, bound_after, ...run } = await runOf(id);
    expect(run).toMatchObject({ unmet: null, next_bound: 'finish', finish_within_seconds: null });
    expect((bound_after ?? 0) - (begun_after ?? 0)).toBeCloseTo(900, 3);
    expect(await causes()).toEqual([]);
  });

  it('after its bound has passed breaks it, at once', async () => {
    const { id } = await fired();
    await passBound(id);
    await begin();
    expect(await runOf(id)).toMatchObject({ unmet: ['start'], next_bound: 'finish' });
    expect(await causes()).toEqual(['breaks unstarted']);
  });

  it('in time heals an episode that is open, and only such a one', async () => {
    const { schedule } = await fired();
    await openAlert(schedule.uid, 'unstarted');
    await begin();
    expect(await causes()).toEqual(['heals unstarted']);
  });

  it('leaves nothing to be judged where only the beginning was to be, and counts where only the end is', async () => {
    const { id } = await begun({
      startWithinSeconds: 60,
      finishWithinSeconds: null,
      atLeastSeconds: null,
      result: null,
    });
    expect(await runOf(id)).toMatchObject({ next_bound: null, bound_after: null });
    await instance.remove('s');
    const { id: other } = await fired({
      startWithinSeconds: null,
      finishWithinSeconds: 5,
      atLeastSeconds: null,
      result: null,
    });
    expect(await runOf(other)).toMatchObject({ next_bound: null, finish_within_seconds: 5 });
    await begin();
    expect(await runOf(other)).toMatchObject({ next_bound: 'finish', finish_within_seconds: null });
  });

  it('of a later attempt changes no bound', async () => {
    const { id } = await begun();
    const before = await runOf(id);
    await store.rows(sql`UPDATE runs SET claimed_by = NULL, claimed_at = NULL, ready = true WHERE id = ${id}`);
    const claim = await claimed();
    expect(claim.toBegin).toBe(false);
    const one = [claimOf(claim)];
    await store.database.run((db) => startHandoffsIfClaimed(db, one, { bounded: true }));
    expect(await runOf(id)).toMatchObject({ next_bound: 'finish', bound_after: before.bound_after });
  });

  it('is nothing to runs without bounds', async () => {
    await fired(null);
    expect(await claimed()).toMatchObject({ toBegin: false });
  });
});

describe('a worker’s claim', () => {
  const target = { type: 'pull', queue: 'q' } as const;
  const pull = async () => {
    const asks = [{ workerId: 'w', max: 1, leaseSeconds: 60, scope: null }];
    const { given } = await store.database.transaction((tx) =>
      claimPullRuns(tx, { queue: 'q', instanceId: instance.id, asks }),
    );
    return given.flat();
  };

  it('is the beginning', async () => {
    await instance.put('s', { url, target, expect: BOTH });
    const { id } = await instance.fire('s');
    await passBound(id);
    expect((await pull()).map(({ run }) => run.unmet)).toEqual([['start']]);
    expect(await runOf(id)).toMatchObject({ status: 'running', next_bound: 'finish' });
    expect(await causes()).toEqual(['breaks unstarted']);
  });

  it('that is taken back has not begun: the bounds are those of before', async () => {
    await instance.put('s', { url, target, expect: BOTH });
    const { id } = await instance.fire('s');
    const recorded = await runOf(id);
    const runs = await pull();
    expect(await runOf(id)).not.toMatchObject({ next_bound: 'start' });
    await store.database.run((db) => takeBackIfStillLeased(db, runs));
    expect(await runOf(id)).toEqual(recorded);
  });

  it('that is taken back leaves a broken bound broken', async () => {
    await instance.put('s', { url, target, expect: BOTH });
    const { id } = await instance.fire('s');
    await passBound(id);
    const runs = await pull();
    await store.database.run((db) => takeBackIfStillLeased(db, runs));
    expect(await runOf(id)).toMatchObject({ unmet: ['start'], next_bound: null, finish_within_seconds: 900 });
  });
});

describe('the end', () => {
  it('in time is settled in one statement, and keeps the bound', async () => {
    const { id } = await begun();
    expect(await settlePlain(id)).toBe(true);
    expect(await runOf(id)).toMatchObject({ status: 'succeeded', unmet: null });
    expect(await causes()).toEqual([]);
  });

  it('after the bound is left to the transaction that judges it', async () => {
    const { id } = await begun();
    await passBound(id);
    expect(await settlePlain(id)).toBe(false);
    await settleLocked(id);
    expect(await runOf(id)).toMatchObject({ status: 'succeeded', unmet: ['finish'] });
    expect(await causes()).toEqual(['breaks slow']);
  });

  it('in time heals an episode that is open', async () => {
    const { id, schedule } = await begun();
    await openAlert(schedule.uid, 'slow');
    expect(await settlePlain(id)).toBe(false);
    await settleLocked(id);
    expect(await causes()).toEqual(['heals slow']);
  });

  it('counts from the moment at which the answer came, however late that is written', async () => {
    const { id } = await begun();
    const at = Date.now();
    await passBound(id, 0);
    expect(await settlePlain(id, at - 60_000)).toBe(true);
    expect(await runOf(id)).toMatchObject({ unmet: null });
  });

  it('by a call says nothing of a bound that has not passed, and breaks one that has', async () => {
    const { id: first } = await fired();
    await cancelRun(actions(), first);
    expect(await runOf(first)).toMatchObject({ status: 'cancelled', unmet: null });
    const { id: second } = await instance.fire('s');
    await passBound(second);
    await cancelRun(actions(), second);
    expect(await runOf(second)).toMatchObject({ status: 'cancelled', unmet: ['start'] });
    expect(await causes()).toEqual(['breaks unstarted']);
  });

  it('is judged once: a retry has no bounds, and keeps what was found', async () => {
    const { id } = await fired();
    await passBound(id);
    await cancelRun(actions(), id);
    await retryRun(actions(), id);
    expect(await runOf(id)).toMatchObject({ status: 'pending', unmet: ['start'], next_bound: null });
    expect(await claimed()).toMatchObject({ toBegin: false });
  });
});

describe('the watch', () => {
  it('judges a bound that has passed once, whatever the run does', async () => {
    const { id } = await begun();
    await passBound(id, 2);
    expect([await watch(), await watch()]).toEqual([1, 0]);
    expect(await runOf(id)).toMatchObject({ status: 'pending', unmet: ['finish'], next_bound: null });
    expect(await settlePlain(id)).toBe(true);
    expect(await runOf(id)).toMatchObject({ status: 'succeeded', unmet: ['finish'] });
    expect(await causes()).toEqual(['breaks slow']);
  });

  it('finds waiting runs, and their end counts from when they begin at last', async () => {
    await instance.put('s', { url, expect: BOTH, overlap: 'queue' });
    await instance.fire('s');
    const { id } = await instance.fire('s');
    expect(await runOf(id)).toMatchObject({ status: 'waiting', next_bound: 'start' });
    await passBound(id, 2);
    await watch();
    expect(await runOf(id)).toMatchObject({ unmet: ['start'], next_bound: null, finish_within_seconds: 900 });
  });

  it('leaves a second for what was done in time and is being written', async () => {
    const { id } = await begun();
    await passBound(id, 0.1);
    expect(await watch()).toBe(0);
  });
});
