// @module-tag attack
// @module-tag long
import { sql } from 'drizzle-orm';
import { expect, it } from 'vitest';
import type { Definition } from '../../../src/core/schedules/schedule.ts';
import { lockNextBacklogs } from '../../../src/store/backlogs/backlog-rows.ts';
import { eachTest, instanceOfTest, storeOfTest } from '../../support/of-test.ts';
import { countRuns, leaveOpenRuns } from '../../support/open-runs.ts';
import { notingAll } from '../../support/postgres/noting.ts';
import { until } from '../../support/until.ts';

const store = eachTest(storeOfTest);
const instance = eachTest(() => instanceOfTest(store));

const put = (more: Partial<Definition>, id = 'one') =>
  instance.put(id, { url: '', target: { type: 'pull', queue: 'q' }, ...more });
const noneLeft = () => until(async () => ((await store.rows(sql`SELECT FROM backlogs`)).length === 0 ? true : null));
const marked = async (id = 'one') => {
  const [row] = await store.rows<{ guarded: number; watched: number }>(
    sql`SELECT count(*) FILTER (WHERE overlap_guarded)::int AS guarded, count(*) FILTER (WHERE outcome_watched)::int AS watched
    FROM runs WHERE schedule_id = ${id} AND status <> 'waiting'`,
  );
  return row;
};
/** The most rows of `runs` that one transaction has written. */
const mostAtOnce = async () => {
  const [row] = await store.rows<{ most: number }>(
    sql`SELECT max(count)::int AS most FROM (
      SELECT count(*) FROM runs WHERE overlap_guarded OR outcome_watched GROUP BY xmin) AS t`,
  );
  return row?.most;
};

it('a hundred open runs count at once after an edit, and more than that are marked in slices', async () => {
  await put({ overlap: 'allow' }, 'few');
  await put({ overlap: 'allow' });
  await leaveOpenRuns(store, 'few', 100, { guarded: false });
  await leaveOpenRuns(store, 'one', 1_000, { guarded: false });
  await put({ overlap: 'skip', pauseAfterFailures: 3 }, 'few');
  await put({ overlap: 'skip', pauseAfterFailures: 3 });
  expect(await marked('few')).toEqual({ guarded: 100, watched: 100 });
  expect(await marked()).toEqual({ guarded: 0, watched: 0 });
  await instance.pipeline.backlogs.start();
  await noneLeft();
  expect(await marked()).toEqual({ guarded: 1_000, watched: 1_000 });
  expect(await mostAtOnce()).toBeLessThanOrEqual(250);
});

it('they are active for the next fire before any is marked', async () => {
  await put({ overlap: 'allow' });
  await leaveOpenRuns(store, 'one', 300, { guarded: false, trigger: 'manual' });
  await put({ overlap: 'skip' });
  expect((await instance.fire('one')).status).toBe('skipped');
  await put({ overlap: 'queue' });
  expect((await instance.fire('one')).status).toBe('waiting');
});

it('a run that waits for them starts, though they have all ended before they were marked', async () => {
  await put({ overlap: 'allow' });
  await leaveOpenRuns(store, 'one', 300, { guarded: false });
  await put({ overlap: 'queue' });
  expect((await instance.fire('one')).status).toBe('waiting');
  await store.rows(sql`DELETE FROM runs WHERE status = 'pending'`);
  await instance.pipeline.effects.start();
  await instance.pipeline.backlogs.start();
  await until(async () => ((await countRuns(store, 'one'))['pending'] === 1 ? true : null));
});

it('a fire replaces those that were not marked yet as well, but none that was recorded after it', async () => {
  await put({ overlap: 'allow' });
  await leaveOpenRuns(store, 'one', 1_000, { guarded: false });
  await put({ overlap: 'replace' });
  expect((await instance.fire('one')).status).toBe('pending');
  const second = await instance.fire('one');
  await instance.pipeline.backlogs.start();
  await noneLeft();
  expect(await countRuns(store, 'one')).toEqual({ pending: 1, 'cancelled replaced': 1_001 });
  expect(await store.rows(sql`SELECT id FROM runs`)).toEqual([{ id: second.id }]);
});

it('however many fires replace runs that are still to be marked, they leave one backlog, which waits for the marks', async () => {
  await put({ overlap: 'allow' });
  await leaveOpenRuns(store, 'one', 1_000, { guarded: false });
  await put({ overlap: 'replace' });
  for (let fires = 0; fires < 5; fires += 1) await instance.fire('one');
  const last = await instance.fire('one');
  const kinds = () => store.rows(sql`SELECT kind, kept_run FROM backlogs ORDER BY kind`);
  expect(await kinds()).toEqual([
    { kind: 'marked', kept_run: null },
    { kind: 'replaced', kept_run: last.id },
  ]);
  const next = () => store.database.transaction(async (tx) => (await lockNextBacklogs(tx)).map(({ kind }) => kind));
  expect(await next()).toEqual(['marked']);
  await store.rows(sql`UPDATE backlogs SET next_at = now() + interval '1 hour' WHERE kind = 'marked'`);
  expect(await next()).toEqual([]);
  // Marks that the database refuses hold up nothing else.
  await store.rows(sql`UPDATE backlogs SET failures = 1 WHERE kind = 'marked'`);
  expect(await next()).toEqual(['replaced']);
  await store.rows(sql`UPDATE backlogs SET failures = 0, next_at = now()`);
  await instance.pipeline.backlogs.start();
  await noneLeft();
  expect(await countRuns(store, 'one')).toEqual({ pending: 1, 'cancelled replaced': 1_005 });
});

it('a few runs are marked in a few slices, however many of other schedules are open', async () => {
  const statements: string[] = [];
  const counting = await instanceOfTest({ ...store, database: notingAll(store.database, statements) });
  await put({ overlap: 'allow' }, 'others');
  await put({ overlap: 'allow' });
  await leaveOpenRuns(store, 'others', 6_000, { guarded: false });
  await leaveOpenRuns(store, 'one', 150, { guarded: false, secondsAgo: 2_000 });
  await put({ overlap: 'queue' });
  await counting.pipeline.backlogs.start();
  await noneLeft();
  expect(await marked()).toEqual({ guarded: 150, watched: 0 });
  expect(statements.filter((name) => name === 'markSlice').length).toBeLessThanOrEqual(4);
});

it('many schedules are marked in one walk over all open runs, and one that was edited back is left alone', async () => {
  const ids = Array.from({ length: 5 }, (_, n) => `of-many-${n}`);
  const target = { type: 'pull', queue: 'q' } as const;
  await instance.putMany([...ids, 'back'], { url: '', target });
  for (const id of [...ids, 'back']) await leaveOpenRuns(store, id, 150, { guarded: false });
  await instance.putMany([...ids, 'back'], { url: '', target, overlap: 'queue' });
  await put({ overlap: 'allow' }, 'back');
  const transactions = await countTransactions(async () => {
    await instance.pipeline.backlogs.start();
    await noneLeft();
  });
  for (const id of ids) expect(await marked(id)).toEqual({ guarded: 150, watched: 0 });
  expect(await marked('back')).toEqual({ guarded: 0, watched: 0 });
  // 900 open runs, 100 at a time.
  expect(transactions).toBeLessThanOrEqual(11);
});

/** How many transactions have written marks. */
async function countTransactions(work: () => Promise<void>): Promise<number> {
  await work();
  const [row] = await store.rows<{ count: number }>(
    sql`SELECT count(DISTINCT xmin::text)::int AS count FROM runs WHERE overlap_guarded`,
  );
  return row?.count ?? 0;
}

it('a row that another transaction has locked is marked once it is let go of, and none before it is forgotten', async () => {
  await put({ overlap: 'allow' });
  await leaveOpenRuns(store, 'one', 400, { guarded: false });
  await put({ overlap: 'queue' });
  const [middle] = await store.rows<{ id: string }>(sql`SELECT id FROM runs ORDER BY id OFFSET 200 LIMIT 1`);
  await store.database.transaction(async (tx) => {
    await tx.execute(sql`SELECT FROM runs WHERE id = ${middle?.id ?? ''} FOR UPDATE`);
    await instance.pipeline.backlogs.start();
    await until(async () => ((await marked())?.guarded === 200 ? true : null));
  });
  await noneLeft();
  expect(await marked()).toEqual({ guarded: 400, watched: 0 });
});
