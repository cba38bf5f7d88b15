import { randomUUID } from 'node:crypto';
import { type SQL, sql } from 'drizzle-orm';
import { beforeEach, describe, expect, it } from 'vitest';
import { rowsOf } from '../../../src/postgres/sql/rows.ts';
import { claimDueRuns } from '../../../src/store/runs/claims/claim-due-runs.ts';
import { claimIfReady } from '../../../src/store/runs/claims/claim-if-ready.ts';
import type { ClaimedRun } from '../../../src/store/runs/claims/claimed-run.ts';
import { NO_ROOM, claimReadyRuns } from '../../../src/store/runs/claims/claims.ts';
import { claimOf, returnClaimsIfMine } from '../../../src/store/runs/claims/held-claims.ts';
import { instanceOfTest, storeOfTest } from '../../support/of-test.ts';
import { leaveRuns, lockRuns, runIdAt, runsOf } from '../../support/pending-runs.ts';
import type { Store, TestInstance } from '../../support/pipeline.ts';
import { countNow, needsCounting } from '../../support/postgres/counted.ts';

let store: Store;
let instance: TestInstance;

beforeEach(async () => {
  store = await storeOfTest();
  instance = await instanceOfTest(store);
});

interface Recorded {
  /** Of the run `i`. */
  lane?: SQL | string;
  dueInSeconds?: number;
  ready?: boolean;
  attempts?: number;
  limitId?: string | null;
}

async function record(count: number, recorded: Recorded = {}): Promise<void> {
  const { lane = 'http http://a', dueInSeconds = -5, ready = false, attempts = 0, limitId = null } = recorded;
  await store.rows(sql`INSERT INTO runs (id, scheduled_for, schedule_uid, schedule_version, schedule_id, trigger, status, lane, priority,
      due_at, ready, limit_id, attempts, created_at, updated_at)
    SELECT ${runIdAt(sql`at`)}, at, gen_random_uuid(), 1, '', 'api', 'pending', ${lane}, 1, at, ${ready}, ${limitId}, ${attempts}, at, at
    FROM generate_series(1, ${count}) AS i,
      LATERAL (SELECT date_trunc('second', now()) + make_interval(secs => ${dueInSeconds}) AS at) AS t`);
}

const request = () => ({
  instanceId: instance.id,
  limit: 100,
  freeByLane: new Map<string, number>(),
  freePerLane: 10,
  targetTypes: ['http'],
});

describe('a claim of ready runs', () => {
  const LANES = 8;

  const insertRuns = (count: number, dueInSeconds = 0, lanes = LANES) =>
    record(count, {
      lane: sql`'http http://host-' || (i % ${lanes}::int)`,
      dueInSeconds,
      ready: dueInSeconds === 0,
    });
  const claim = (limit: number, freePerLane: number): Promise<ClaimedRun[]> =>
    store.database.run((db) => claimReadyRuns(db, { ...request(), limit, freePerLane }));

  /** Rows that were read of the table, whatever by. */
  async function rowsRead(): Promise<number> {
    await countNow(store.database);
    const [row] = await store.rows<{ read: number }>(sql`SELECT (seq_tup_read + (
      SELECT sum(idx_tup_read) FROM pg_stat_user_indexes i WHERE i.relid = t.relid))::int AS read
    FROM pg_stat_user_tables t WHERE relid = 'runs'::regclass`);
    return row?.read ?? NaN;
  }

  it('claims read only what they claim, neither the whole backlog nor later runs, also if the statistics know no ready run', async (context) => {
    await needsCounting(context, store.database);
    await insertRuns(1_000);
    await store.rows(sql`UPDATE runs SET claimed_by = ${randomUUID()}, claimed_at = now()`);
    // What is dead in the index is read, too, until it is cleaned up.
    await store.rows(sql`VACUUM ANALYZE runs`);
    await insertRuns(4_000);
    await insertRuns(4_000, 604_800);
    const before = await rowsRead();
    const CLAIMS = 5;
    for (let n = 0; n < CLAIMS; n += 1) expect(await claim(1_000, 5)).toHaveLength(5 * LANES);
    const read = (await rowsRead()) - before;
    // Each where it waits and once more where it is written, and what earlier claims have left in the index.
    expect(read).toBeGreaterThanOrEqual(CLAIMS * 5 * LANES);
    expect(read).toBeLessThan(10 * CLAIMS * 5 * LANES);
  });

  it('a claim locks only what it claims, and reads a few runs of each lane, however many lanes have more', async (context) => {
    await needsCounting(context, store.database);
    await insertRuns(300 * 40, 0, 300);
    const before = await rowsRead();
    const runs = await claim(100, 40);
    const read = (await rowsRead()) - before;
    expect(runs).toHaveLength(100);
    // Where each lane begins, at most two runs of it, and what is claimed, a few times each.
    expect(read).toBeLessThan(300 * 4 + 100 * 10);
    // A row that was locked and not written still names its locker.
    expect(await store.rows(sql`SELECT FROM runs WHERE claimed_by IS NULL AND xmax <> 0`)).toEqual([]);
  });

  it('a claim takes the runs behind those that others have locked', async () => {
    await insertRuns(20, 0, 2);
    const released = Promise.withResolvers<undefined>();
    const locked = Promise.withResolvers<string[]>();
    const holding = store.database.transaction(async (tx) => {
      const rows = await rowsOf<{ id: string }>(tx)(sql`SELECT id FROM runs ORDER BY lane, due_at LIMIT 6 FOR UPDATE`);
      locked.resolve(rows.map(({ id }) => id));
      await released.promise;
    });
    const ids = new Set(await locked.promise);
    const runs = await claim(8, 4);
    expect(runs).toHaveLength(8);
    expect(runs.filter(({ id }) => ids.has(id))).toEqual([]);
    released.resolve(undefined);
    await holding;
  });

  it('a first claim that goes back unsent was no attempt: the age of its run does not count from it', async () => {
    await insertRuns(2);
    await store.rows(
      sql`UPDATE runs SET attempts = 1, first_claimed_at = now() - interval '1 day' WHERE lane LIKE '%-1'`,
    );
    const runs = await claim(2, 1);
    await store.database.run((db) => returnClaimsIfMine(db, runs.map(claimOf)));
    const rows = await store.rows(
      sql`SELECT attempts, first_claimed_at < now() - interval '1 hour' AS had_begun FROM runs ORDER BY attempts`,
    );
    expect(rows).toEqual([
      { attempts: 1, had_begun: null },
      { attempts: 2, had_begun: true },
    ]);
  });
});

describe('a claim of runs that have come due', () => {
  const take = (differing: Partial<Parameters<typeof claimDueRuns>[1]> = {}) =>
    store.database.run((db) => claimDueRuns(db, { ...request(), atMost: 50, ...differing }));
  /** By lane: how many are claimed, ready, and neither. */
  const states = async () => {
    const rows = await store.rows<{ lane: string; states: string }>(sql`SELECT lane, concat_ws(', ',
      count(*) FILTER (WHERE claimed_by IS NOT NULL), count(*) FILTER (WHERE claimed_by IS NULL AND ready),
      count(*) FILTER (WHERE claimed_by IS NULL AND NOT ready)) AS states
    FROM runs GROUP BY lane`);
    return Object.fromEntries(rows.map((row) => [row.lane, row.states]));
  };

  it('claims the runs that have come due, and counts the attempt; says when the next one comes due', async () => {
    await record(2, { attempts: 1 });
    await record(1, { dueInSeconds: 3_600 });
    const due = await take();
    expect(due.claimed.map(({ attempt, lane, instanceId }) => ({ attempt, lane, instanceId }))).toEqual(
      Array(2).fill({ attempt: 2, lane: 'http http://a', instanceId: instance.id }),
    );
    expect(due).toMatchObject({ count: 2, blocked: 0, toPull: false });
    expect(due.msUntilNextDue).toBeGreaterThan(3_000_000);
    expect(await states()).toEqual({ 'http http://a': '2, 0, 1' });
    expect(await take()).toMatchObject({ claimed: [], count: 0 });
  });

  it('claims none of a lane that has no room for all of them, and says which are blocked; those of others are claimed', async () => {
    await record(4, { lane: 'http http://full' });
    await record(4, { lane: 'http http://fuller' });
    await record(4, { lane: 'http http://free' });
    await record(4, { lane: 'sftp other' });
    const freeByLane = new Map([
      ['http http://full', 3],
      ['http http://fuller', 0],
    ]);
    expect(await take({ freeByLane })).toMatchObject({ count: 16, blocked: 12, claimed: { length: 4 } });
    expect(await states()).toEqual({
      'http http://full': '0, 4, 0',
      'http http://fuller': '0, 4, 0',
      'http http://free': '4, 0, 0',
      'sftp other': '0, 4, 0',
    });
  });

  it('claims none of a lane in which others wait already: these may be more urgent', async () => {
    await record(1, { ready: true });
    await record(2);
    expect(await take()).toMatchObject({ count: 2, blocked: 0, claimed: [] });
    expect(await states()).toEqual({ 'http http://a': '0, 3, 0' });
  });

  it('claims none where there is not room for all: then priorities decide among what is ready', async () => {
    await record(3);
    expect(await take({ limit: 2 })).toMatchObject({ count: 3, blocked: 3, claimed: [] });
    expect(await states()).toEqual({ 'http http://a': '0, 3, 0' });
  });

  it('claims nothing for an instance that was declared dead, nor while maintenance holds runs', async () => {
    await record(1, { lane: 'http http://a' });
    await store.rows(sql`UPDATE instances SET died_at = now() WHERE id = ${instance.id}`);
    expect(await take()).toMatchObject({ count: 1, blocked: 1, claimed: [] });
    await store.rows(sql`UPDATE instances SET died_at = NULL WHERE id = ${instance.id}`);
    await store.rows(sql`UPDATE installation SET mode = 'holds', mode_since = now()`);
    await record(1, { lane: 'http http://b' });
    expect(await take()).toMatchObject({ count: 1, blocked: 1, claimed: [] });
  });

  it('says that workers may pull what is ready now; leaves runs with a limit to admission', async () => {
    await record(1, { lane: 'pull q' });
    await record(1, { limitId: 'l' });
    expect(await take({ ...NO_ROOM, targetTypes: [] })).toMatchObject({
      count: 1,
      toPull: true,
      claimed: [],
    });
    expect(await states()).toEqual({ 'pull q': '0, 1, 0', 'http http://a': '0, 0, 1' });
  });

  it('takes at most so many, the longest due first', async () => {
    await record(3, { lane: 'http http://later', dueInSeconds: -1 });
    await record(3, { lane: 'http http://first', dueInSeconds: -9 });
    expect(await take({ atMost: 4 })).toMatchObject({ count: 4, claimed: { length: 4 } });
    expect(await states()).toEqual({ 'http http://first': '3, 0, 0', 'http http://later': '1, 0, 2' });
  });
});

describe('a claim by id', () => {
  beforeEach(async () => {
    await instance.put('one', { url: 'http://127.0.0.1:9/' });
    await leaveRuns(store, 'one');
  });

  const claimOffered = async (targetTypes = ['http']) => {
    const ids = (await runsOf(store, 'one')).map(({ id }) => id);
    return store.database.run((db) => claimIfReady(db, ids, { instanceId: instance.id, targetTypes }));
  };

  it('a run that is ready is claimed by its id, once', async () => {
    expect(await claimOffered()).toMatchObject([
      { scheduleId: 'one', instanceId: instance.id, attempt: 1, trigger: 'schedule', ofDeleted: false },
    ]);
    expect(await claimOffered()).toEqual([]);
    expect(await runsOf(store, 'one')).toMatchObject([{ attempts: 1, claimed_by: instance.id }]);
  });

  const NOT_CLAIMED: Record<string, SQL> = {
    'that another instance has claimed': sql`UPDATE runs SET claimed_by = ${randomUUID()}, claimed_at = now()`,
    'that is not due': sql`UPDATE runs SET ready = false, due_at = now() + interval '1 hour'`,
    'that waits': sql`UPDATE runs SET status = 'waiting', ready = false`,
    'while maintenance holds runs': sql`UPDATE installation SET mode = 'holds', mode_since = now()`,
    'by an instance that was declared dead': sql`UPDATE instances SET died_at = now()`,
  };

  it.each(Object.entries(NOT_CLAIMED))('none is claimed %s', async (_, change) => {
    await store.rows(change);
    expect(await claimOffered()).toEqual([]);
  });

  it('none is claimed that this version cannot send, or that another transaction has locked', async () => {
    expect(await claimOffered(['command'])).toEqual([]);
    const unlock = await lockRuns(store, 'one');
    expect(await claimOffered()).toEqual([]);
    await unlock();
    expect(await claimOffered()).toHaveLength(1);
  });
});
