import { sql } from 'drizzle-orm';
import { describe, expect, it } from 'vitest';
import type { Definition } from '../../src/core/schedules/schedule.ts';
import type { Database } from '../../src/postgres/database.ts';
import { abandonWaitingOfDeleted } from '../../src/store/runs/ends/abandon-runs.ts';
import { judgeOverlapsUnderLock } from '../../src/store/runs/overlaps.ts';
import { lockFreeSchedules } from '../../src/store/schedules/search/find-schedules.ts';
import { eachTest, instanceOfTest, receiverOfTest, sqlOfTest, storeOfTest } from '../support/of-test.ts';
import { createInstance } from '../support/pipeline.ts';
import { until } from '../support/until.ts';

const store = eachTest(storeOfTest);
const instance = eachTest(() => instanceOfTest(store, { concurrency: 8, concurrencyPerLane: 8 }));
const receiver = eachTest(() =>
  receiverOfTest(({ path }, response) => {
    if (!path.startsWith('/never')) response.end('{}');
  }),
);
const psql = eachTest(() => sqlOfTest(store.url));

const EVERY_SECOND = { cron: '* * * * * *' };
const put = (id: string, definition: Partial<Definition>, path = `/${id}`) =>
  instance.put(id, { url: `${receiver.url}${path}`, ...definition });
const statuses = async (id: string) =>
  (
    await store.rows<{ status: string }>(
      sql`SELECT status FROM all_runs WHERE schedule_id = ${id} ORDER BY created_at, scheduled_for, id`,
    )
  ).map(({ status }) => status);
/** A forgotten session has these rows locked while the work goes on. */
async function whileLocked<T>(query: string, work: () => Promise<T>): Promise<T> {
  return psql.begin(async (tx) => {
    await tx.unsafe(query);
    return work();
  }) as Promise<T>;
}
/** It fires on: three more of its runs end well. */
async function firesOn(id: string): Promise<void> {
  const count = async () => (await statuses(id)).filter((status) => status === 'succeeded').length;
  const before = await count();
  await until(async () => ((await count()) >= before + 3 ? true : null));
}
/** Five minutes have been missed of it. Not while it is being planned: what is recorded then would undo it. */
const rewind = (id: string, timing: string | null = null) =>
  until(async () => {
    const rewound =
      await store.rows(sql`UPDATE schedules SET timing = coalesce(${timing}, timing), planned_through = NULL,
      next_occurrence_at = next_occurrence_at - interval '5 minutes', next_fire_at = next_fire_at - interval '5 minutes'
      WHERE id = ${id} AND locked_by IS NULL RETURNING id`);
    return rewound.length > 0 ? true : null;
  });
const corrupt = (id: string, timing: string) => rewind(id, timing);

describe('a row that another transaction has locked holds up no other:', () => {
  it('the row of a schedule which follows others', async () => {
    await put('other', EVERY_SECOND);
    await put('skips', { ...EVERY_SECOND, catchUp: 'skip' });
    await put('parent', {});
    await put('free', { cron: null, after: { scheduleId: 'skips', on: ['succeeded'] } });
    await put('all', { cron: null, after: { scheduleId: '*', on: ['succeeded', 'skipped'] } });
    await put('one', { cron: null, after: { scheduleId: 'parent', on: ['succeeded'] } });
    await put('dear', { cron: null, after: { scheduleId: 'parent', on: ['succeeded'] }, overlap: 'queue' });
    await instance.start();
    await whileLocked(`SELECT FROM schedules WHERE id IN ('all', 'one', 'dear') FOR UPDATE`, async () => {
      await instance.fire('parent');
      await rewind('skips');
      await firesOn('other');
      await until(async () => ((await statuses('parent'))[0] === 'succeeded' ? true : null));
      await until(async () => ((await statuses('skips')).includes('skipped') ? true : null));
      await until(async () => ((await statuses('free')).length > 0 ? true : null));
      const heldBack = sql`SELECT FROM all_runs WHERE schedule_id IN ('all', 'one', 'dear')`;
      expect(await store.rows(heldBack)).toEqual([]);
    });
    // Once it is let go of, each end that came meanwhile has its one run.
    await instance.pipeline.tick.stop();
    const ends = () =>
      store.rows<{ id: string }>(
        sql`SELECT id FROM history WHERE schedule_id IN ('other', 'skips', 'parent') ORDER BY id`,
      );
    const followed = (id: string) =>
      store.rows<{ id: string }>(
        sql`SELECT parent_run_id AS id FROM history WHERE schedule_id = ${id} ORDER BY parent_run_id`,
      );
    await until(async () => {
      const open = await store.rows(sql`SELECT FROM runs UNION ALL SELECT FROM effects`);
      return open.length === 0 ? true : null;
    });
    expect(await followed('all')).toEqual(await ends());
    expect([await statuses('one'), await statuses('dear')]).toEqual([['succeeded'], ['succeeded']]);
    expect(instance.events.filter(({ type }) => type === 'loopFailed')).toEqual([]);
  });

  it('the row of an active run of a schedule whose runs must not overlap', async () => {
    await put('never', { ...EVERY_SECOND, overlap: 'replace' });
    await put('guarded', { ...EVERY_SECOND, overlap: 'skip' });
    await put('plain', EVERY_SECOND);
    await instance.start();
    await until(async () => ((await statuses('never')).includes('pending') ? true : null));
    await whileLocked(`SELECT FROM runs WHERE schedule_id = 'never' AND status = 'pending' FOR UPDATE`, async () => {
      await Promise.all([firesOn('guarded'), firesOn('plain')]);
      expect(await statuses('never')).toContain('waiting');
    });
    // As soon as it is let go of, what came meanwhile is judged.
    await until(async () => {
      const open = (await statuses('never')).filter((status) => status !== 'cancelled');
      return open.length === 1 && open[0] === 'pending' ? true : null;
    });
  });

  it('the row of a schedule that a caller begins to edit between its fire-lock and its fire', async () => {
    await put('edited', EVERY_SECOND);
    await put('other', EVERY_SECOND);
    let lock: () => void = () => undefined;
    const isLocked = new Promise<void>((resolve) => (lock = resolve));
    const isToLock = Promise.withResolvers<undefined>();
    const { database } = store;
    const slowed: Database = {
      ...database,
      run: async (work, limitMs) => {
        if (work.toString().includes('recordIntentsIfLocked')) {
          isToLock.resolve(undefined);
          await isLocked;
        }
        return database.run(work, limitMs);
      },
    };
    const late = await createInstance({ ...store, database: slowed });
    await late.start();
    await isToLock.promise;
    await whileLocked(`SELECT FROM schedules WHERE id = 'edited' FOR UPDATE`, async () => {
      lock();
      await firesOn('other');
    });
    await firesOn('edited');
    await until(async () => ((await statuses('edited')).includes('pending') ? null : true));
    await late.stop();
    expect(late.events.filter(({ type }) => type === 'loopFailed')).toEqual([]);
    expect(late.events.filter(({ type }) => type === 'batchHeldUp')).toMatchObject([{ loop: 'tick' }]);
    expect(late.pipeline.dispatcher.claimed()).toBe(0);
  });

  it('the row of a run that waits for an ended one', async () => {
    await put('other', EVERY_SECOND);
    await instance.start();
    const url = `${receiver.url}/one-off`;
    const [first, second, dependent] = await instance.accept(
      { ref: 'first', url, runAt: Date.now() + 3_000 },
      { ref: 'second', url },
      { ref: 'dependent', url, dependsOn: ['first', 'second'] },
    );
    const statusOf = async (id = '') =>
      (await store.rows<{ status: string }>(sql`SELECT status FROM all_runs WHERE id = ${id}::uuid`))[0]?.status;
    await until(async () => ((await statusOf(second?.id)) === 'succeeded' ? true : null));
    await whileLocked(`SELECT FROM runs WHERE id = '${dependent?.id}' FOR UPDATE`, async () => {
      await until(async () => ((await statusOf(first?.id)) === 'succeeded' ? true : null));
      await firesOn('other');
      expect(await statusOf(dependent?.id)).toBe('waiting');
    });
    await until(async () => ((await statusOf(dependent?.id)) === 'succeeded' ? true : null));
    expect(instance.events.filter(({ type }) => type === 'loopFailed')).toEqual([]);
  });

  it('the row of a schedule whose waiting runs are to be judged', async () => {
    await put('guarded', { ...EVERY_SECOND, overlap: 'queue' });
    await put('free', { ...EVERY_SECOND, overlap: 'queue' });
    await instance.start();
    await firesOn('guarded');
    await whileLocked(`SELECT FROM schedules WHERE id = 'guarded' FOR UPDATE`, () => firesOn('free'));
    await firesOn('guarded');
  });
});

describe('a timing that cannot be planned by is set aside, and holds up no other:', () => {
  const TIMINGS = [
    '{"everySeconds":0}',
    '{"everySeconds":"x"}',
    '{"everySeconds":1e300}',
    '{"at":1e300}',
    '{"cron":"* * * * *","jitterSeconds":"abc"}',
    '{"cron":"* * * * *","catchUp":"sometimes"}',
    '{"cron":"* * * * *","everySeconds":5}',
    '{"cron":"\\u0000 * * * *"}',
    '{"rrule":"FREQ=DAILY"}',
    '{}',
    '[]',
    '7',
    'not JSON',
  ];

  it('whatever is wrong with it', async () => {
    await put('plain', EVERY_SECOND);
    for (const [index, timing] of TIMINGS.entries()) {
      await put(`bad-${index}`, EVERY_SECOND);
      await corrupt(`bad-${index}`, timing);
    }
    await instance.start();
    await until(async () => {
      const inError = await store.rows(sql`SELECT FROM schedules WHERE error <> ''`);
      return inError.length === TIMINGS.length ? true : null;
    });
    await firesOn('plain');
    expect(await store.rows(sql`SELECT FROM all_runs WHERE schedule_id <> 'plain'`)).toEqual([]);
    expect(instance.events.filter(({ type }) => type === 'loopFailed')).toEqual([]);
  });

  it('takes no slot, and its schedule can be deleted, and mended', async () => {
    await put('plain', EVERY_SECOND);
    for (const id of ['mended', 'deleted']) {
      await put(id, EVERY_SECOND);
      await corrupt(id, '{"everySeconds":0}');
    }
    await instance.start();
    await until(async () => {
      const rows = await store.rows(sql`SELECT FROM schedules WHERE error IS NOT NULL`);
      return rows.length === 2 ? true : null;
    });
    // Far more was missed than an edit can record.
    await store.rows(
      sql`UPDATE schedules SET next_occurrence_at = next_occurrence_at - interval '12 hours' WHERE error IS NOT NULL`,
    );
    expect(await instance.remove('deleted')).toBe(true);
    expect(await put('mended', { ...EVERY_SECOND, labels: { now: 'well' } })).toMatchObject({ error: null });
    await Promise.all([firesOn('plain'), firesOn('mended')]);
  });

  it('an overlap that a later version knows leaves its runs waiting, and skips none', async () => {
    await put('later', { ...EVERY_SECOND, overlap: 'queue' });
    await store.rows(sql`UPDATE schedules SET overlap = 'buffer' WHERE id = 'later'`);
    await instance.start();
    await until(async () => ((await statuses('later')).length >= 2 ? true : null));
    expect(new Set(await statuses('later'))).toEqual(new Set(['waiting']));
  });
});

describe('when ends come together', () => {
  it('a run that follows an end of its own batch is judged as well', async () => {
    await put('a', { overlap: 'queue' });
    await put('b', { cron: null, after: { scheduleId: 'a', on: ['skipped'] }, overlap: 'queue' });
    for (let fires = 0; fires < 2; fires += 1) await instance.fire('a');
    await store.rows(sql`UPDATE schedules SET overlap = 'skip' WHERE id = 'a'`);
    const [a] = await store.rows<{ uid: string }>(sql`SELECT uid FROM schedules WHERE id = 'a'`);
    const uids = [a?.uid ?? ''];
    const judged = await store.database.transaction(async (tx) => {
      await lockFreeSchedules(tx, uids);
      return judgeOverlapsUnderLock(tx, uids);
    });
    expect(judged).toMatchObject({ skipped: 1, effects: 1 });
    expect(await statuses('b')).toEqual([]);
    await instance.pipeline.effects.start();
    await until(async () => ((await statuses('b')).length === 1 ? true : null));
    expect(await statuses('b')).toEqual(['pending']);
  });

  it.each(['before', 'after'])(
    'a run that follows counts as active, also if its schedule is edited %s it is recorded',
    async (when) => {
      await put('parent', {});
      const follows = { cron: null, after: { scheduleId: 'parent', on: ['succeeded' as const] } };
      await put('child', follows, '/never');
      const { settler, effects, dispatcher } = instance.pipeline;
      for (const service of [settler, dispatcher]) await service.start();
      await instance.fire('parent');
      await until(async () => ((await statuses('parent'))[0] === 'succeeded' ? true : null));
      expect(await statuses('child')).toEqual([]);
      if (when === 'before') await put('child', { ...follows, overlap: 'skip' }, '/never');
      await effects.start();
      await until(async () => ((await statuses('child')).length === 1 ? true : null));
      if (when === 'after') await put('child', { ...follows, overlap: 'skip' }, '/never');
      const [run] = await store.rows<{ guarded: boolean }>(
        sql`SELECT overlap_guarded AS guarded FROM all_runs WHERE schedule_id = 'child'`,
      );
      expect(run?.guarded).toBe(true);
      expect((await instance.fire('child')).status).toBe('skipped');
    },
  );

  it('runs that wait for a deleted schedule are abandoned', async () => {
    await put('gone', { overlap: 'queue' });
    for (let fires = 0; fires < 2; fires += 1) await instance.fire('gone');
    // As another program does that knows of no waiting runs.
    await store.rows(sql`DELETE FROM runs WHERE status = 'pending'`);
    await store.rows(sql`DELETE FROM schedules`);
    const abandoned = await store.database.transaction((tx) => abandonWaitingOfDeleted(tx, 10));
    expect(abandoned).toMatchObject({ abandoned: 1 });
    expect(await statuses('gone')).toEqual(['abandoned']);
  });
});
