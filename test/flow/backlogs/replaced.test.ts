// @module-tag attack
// @module-tag long
import { sql } from 'drizzle-orm';
import { describe, expect, it } from 'vitest';
import type { Overlap } from '../../../src/core/schedules/schedule.ts';
import { writeOverlapEffects } from '../../../src/store/effects/insert-effects.ts';
import { eachTest, FAR, instanceOfTest, storeOfTest } from '../../support/of-test.ts';
import { countRuns, leaveOpenRuns } from '../../support/open-runs.ts';
import { createInstance } from '../../support/pipeline.ts';
import { until } from '../../support/until.ts';

const store = eachTest(() => storeOfTest(FAR));
const instance = eachTest(() => instanceOfTest(store));

/** Its runs stay where they are recorded: no worker asks for them. */
const put = (overlap: Overlap, more: object = {}) =>
  instance.put('one', { overlap, url: '', target: { type: 'pull', queue: 'q' }, ...more });
const backlogs = () => store.rows<{ kind: string }>(sql`SELECT kind FROM backlogs`);
const noneLeft = () => until(async () => ((await backlogs()).length === 0 ? true : null));
const states = () => countRuns(store, 'one');
/** The most runs that one transaction has ended. */
const mostAtOnce = async () => {
  const [row] = await store.rows<{ most: number }>(
    sql`SELECT max(count)::int AS most FROM (SELECT count(*) FROM history GROUP BY xmin) AS t`,
  );
  return row?.most ?? 0;
};

describe('under replace, a fire that comes while a thousand runs are active', () => {
  it('starts at once, and they are cancelled in slices, each in a transaction of its own', async () => {
    await put('replace');
    await leaveOpenRuns(store, 'one', 1_000);
    const fired = await instance.fire('one');
    expect(fired.status).toBe('pending');
    expect(await states()).toEqual({ pending: 1_001 });
    expect(await backlogs()).toEqual([{ kind: 'replaced' }]);
    await instance.pipeline.backlogs.start();
    await noneLeft();
    expect(await states()).toEqual({ pending: 1, 'cancelled replaced': 1_000 });
    const open = await store.rows<{ id: string }>(sql`SELECT id FROM runs`);
    expect(open).toEqual([{ id: fired.id }]);
    expect(await mostAtOnce()).toBeLessThanOrEqual(100);
    const cancelled = instance.events.flatMap((event) => (event.type === 'runsCancelled' ? event.count : []));
    expect(cancelled.reduce((sum, count) => sum + count, 0)).toBe(1_000);
    // They cause no judgements: nothing of the schedule waits.
    expect(await store.rows(sql`SELECT FROM effects WHERE kind = 'overlap'`)).toEqual([]);
  });

  it('takes no run along that came later, or that starts beside others', async () => {
    await put('replace');
    await leaveOpenRuns(store, 'one', 600);
    await leaveOpenRuns(store, 'one', 300, { trigger: 'backfill', secondsAgo: 10_000 });
    await leaveOpenRuns(store, 'one', 300, { retried: true, secondsAgo: 20_000 });
    await instance.fire('one');
    const second = await instance.fire('one');
    await instance.pipeline.backlogs.start();
    await noneLeft();
    expect(await states()).toEqual({ pending: 601, 'cancelled replaced': 601 });
    const obeying = await store.rows<{ id: string }>(
      sql`SELECT id FROM runs WHERE trigger <> 'backfill' AND retried_after IS NULL`,
    );
    expect(obeying).toEqual([{ id: second.id }]);
  });

  it('has the targets of the running ones called', async () => {
    await put('replace', { completion: 'callback' });
    await leaveOpenRuns(store, 'one', 450, { status: 'running' });
    await instance.fire('one');
    await instance.pipeline.backlogs.start();
    await noneLeft();
    expect(await store.rows(sql`SELECT FROM effects WHERE kind = 'cancel'`)).toHaveLength(450);
  });

  it('leaves slices that another instance does, when the one that began them has died', async () => {
    await put('replace');
    await leaveOpenRuns(store, 'one', 1_000);
    await instance.fire('one');
    const other = await createInstance(store);
    await other.pipeline.backlogs.start();
    await noneLeft();
    await other.stop();
    expect(await states()).toEqual({ pending: 1, 'cancelled replaced': 1_000 });
  });

  it('leaves the one run that the database refuses to cancel, and cancels the others', async () => {
    await put('replace');
    await leaveOpenRuns(store, 'one', 240);
    const [oldest] = await store.rows<{ id: string }>(sql`SELECT id FROM runs ORDER BY created_at, id LIMIT 1`);
    await store.rows(sql`ALTER TABLE history ADD CONSTRAINT refused CHECK (id <> ${sql.raw(`'${oldest?.id ?? ''}'`)})`);
    await instance.fire('one');
    await instance.pipeline.backlogs.start();
    await until(async () => ((await states())['cancelled replaced'] === 239 ? true : null));
    const isPutOff = () => instance.events.find(({ type }) => type === 'effectPutOff');
    expect(isPutOff()).toMatchObject({ kind: 'replaced', runId: oldest?.id, scheduleId: 'one' });
    await store.rows(sql`ALTER TABLE history DROP CONSTRAINT refused`);
    await noneLeft();
    expect(await states()).toEqual({ pending: 1, 'cancelled replaced': 240 });
  });
});

describe('runs that start beside others', () => {
  it.each([
    ['backfilled', { trigger: 'backfill' }],
    ['retried', { retried: true }],
  ] as const)('count as active when they were %s, and give way to none', async (_, given) => {
    await put('skip');
    await leaveOpenRuns(store, 'one', 300, given);
    expect((await instance.fire('one')).status).toBe('skipped');
    await put('queue');
    expect((await instance.fire('one')).status).toBe('waiting');
    await put('replace');
    expect(await states()).toEqual({ pending: 301, 'skipped overlap': 1 });
    expect((await instance.fire('one')).status).toBe('pending');
    expect(await states()).toEqual({ pending: 301, 'cancelled replaced': 1, 'skipped overlap': 1 });
    expect(await backlogs()).toEqual([]);
  });
});

describe('a thousand runs that wait', () => {
  it.each([
    ['allow', { pending: 1_000 }],
    ['skip', { pending: 1, 'skipped overlap': 999 }],
    ['queue', { pending: 1, waiting: 1, 'skipped overlap': 998 }],
    ['replace', { pending: 1, 'cancelled replaced': 999 }],
  ] as const)('are judged under %s as if they came one by one, by several transactions', async (overlap, expected) => {
    const { uid } = await put(overlap);
    await leaveOpenRuns(store, 'one', 1_000, { status: 'waiting' });
    const inOrder = async () =>
      (await store.rows<{ id: string }>(sql`SELECT id FROM runs ORDER BY created_at, id`)).map(({ id }) => id);
    const ids = await inOrder();
    await store.database.transaction((tx) => writeOverlapEffects(tx, [uid]));
    await instance.pipeline.effects.start();
    await instance.pipeline.begunEffects.start();
    await until(async () => ((await store.rows(sql`SELECT FROM effects`)).length === 0 ? true : null));
    expect(await states()).toEqual(expected);
    const [first, last] = [ids.slice(0, 1), ids.slice(-1)];
    const left = { allow: ids, skip: first, queue: [...first, ...last], replace: last };
    expect(await inOrder()).toEqual(left[overlap]);
    expect(await mostAtOnce()).toBeLessThanOrEqual(200);
  });
});
