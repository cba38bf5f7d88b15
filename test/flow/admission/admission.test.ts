import type { ServerResponse } from 'node:http';
import { sql } from 'drizzle-orm';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { cancelRun, completeRun, retryRun } from '../../../src/operations/runs/act-on-runs.ts';
import { admitUnderLock, LIMIT_ROWS, limitsToAdmit } from '../../../src/store/limits/limits.ts';
import { findNamed } from '../../../src/store/names/named-rows.ts';
import { putLimitOf } from '../../support/named.ts';
import { receiverOfTest, storeOfTest, eachTest } from '../../support/of-test.ts';
import { runIdAt, heldTransaction } from '../../support/pending-runs.ts';
import { ATTACK } from '../../support/runner/attack.ts';
import { type TestInstance, createInstance } from '../../support/pipeline.ts';
import type { Arrival } from '../../support/receiver.ts';
import { until } from '../../support/until.ts';

const store = eachTest(storeOfTest);
const receiver = eachTest(() =>
  receiverOfTest((arrival, response) => {
    open.set(arrival.body.runId, response);
    most = Math.max(most, open.size);
  }),
);
let instances: [TestInstance, TestInstance];
let first: TestInstance;
/** Requests that the receiver has not answered, by run; the most there were at once. */
let open: Map<string, ServerResponse>;
let most: number;

beforeEach(async () => {
  open = new Map();
  most = 0;
  instances = [await createInstance(store), await createInstance(store)];
  [first] = instances;
});

afterEach(async () => {
  for (const response of open.values()) response.end('{}');
  for (const instance of instances) await instance.stop();
});

const limitTo = (maxRunning: number) => putLimitOf(first.deps, maxRunning);
const state = () => store.database.run((db) => findNamed(db, LIMIT_ROWS, { id: 'l' }));
const start = () => Promise.all(instances.map((instance) => instance.start()));
/** So many requests are at the receiver at this moment. */
const isOpen = (count: number) => until(() => (open.size === count ? [...open.keys()] : null));

function answer(runId: string, status = 200): void {
  const response = open.get(runId);
  open.delete(runId);
  response?.writeHead(status).end('{}');
}

async function ended(id: string): Promise<string> {
  return until(async () => {
    const [row] = await store.rows<{ status: string }>(sql`SELECT status FROM history WHERE id = ${id}`);
    return row?.status ?? null;
  });
}

/** Limits with one place each, and a due run that waits for it. */
async function limitsThatWait(count: number): Promise<void> {
  await store.rows(sql`WITH made AS (
      INSERT INTO limits SELECT 'a-' || lpad(i::text, 3, '0'), NULL, 1, 1, now() FROM generate_series(1, ${count}::int) i RETURNING id)
    INSERT INTO runs (id, scheduled_for, schedule_uid, schedule_version, schedule_id, trigger, status, lane, priority, due_at,
      limit_id, ready, attempts, created_at, updated_at)
    SELECT ${runIdAt(sql`at`)}, at, gen_random_uuid(), 1, '', 'api', 'pending', 'http http://127.0.0.1:1', 1, at,
      made.id, false, 0, at, at
    FROM made, LATERAL (SELECT date_trunc('second', clock_timestamp()) - interval '1 minute' AS at) AS t`);
}

describe('runs with a limit', () => {
  it('are never more than maxRunning at once, on any number of instances, and a free place is given at once', async () => {
    await limitTo(3);
    for (const id of ['a', 'b']) await first.put(id, { url: receiver.url, limit: 'l', everySeconds: 1, cron: null });
    await start();
    const accepted = await first.accept(...Array.from({ length: 10 }, () => ({ url: receiver.url, limit: 'l' })));
    for (let sent = 0; sent < 9; sent += 1) {
      const [oldest] = await isOpen(3);
      expect((await state())?.running).toBe(3);
      answer(oldest ?? '');
    }
    expect(most).toBe(3);
    expect(accepted).toHaveLength(10);
  });

  it('are ordered by priority, then by due time; runs without a limit do not wait', async () => {
    await limitTo(1);
    await start();
    const runAt = Date.now() - 10_000;
    const asked = { url: receiver.url, limit: 'l' } as const;
    const [blocker] = await first.accept(asked);
    await isOpen(1);
    const ids = await first.accept(
      { ...asked, priority: 'low', runAt: runAt - 5_000 },
      { ...asked, runAt },
      { ...asked, runAt: runAt - 1_000 },
      { ...asked, priority: 'high' },
      { url: receiver.url },
    );
    await isOpen(2);
    answer(ids[4]?.id ?? '');
    const order: string[] = [];
    for (let next = blocker?.id ?? ''; order.length < 4; order.push(next)) {
      answer(next);
      [next = ''] = await isOpen(1);
    }
    expect(order).toEqual([3, 2, 1, 0].map((index) => ids[index]?.id));
    answer(order.at(-1) ?? '');
  });

  it('leave their place to others between two attempts, and come back for the next', async () => {
    await limitTo(1);
    await start();
    const retry = { maxAttempts: 2, minBackoffSeconds: 0, maxBackoffSeconds: 0 };
    const ids = await first.accept(
      { url: receiver.url, limit: 'l', retry, priority: 'low' },
      { url: receiver.url, limit: 'l', retry, priority: 'low' },
    );
    const order: string[] = [];
    for (const status of [503, 200, 200]) {
      const [next = ''] = await isOpen(1);
      order.push(next);
      answer(next, status);
      await until(() => (open.size === 0 || !open.has(next) ? true : null));
    }
    // Of two runs of one millisecond either may be the first.
    const [one = ''] = order;
    const other = ids.find(({ id }) => id !== one)?.id;
    expect(order).toEqual([one, other, one]);
    expect(await ended(one)).toBe('succeeded');
    expect(most).toBe(1);
  });

  it('keep their place until they end: also while their completion is awaited, and while their instance is gone', async () => {
    await limitTo(2);
    await start();
    const asked = { url: receiver.url, limit: 'l', completion: 'callback' } as const;
    const ids = (await first.accept(asked, asked, asked)).map(({ id }) => id);
    const under = await isOpen(2);
    for (const id of under) answer(id);
    await until(async () => {
      const rows = await store.rows(sql`SELECT id FROM runs WHERE status = 'running'`);
      return rows.length === 2 || null;
    });
    expect(await state()).toMatchObject({ running: 2, waiting: 1 });
    const word = { attempt: null, workerId: null, status: 'succeeded', error: null, result: null } as const;
    await completeRun(first.deps, under[0] ?? '', word);
    const [third = ''] = await isOpen(1);
    expect(ids).toContain(third);
    expect(await state()).toMatchObject({ running: 2, waiting: 0 });
    await cancelRun(first.deps, under[1] ?? '');
    expect(await state()).toMatchObject({ running: 1, waiting: 0 });
  });
});

describe('a limit', () => {
  it('that is lowered stops no run, and lets none begin until enough have ended; raised, it lets more begin at once', async () => {
    await limitTo(3);
    await start();
    await first.accept(...Array.from({ length: 8 }, () => ({ url: receiver.url, limit: 'l' })));
    await isOpen(3);
    await limitTo(1);
    for (const left of [2, 1]) {
      answer([...open.keys()][0] ?? '');
      await until(async () => ((await state())?.running === left ? true : null));
    }
    expect(open.size).toBe(1);
    expect(await state()).toMatchObject({ maxRunning: 1, running: 1, waiting: 5 });
    await limitTo(4);
    await isOpen(4);
    expect(await state()).toMatchObject({ running: 4, waiting: 2 });
  });

  it('is decided under the lock of its row: if two give places at one moment, each sees what the other gave', async () => {
    await limitTo(2);
    await first.accept(...Array.from({ length: 6 }, () => ({ url: receiver.url, limit: 'l' })));
    const rounds = Array.from({ length: 8 }, () => store.database.transaction((tx) => admitUnderLock(tx, ['l'])));
    const admitted = (await Promise.all(rounds)).reduce((sum, { toClaim }) => sum + toClaim, 0);
    expect(admitted).toBe(2);
    expect(await store.rows(sql`SELECT id FROM runs WHERE ready`)).toHaveLength(2);
  });

  it('that another transaction has locked holds up no other', async () => {
    await limitTo(1);
    await putLimitOf(first.deps, 1, 'other');
    await start();
    const letGo = await heldTransaction(store.database, (tx) =>
      tx.execute(sql`SELECT FROM limits WHERE id = 'l' FOR UPDATE`),
    );
    await store.rows(sql`INSERT INTO limits VALUES ('a', NULL, 1, 1, now())`);
    const ids = await first.accept({ url: receiver.url, limit: 'other' });
    expect(await isOpen(1)).toEqual([ids[0]?.id]);
    await letGo();
  });

  it(
    'gets its turn behind more limits than one look takes, of which none can be given',
    { tags: [ATTACK] },
    async () => {
      await limitsThatWait(120);
      await putLimitOf(first.deps, 1, 'zz');
      const letGo = await heldTransaction(store.database, (tx) =>
        tx.execute(sql`SELECT FROM limits WHERE id < 'z' FOR UPDATE`),
      );
      const [run] = await first.accept({ url: receiver.url, limit: 'zz' });
      await start();
      expect(await isOpen(1)).toEqual([run?.id]);
      await letGo();
    },
  );

  it('is looked for behind the last one, through so many names at a time', async () => {
    await limitsThatWait(10);
    const seen: string[][] = [];
    let looks = 0;
    for (let after: string | null = ''; after !== null; looks += 1) {
      const from: string = after;
      const { ids, next } = await store.database.run((db) => limitsToAdmit(db, 3, { after: from, names: 4 }));
      seen.push(ids);
      after = next;
    }
    const all = seen.flat();
    expect(all).toEqual(Array.from({ length: 10 }, (_, n) => `a-${String(n + 1).padStart(3, '0')}`));
    expect(looks).toBe(4);
  });

  it('keeps the run of a limit from being claimed, whatever writes its row', async () => {
    await limitTo(1);
    const [run] = await first.accept({ url: receiver.url, limit: 'l' });
    const written = (change: string) =>
      store.rows(sql`UPDATE runs SET ${sql.raw(change)} WHERE id = ${run?.id}`).then(
        () => 'written',
        (error: unknown) => String((error as { cause?: Error }).cause ?? error),
      );
    for (const change of ['ready = true', 'claimed_by = gen_random_uuid()', "status = 'running'"])
      expect(await written(change)).toContain('runs_place');
    expect(await written('ready = true, admitted_at = now()')).toBe('written');
  });
});

it('a run that is opened again waits for a place like any other', async () => {
  await limitTo(1);
  await start();
  const [failed] = await first.accept({ url: receiver.url, limit: 'l' });
  answer((await isOpen(1))[0] ?? '', 400);
  expect(await ended(failed?.id ?? '')).toBe('failed');
  const [other] = await first.accept({ url: receiver.url, limit: 'l' });
  await isOpen(1);
  expect(await retryRun(first.deps, failed?.id ?? '')).toMatchObject({ kind: 'done' });
  expect(await state()).toMatchObject({ running: 1, waiting: 1 });
  answer(other?.id ?? '');
  expect(await until(() => (open.has(failed?.id ?? '') ? true : null))).toBe(true);
  const arrivals: Arrival[] = receiver.arrivals.filter(({ body }) => body.runId === failed?.id);
  expect(arrivals.map(({ body }) => body.attempt)).toEqual([1, 2]);
});
