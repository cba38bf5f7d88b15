import { sql } from 'drizzle-orm';
import { describe, expect, it } from 'vitest';
import { completeRun } from '../../../src/operations/runs/act-on-runs.ts';
import type { Definition } from '../../../src/core/schedules/schedule.ts';
import type { Database } from '../../../src/postgres/database.ts';
import { eachTest, instanceOfTest, receiverOfTest, sqlOfTest, storeOfTest } from '../../support/of-test.ts';
import { applyAll, applyNext } from '../../support/effects.ts';
import { endedRunsOf, leaveRuns, loseAnswerOf, runIdAt, runsOf } from '../../support/pending-runs.ts';
import type { TestInstance } from '../../support/pipeline.ts';
import { refuseRunsOf, refuseToStart } from '../../support/refused.ts';
import { until } from '../../support/until.ts';

const store = eachTest(storeOfTest);
const receiver = eachTest(receiverOfTest);
const psql = eachTest(() => sqlOfTest(store.url));

const instanceOn = (database: Database = store.database) => instanceOfTest({ ...store, database });

/** What a worker says of its run. */
const WORD = { attempt: 1, workerId: null, status: 'succeeded', error: null, result: null } as const;
const QUEUE = { target: { type: 'pull', queue: 'q' } } as const;
const put = (instance: TestInstance, id: string, more: Partial<Definition> = {}) =>
  instance.put(id, { url: `${receiver.url}/${id}`, ...more });
/** Its runs stay where they are recorded. */
const follow = (instance: TestInstance, id: string, scheduleId: string, more: Partial<Definition> = {}) =>
  put(instance, id, { cron: null, after: { scheduleId, on: ['succeeded'] }, ...QUEUE, ...more });

interface EffectRow {
  kind: string;
  run_id: string;
  failures: number;
  error: string | null;
  waits: boolean | null;
}
const effects = () =>
  store.rows<EffectRow>(
    sql`SELECT kind, run_id, failures, error, retry_at > clock_timestamp() AS waits FROM effects ORDER BY id`,
  );
const noneLeft = () => until(async () => ((await effects()).length === 0 ? true : null));
/** Whose ends the runs of a schedule follow. */
const followedBy = async (id: string) =>
  (
    await store.rows<{ id: string }>(
      sql`SELECT parent_run_id AS id FROM all_runs WHERE schedule_id = ${id} ORDER BY parent_run_id`,
    )
  ).map((row) => row.id);
const endsOf = async (id: string) => (await endedRunsOf(store, id)).map((run) => run.id).sort();
const failed = ({ events }: TestInstance) => events.filter(({ type }) => type === 'loopFailed');

/** What follows from the ends of so many runs of a schedule, as their ends have written it. */
async function leaveEnds(scheduleId: string, count: number): Promise<string[]> {
  const rows = await store.rows<{ id: string }>(sql`INSERT INTO effects
    (kind, run_id, schedule_uid, schedule_version, schedule_id, trigger, status, finished_at, attempt)
    SELECT 'followers', ${runIdAt(sql`clock_timestamp()`)}, uid, version, id, 'schedule', 'succeeded', clock_timestamp(), 1
    FROM schedules, generate_series(1, ${count}) WHERE id = ${scheduleId} RETURNING run_id AS id`);
  return rows.map(({ id }) => id).sort();
}

describe('an effect of an end', () => {
  it('is done once, although two instances work on it', async () => {
    const [one, other] = [await instanceOn(), await instanceOn()];
    await put(one, 'parent');
    await follow(one, 'child', 'parent');
    await follow(one, 'dear', 'parent', { overlap: 'queue' });
    await follow(one, 'all', '*');
    const left = await leaveEnds('parent', 250);
    await leaveRuns(store, 'parent', { count: 100 });
    await Promise.all([one.start(), other.start()]);
    const ends = [...left, ...(await endsOf('parent'))].sort();
    await noneLeft();
    for (const id of ['child', 'dear', 'all']) expect(await followedBy(id)).toEqual(ends);
    const dear = (await runsOf(store, 'dear')).map(({ status }) => status);
    expect(dear.filter((status) => status !== 'skipped').sort()).toEqual(['pending', 'waiting']);
    expect([...failed(one), ...failed(other)]).toEqual([]);
  });

  it('that a dead process left is done by another', async () => {
    const dies = await instanceOn();
    await put(dies, 'parent');
    await follow(dies, 'child', 'parent');
    await put(dies, 'serial', { overlap: 'queue', ...QUEUE });
    const first = await dies.fire('serial');
    const second = await dies.fire('serial');
    const [awaited = '', waits = ''] = (
      await dies.accept({ ref: 'a', queue: 'q' }, { dependsOn: ['a'], queue: 'q' })
    ).map(({ id }) => id);
    const { settler, dispatcher } = dies.pipeline;
    await settler.start();
    await dispatcher.start();
    await leaveRuns(store, 'parent', { count: 3 });
    const ends = await endsOf('parent');
    await store.rows(sql`UPDATE runs SET attempts = 1 WHERE id IN (${first.id}, ${awaited})`);
    for (const id of [first.id, awaited]) await completeRun(dies.deps, id, WORD);
    // Its loop of effects has never turned. Each end has written what follows in its own commit.
    await dies.stop();
    const left = (await effects()).map(({ kind, run_id }) => `${kind} ${run_id}`);
    const wanted = [...ends.map((id) => `followers ${id}`), `overlap ${first.id}`, `dependents ${awaited}`];
    expect(left.sort()).toEqual(wanted.sort());
    expect(await followedBy('child')).toEqual([]);

    const other = await instanceOn();
    await other.start();
    await noneLeft();
    expect(await followedBy('child')).toEqual(ends);
    const open = await store.rows<{ id: string }>(sql`SELECT id FROM runs WHERE status = 'pending'`);
    expect(open.map(({ id }) => id)).toEqual(expect.arrayContaining([second.id, waits]));
  });

  it('is done completely or not at all, if its process dies in the middle of it', async () => {
    let isFirst = true;
    const breaking: Database = {
      ...store.database,
      transaction: (work, limitMs) =>
        store.database.transaction(async (tx) => {
          const result = await work(tx);
          if (isFirst && work.toString().includes('applyEffects')) {
            const seen = await tx.execute(sql`SELECT FROM runs WHERE trigger = 'after'`);
            if (seen.length > 0) {
              isFirst = false;
              throw new Error('it died before its commit');
            }
          }
          return result;
        }, limitMs),
    };
    const instance = await instanceOn(breaking);
    await put(instance, 'parent');
    await follow(instance, 'child', 'parent');
    const ends = await leaveEnds('parent', 20);
    await instance.pipeline.effects.start();
    await until(() => failed(instance).length > 0 || null);
    await noneLeft();
    expect(await followedBy('child')).toEqual(ends);
  });

  it('is not done again if the answer of its commit is lost', async () => {
    const lossy = loseAnswerOf(store.database, 'applyEffects');
    const instance = await instanceOn(lossy.database);
    await put(instance, 'parent');
    await follow(instance, 'child', 'parent');
    const ends = await leaveEnds('parent', 20);
    await instance.pipeline.effects.start();
    await lossy.committed;
    lossy.lose();
    await until(() => failed(instance).length > 0 || null);
    const more = await leaveEnds('parent', 1);
    await noneLeft();
    expect(await followedBy('child')).toEqual([...ends, ...more].sort());
  });
});

describe('an effect that the database refuses', () => {
  it('is put off and says why, and delays no other effect and no end', async () => {
    const instance = await instanceOn();
    const putOff = () => instance.events.filter((event) => event.type === 'effectPutOff');
    await put(instance, 'parent');
    await put(instance, 'other');
    await follow(instance, 'refused', 'parent');
    await follow(instance, 'child', 'other');
    const mend = await refuseRunsOf(store, 'refused');
    const [run] = await leaveEnds('parent', 1);
    // All of one batch.
    const others = await leaveEnds('other', 100);
    await instance.start();
    await until(async () => ((await followedBy('child')).length === 100 ? true : null));
    expect(await followedBy('child')).toEqual(others);
    await until(() => putOff().length > 0 || null);
    expect(putOff()[0]).toMatchObject({
      kind: 'followers',
      runId: run,
      scheduleId: 'parent',
      failures: 1,
      seconds: 1,
    });
    expect(putOff()[0]?.error).toContain('index row');
    const [left, ...rest] = await effects();
    expect(rest).toEqual([]);
    expect(left).toMatchObject({ run_id: run, error: expect.stringContaining('index row') as string });
    expect(left?.failures).toBeGreaterThan(0);

    await leaveRuns(store, 'other', { count: 30 });
    const ends = [...others, ...(await endsOf('other'))].sort();
    await until(async () => ((await followedBy('child')).length === 130 ? true : null));
    expect(await followedBy('child')).toEqual(ends);
    // Each time for longer.
    await until(() => putOff().length > 2 || null);
    expect(putOff().map(({ seconds }) => seconds)).toEqual([1, 2, 4]);
    await mend();
    await noneLeft();
    expect(await followedBy('refused')).toEqual([run]);
    expect(failed(instance)).toEqual([]);
  });

  it('for one follower of an end delays no other follower of it', async () => {
    const instance = await instanceOn();
    await put(instance, 'parent');
    await follow(instance, 'child', 'parent');
    await follow(instance, 'refused', 'parent');
    await follow(instance, 'all', '*');
    const mend = await refuseRunsOf(store, 'refused');
    const ends = await leaveEnds('parent', 3);
    await instance.start();
    for (const id of ['child', 'all']) await until(async () => ((await followedBy(id)).length === 3 ? true : null));
    const left = await until(async () => {
      const rows = await effects();
      return rows.length === 3 && rows.every(({ failures }) => failures > 0) ? rows : null;
    });
    expect(left.map(({ run_id }) => run_id).sort()).toEqual(ends);
    await mend();
    await noneLeft();
    for (const id of ['child', 'all', 'refused']) expect(await followedBy(id)).toEqual(ends);
    expect(failed(instance)).toEqual([]);
  });

  it('of each kind is put off by itself', async () => {
    const instance = await instanceOn();
    const putOff = () => instance.events.filter((event) => event.type === 'effectPutOff');
    const mendings: (() => Promise<void>)[] = [];
    const waiting: string[] = [];
    for (const n of [1, 2, 3]) {
      await put(instance, `serial-${n}`, { overlap: 'queue', ...QUEUE });
      const first = await instance.fire(`serial-${n}`);
      const next = await instance.fire(`serial-${n}`);
      const [a = '', then = ''] = (
        await instance.accept({ ref: 'a', queue: 'q' }, { dependsOn: ['a'], queue: 'q' })
      ).map(({ id }) => id);
      if (n === 2) mendings.push(await refuseToStart(store, next.id), await refuseToStart(store, then));
      await store.rows(sql`UPDATE runs SET attempts = 1 WHERE id IN (${first.id}, ${a})`);
      for (const id of [first.id, a]) await completeRun(instance.deps, id, WORD);
      waiting.push(next.id, then);
    }
    const started = async () =>
      (await store.rows<{ id: string }>(sql`SELECT id FROM runs WHERE status = 'pending'`)).map(({ id }) => id).sort();
    await instance.start();
    await until(() => putOff().length >= 2 || null);
    const [, , next, then, ...last] = waiting;
    const others = [...waiting.slice(0, 2), ...last].sort();
    await until(async () => (await started()).join() === others.join() || null);
    expect(
      putOff()
        .slice(0, 2)
        .map(({ kind }) => kind)
        .sort(),
    ).toEqual(['dependents', 'overlap']);
    for (const mend of mendings) await mend();
    await noneLeft();
    expect(await started()).toEqual([...waiting].sort());
    expect([next, then]).not.toContain(undefined);
    expect(failed(instance)).toEqual([]);
  });
});

describe('an effect that needs a row which another transaction has locked', () => {
  const whileLocked = (id: string, work: () => Promise<void>) =>
    psql.begin(async (tx) => {
      await tx`SELECT FROM schedules WHERE id = ${id} FOR UPDATE`;
      await work();
    });

  it.each(['allow', 'queue'] as const)(
    'is done once, when that row is free, and delays no other, however many they are (overlap: %s)',
    async (overlap) => {
      const [instance, second] = [await instanceOn(), await instanceOn()];
      await put(instance, 'parent');
      await put(instance, 'other');
      await follow(instance, 'locked', 'parent', { overlap });
      await follow(instance, 'child', 'other');
      const ends = await leaveEnds('parent', 600);
      let others: string[] = [];
      await whileLocked('locked', async () => {
        await Promise.all([instance.start(), second.start()]);
        await leaveRuns(store, 'other', { count: 50 });
        others = await endsOf('other');
        await until(async () => ((await followedBy('child')).length === 50 ? true : null));
        expect(await followedBy('locked')).toEqual([]);
      });
      expect(await followedBy('child')).toEqual(others);
      await noneLeft();
      expect(await followedBy('locked')).toEqual(ends);
      expect([...failed(instance), ...failed(second)]).toEqual([]);
    },
  );

  it('for one follower of an end delays no other follower of it', async () => {
    const instance = await instanceOn();
    await put(instance, 'parent');
    await follow(instance, 'locked', 'parent');
    await follow(instance, 'child', 'parent');
    await follow(instance, 'all', '*', { overlap: 'queue' });
    const ends = await leaveEnds('parent', 300);
    await whileLocked('locked', async () => {
      await instance.start();
      for (const id of ['child', 'all']) await until(async () => ((await followedBy(id)).length === 300 ? true : null));
      expect(await followedBy('locked')).toEqual([]);
    });
    await noneLeft();
    for (const id of ['child', 'all', 'locked']) expect(await followedBy(id)).toEqual(ends);
    expect(failed(instance)).toEqual([]);
  });

  it('because the schedule must be judged is done once the row is free', async () => {
    const instance = await instanceOn();
    for (const id of ['locked', 'free']) {
      await put(instance, id, { overlap: 'queue', ...QUEUE });
      await instance.fire(id);
      await instance.fire(id);
    }
    await store.rows(sql`UPDATE runs SET attempts = 1 WHERE status = 'pending'`);
    const statuses = async (id: string) => (await runsOf(store, id)).map(({ status }) => status).sort();
    await instance.pipeline.effects.start();
    await whileLocked('locked', async () => {
      const active = await store.rows<{ id: string }>(
        sql`SELECT id FROM runs WHERE status = 'pending' ORDER BY schedule_id DESC`,
      );
      for (const { id } of active) await completeRun(instance.deps, id, WORD);
      await until(async () => ((await statuses('free')).includes('pending') ? true : null));
      expect(await statuses('locked')).toEqual(['succeeded', 'waiting']);
    });
    await noneLeft();
    expect(await statuses('locked')).toEqual(['pending', 'succeeded']);
    expect(await statuses('free')).toEqual(['pending', 'succeeded']);
  });
});

describe('a follower that is deleted while an end of its parent is followed', () => {
  it('has its run abandoned with the others, if that was recorded first', async () => {
    const instance = await instanceOn();
    await put(instance, 'parent');
    await follow(instance, 'child', 'parent');
    await leaveEnds('parent', 1);
    let removed: Promise<boolean> = Promise.resolve(false);
    await store.database.transaction(async (tx) => {
      await applyNext(tx);
      removed = instance.remove('child');
      await until(async () => {
        const [row] = await psql`SELECT count(*)::int AS waiting FROM pg_stat_activity
          WHERE datname = current_database() AND wait_event_type = 'Lock'`;
        return (row?.['waiting'] as number) > 0 ? true : null;
      });
    });
    expect(await removed).toBe(true);
    expect(await runsOf(store, 'child')).toMatchObject([{ status: 'abandoned', reason: 'deleted' }]);
  });

  it('has none, if it was deleted first', async () => {
    const instance = await instanceOn();
    await put(instance, 'parent');
    await follow(instance, 'child', 'parent');
    await leaveEnds('parent', 1);
    await psql.begin(async (tx) => {
      await tx`DELETE FROM schedules WHERE id = 'child'`;
      expect(await store.database.transaction((other) => applyNext(other))).toMatchObject({ toClaim: 0 });
      expect(await store.database.transaction((other) => applyNext(other))).toMatchObject({ done: [] });
    });
    await applyAll(store);
    expect(await effects()).toEqual([]);
    expect(await runsOf(store, 'child')).toEqual([]);
  });
});
