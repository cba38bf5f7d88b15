import { sql } from 'drizzle-orm';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { parseScopeShares } from '../../src/core/access/scope-shares.ts';
import { PressingScopes } from '../../src/flow/pressing-scopes.ts';
import { claimDueRuns } from '../../src/store/runs/claims/claim-due-runs.ts';
import { NO_ROOM } from '../../src/store/runs/claims/claims.ts';
import { storeOfTest } from '../support/of-test.ts';
import { leaveRuns } from '../support/pending-runs.ts';
import { type Store, type TestInstance, createInstance } from '../support/pipeline.ts';
import { type Receiver, startReceiver } from '../support/receiver.ts';
import { ATTACK } from '../support/runner/attack.ts';
import { until } from '../support/until.ts';

const [SHARES] = parseScopeShares('a.:1,b.:1,a.nested.:1');

describe('a scope that fills the batches', () => {
  let now = 0;
  const pressing = () => new PressingScopes(SHARES, { now: () => now, monotonic: () => now });
  const full = (prefix: string) => ({ prefixes: Array.from({ length: 10 }, () => prefix), isFull: true });
  function take(scopes: PressingScopes, { prefixes, isFull }: { prefixes: string[]; isFull: boolean }) {
    const besideScopes = scopes.toPassOver();
    now += 10;
    scopes.found(prefixes, { isFull, besideScopes });
    return besideScopes;
  }

  it('is passed over by one batch, and three quarters of the time are for batches that pass over nothing', () => {
    const scopes = pressing();
    expect(take(scopes, full('a.'))).toEqual([]);
    expect(take(scopes, full('b.'))).toEqual(['a.']);
    const next = [1, 2, 3, 4].map(() => take(scopes, full('a.')));
    expect(next).toEqual([[], [], [], ['a.']]);
  });

  it('is passed over no more once a batch is not full', () => {
    const scopes = pressing();
    take(scopes, full('a.'));
    take(scopes, full('b.'));
    now += 1_000;
    take(scopes, full('a.'));
    now += 1_000;
    expect(take(scopes, { prefixes: ['b.'], isFull: true })).toEqual(['a.']);
    now += 1_000;
    scopes.found(['a.'], { isFull: false, besideScopes: [] });
    expect(scopes.toPassOver()).toEqual([]);
  });

  it('is not passed over where each has its share, or nothing is shared', () => {
    const scopes = pressing();
    scopes.found(['a.', 'b.', 'a.nested.', ''], { isFull: true, besideScopes: [] });
    expect(scopes.toPassOver()).toEqual([]);
    const alone = new PressingScopes([], { now: () => now, monotonic: () => now });
    alone.found(['', ''], { isFull: true, besideScopes: [] });
    expect(alone.toPassOver()).toEqual([]);
  });
});

describe('while another scope has very much to do', { tags: [ATTACK] }, () => {
  let store: Store;
  let receiver: Receiver;
  let instance: TestInstance;

  beforeEach(async () => {
    store = await storeOfTest();
    receiver = await startReceiver();
    instance = await createInstance(store, { scopeShares: SHARES, concurrency: 32 });
  });

  afterEach(async () => {
    await instance.stop();
    await receiver.close();
  });

  it('what follows from the end of a run is done before theirs, which were there earlier', async () => {
    const { url } = receiver;
    for (const id of ['a.parent', 'b.parent']) await instance.put(id, { url });
    const queue = { target: { type: 'pull', queue: 'q' } } as const;
    for (const id of ['a', 'b'])
      await instance.put(`${id}.child`, {
        ...{ url, cron: null, after: { scheduleId: `${id}.parent`, on: ['succeeded'] } },
        ...queue,
      });
    for (const [id, count] of [
      ['a.parent', 5_000],
      ['b.parent', 5],
    ] as const)
      await store.rows(sql`INSERT INTO effects
        (kind, run_id, schedule_uid, schedule_version, schedule_id, trigger, status, finished_at, attempt)
        SELECT 'followers', gen_random_uuid(), uid, version, id, 'schedule', 'succeeded', clock_timestamp(), 1
        FROM schedules, generate_series(1, ${count}) WHERE id = ${id}`);
    await instance.pipeline.effects.start();
    const left = await until(async () => {
      const rows = await store.rows<{ schedule_id: string; count: number }>(
        sql`SELECT schedule_id, count(*)::int AS count FROM effects GROUP BY 1`,
      );
      return rows.every(({ schedule_id: id }) => id === 'a.parent') ? rows : null;
    });
    expect(left[0]?.count).toBeGreaterThan(2_000);
    await until(async () => (await store.rows(sql`SELECT FROM effects`)).length === 0 || null);
    const children = await store.rows(sql`SELECT schedule_id, count(*)::int AS count FROM runs
      WHERE trigger = 'after' GROUP BY 1 ORDER BY 1`);
    expect(children).toEqual([
      { schedule_id: 'a.child', count: 5_000 },
      { schedule_id: 'b.child', count: 5 },
    ]);
  });

  it('runs that come due later than they were recorded do not wait for theirs', async () => {
    const { url } = receiver;
    for (const id of ['a.many', 'b.few']) await instance.put(id, { url });
    await leaveRuns(store, 'a.many', { count: 10_000, lateBySeconds: 100 });
    await leaveRuns(store, 'b.few', { count: 20 });
    await store.rows(
      sql`UPDATE runs SET ready = false, lane = lane || ' @' || split_part(schedule_id, '.', 1) || '.'`,
    );
    const nothing = { ...NO_ROOM, instanceId: instance.id, targetTypes: ['http'] };
    const look = (besideScopes: readonly string[]) =>
      store.database.run((db) => claimDueRuns(db, { ...nothing, atMost: 125, besideScopes }));
    expect((await look([])).prefixes).toEqual(Array.from({ length: 125 }, () => 'a.'));
    expect((await look(['a.'])).prefixes).toEqual(Array.from({ length: 20 }, () => 'b.'));
    await store.rows(sql`UPDATE runs SET ready = false WHERE ready`);
    await instance.start();
    const arrived = await until(() => {
      const ids = receiver.arrivals.map(({ body }) => body.scheduleId);
      return ids.filter((id) => id === 'b.few').length === 20 ? ids : null;
    });
    expect(arrived.length).toBeLessThan(3_000);
  });
});
