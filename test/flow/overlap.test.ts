import { sql } from 'drizzle-orm';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import type { Overlap } from '../../src/core/schedules/schedule.ts';
import { fireManually } from '../../src/operations/runs/manual-fire.ts';
import { findWaitingInVain, writeOverlapEffects } from '../../src/store/effects/insert-effects.ts';
import { instanceOfTest, receiverOfTest, storeOfTest, eachTest } from '../support/of-test.ts';
import { createInstance } from '../support/pipeline.ts';
import { startReceiver } from '../support/receiver.ts';
import { until } from '../support/until.ts';

const store = eachTest(storeOfTest);
const instance = eachTest(() => instanceOfTest(store));
const receiver = eachTest(() => receiverOfTest((_, response) => void owed.push(() => response.end('{}'))));
/** Answers that the receiver owes, oldest first. */
let owed: (() => void)[];

beforeEach(() => {
  owed = [];
});

afterEach(() => {
  for (const answer of owed.splice(0)) answer();
});

interface RunRow {
  id: string;
  status: string;
  reason: string | null;
  trigger: string;
  scheduled_for: string;
}

const runs = (id = 'one') =>
  store.rows<RunRow>(
    sql`SELECT id, status, reason, trigger, scheduled_for FROM all_runs WHERE schedule_id = ${id} ORDER BY created_at, scheduled_for, id`,
  );
const statuses = async (id = 'one') =>
  (await runs(id)).map(({ status, reason }) => (reason === null ? status : `${status} ${reason}`));
const put = (overlap: Overlap, more: object = {}) => instance.put('one', { overlap, url: receiver.url, ...more });
const ended = (count: number) =>
  until(async () => {
    const found = await statuses();
    return found.filter((status) => status === 'succeeded').length === count ? found : null;
  });

/** An active run, whose answer is owed. */
async function withActive(overlap: Overlap, more: object = {}) {
  await put(overlap, more);
  await instance.start();
  const run = await instance.fire('one');
  await receiver.arrived(1);
  return run;
}

describe('a fire while an earlier run of its schedule is active', () => {
  it('starts another, if that is allowed', async () => {
    await withActive('allow');
    await instance.fire('one');
    await receiver.arrived(2);
    expect(await statuses()).toEqual(['pending', 'pending']);
  });

  it('is recorded as skipped, under skip', async () => {
    await withActive('skip');
    expect(await instance.fire('one')).toMatchObject({ status: 'skipped', reason: 'overlap', attempts: 0 });
    owed.shift()?.();
    await ended(1);
    await instance.fire('one');
    await receiver.arrived(2);
    expect(await statuses()).toEqual(['succeeded', 'skipped overlap', 'pending']);
    expect(instance.events.filter(({ type }) => type === 'runsSkipped')).toEqual([
      { type: 'runsSkipped', reason: 'overlap', count: 1 },
    ]);
  });

  it('waits, under queue, and starts when that run has ended', async () => {
    await withActive('queue');
    expect(await instance.fire('one')).toMatchObject({ status: 'waiting', nextAttemptAt: null });
    expect(receiver.arrivals).toHaveLength(1);
    owed.shift()?.();
    await receiver.arrived(2);
    expect(await statuses()).toEqual(['succeeded', 'pending']);
    owed.shift()?.();
    await ended(2);
  });

  it('takes the place of the waiting one, under queue', async () => {
    await withActive('queue');
    for (let fires = 0; fires < 3; fires += 1) await instance.fire('one');
    expect(await statuses()).toEqual(['pending', 'skipped overlap', 'skipped overlap', 'waiting']);
  });

  it('cancels that run and starts, under replace, and the answer of the replaced one changes nothing', async () => {
    const first = await withActive('replace');
    await instance.fire('one');
    await receiver.arrived(2);
    expect(await statuses()).toEqual(['cancelled replaced', 'pending']);
    for (const answer of owed.splice(0)) answer();
    await ended(1);
    expect(await statuses()).toEqual(['cancelled replaced', 'succeeded']);
    // Written by a later pass than the one that settled the other.
    const log = await until(async () => {
      const [row] = await store.rows<{ log: unknown }>(
        sql`SELECT attempt_log AS log FROM all_runs WHERE id = ${first.id}`,
      );
      return row?.log ?? null;
    });
    expect(log).toMatchObject([{ outcome: 'acceptedLate' }]);
  });

  it('counts a run between two attempts as active', async () => {
    await put('skip', { retry: { maxAttempts: 5, minBackoffSeconds: 600, maxBackoffSeconds: 600 } });
    await instance.start();
    await instance.fire('one');
    await receiver.arrived(1);
    const [first] = await runs();
    await store.rows(sql`UPDATE runs SET claimed_by = NULL, due_at = clock_timestamp() + interval '10 minutes'`);
    expect(first?.status).toBe('pending');
    expect(await instance.fire('one')).toMatchObject({ status: 'skipped', reason: 'overlap' });
  });
});

it.each(['skip', 'queue', 'replace'] as const)(
  'a planned fire under %s is sent by the instance that records it, unless a run of its schedule is open',
  async (overlap) => {
    await put(overlap, { cron: '* * * * * *' });
    await instance.start();
    await receiver.arrived(1);
    const recorded = () => instance.events.filter(({ type }) => type === 'intentsRecorded');
    await until(() => Promise.resolve(recorded().length >= 2 ? true : null));
    expect(recorded().slice(0, 2)).toMatchObject([
      { fires: 1, claimed: 1 },
      { fires: 1, claimed: 0 },
    ]);
    // No room stays taken for runs that were recorded without a claim.
    await store.rows(sql`UPDATE schedules SET enabled = false, next_fire_at = NULL, next_occurrence_at = NULL`);
    await until(() => {
      for (const answer of owed.splice(0)) answer();
      return Promise.resolve(instance.pipeline.dispatcher.claimed() === 0 ? true : null);
    });
  },
);

describe('fires that come together, after an outage,', () => {
  /** Five of a minute each are missed, and planned by one commit. */
  async function missFive(overlap: Overlap) {
    await put(overlap, { cron: '* * * * *', catchUp: 'all', graceSeconds: 0 });
    await store.rows(sql`UPDATE schedules SET next_occurrence_at = date_trunc('minute', clock_timestamp()) - interval '5 minutes',
      next_fire_at = date_trunc('minute', clock_timestamp()) - interval '5 minutes', timing = jsonb_set(timing::jsonb, '{endAt}',
        to_jsonb((extract(epoch FROM date_trunc('minute', clock_timestamp())) * 1000)::bigint))::text`);
    await instance.start();
    await receiver.arrived(overlap === 'allow' ? 5 : 1);
    return until(async () => ((await runs()).length === 5 ? statuses() : null));
  }

  it.each([
    ['allow', ['pending', 'pending', 'pending', 'pending', 'pending']],
    ['skip', ['pending', 'skipped overlap', 'skipped overlap', 'skipped overlap', 'skipped overlap']],
    ['queue', ['pending', 'skipped overlap', 'skipped overlap', 'skipped overlap', 'waiting']],
    ['replace', ['cancelled replaced', 'cancelled replaced', 'cancelled replaced', 'cancelled replaced', 'pending']],
  ] as const)('are judged under %s as if they had come one by one', async (overlap, expected) => {
    expect(await missFive(overlap)).toEqual(expected);
  });
});

describe('two transactions that decide at the same moment', () => {
  /** A fire in a second session, up to its commit, which the caller makes. */
  async function fireUncommitted() {
    const [mayCommit, hasDecided] = [Promise.withResolvers<undefined>(), Promise.withResolvers<undefined>()];
    const { database } = store;
    const fired = fireManually(
      {
        ...instance.deps,
        database: {
          ...database,
          transaction: (work, limitMs) =>
            database.transaction(async (tx) => {
              const result = await work(tx);
              hasDecided.resolve(undefined);
              await mayCommit.promise;
              return result;
            }, limitMs),
        },
      },
      { scheduleId: 'one', payload: null, key: null },
    );
    await hasDecided.promise;
    return async () => {
      mayCommit.resolve(undefined);
      await fired;
    };
  }

  it.each(['skip', 'queue'] as const)('under %s start one run between them', async (overlap) => {
    await put(overlap);
    const commitFirst = await fireUncommitted();
    // It waits for the row lock with the first one's run not committed yet, and must see it all the same.
    const second = instance.fire('one');
    await until(async () => {
      const waiting = await store.rows(sql`SELECT FROM pg_stat_activity WHERE wait_event_type = 'Lock'
        AND datname = current_database()`);
      return waiting.length > 0 ? true : null;
    });
    await commitFirst();
    expect((await second).status).toBe(overlap === 'skip' ? 'skipped' : 'waiting');
    expect((await statuses()).filter((status) => status === 'pending')).toHaveLength(1);
  });

  it('a fire, and the end of the run that it would wait for: it starts, whichever comes first', async () => {
    await withActive('queue');
    // The fire has found the run active and is not committed; the run ends meanwhile, and finds no waiting run.
    const commit = await fireUncommitted();
    owed.shift()?.();
    await until(async () => ((await statuses())[0] === 'succeeded' ? true : null));
    await commit();
    await receiver.arrived(2);
    owed.shift()?.();
    await ended(2);
  });

  it.each(['skip', 'queue'] as const)('forty fires on two instances under %s never overlap', async (overlap) => {
    const other = await createInstance(store);
    let active = 0;
    let most = 0;
    const strict = await startReceiver((_, response) => {
      active += 1;
      most = Math.max(most, active);
      setTimeout(() => {
        active -= 1;
        response.end('{}');
      }, 5);
    });
    try {
      await instance.put('one', { overlap, url: strict.url });
      await Promise.all([instance.start(), other.start()]);
      await Promise.all(
        Array.from({ length: 8 }, async (_, index) => {
          for (let fires = 0; fires < 5; fires += 1) await (index % 2 === 0 ? instance : other).fire('one');
        }),
      );
      await until(async () => ((await statuses()).every((status) => /succeeded|skipped/.test(status)) ? true : null));
      expect(most).toBe(1);
      expect(await runs()).toHaveLength(40);
    } finally {
      await other.stop();
      await strict.close();
    }
  });
});

describe('an edit of `overlap`', () => {
  it('to skip counts runs that were already active', async () => {
    await withActive('allow');
    await put('skip');
    expect((await instance.fire('one')).status).toBe('skipped');
  });

  it('to skip counts runs that their target has accepted and is working on', async () => {
    await withActive('allow', { completion: 'callback' });
    owed.shift()?.();
    await until(async () => ((await statuses())[0] === 'running' ? true : null));
    await put('skip', { completion: 'callback' });
    expect(await instance.fire('one')).toMatchObject({ status: 'skipped', reason: 'overlap' });
  });

  it('to allow starts waiting runs', async () => {
    await withActive('queue');
    await instance.fire('one');
    await put('allow');
    await receiver.arrived(2);
    expect(await statuses()).toEqual(['pending', 'pending']);
  });

  it('to skip, and to replace, judges waiting runs as if they came now', async () => {
    await withActive('queue');
    await instance.fire('one');
    await put('skip');
    expect(await statuses()).toEqual(['pending', 'skipped overlap']);
    await put('queue');
    await instance.fire('one');
    await put('replace');
    expect(await statuses()).toEqual(['cancelled replaced', 'skipped overlap', 'pending']);
  });
});

it('a schedule that is deleted abandons its waiting runs as well', async () => {
  await withActive('queue');
  await instance.fire('one');
  await instance.remove('one');
  expect(await statuses()).toEqual(['abandoned deleted', 'abandoned deleted']);
});

it('a run that waits for nothing, since the instance that ended the active run died, is found', async () => {
  await withActive('queue');
  await instance.fire('one');
  await store.rows(sql`DELETE FROM runs WHERE status = 'pending'`);
  const inVain = () => store.database.run((db) => findWaitingInVain(db, 10));
  expect(await inVain()).toEqual([]);
  await store.rows(sql`UPDATE runs SET updated_at = updated_at - interval '3 seconds'`);
  await store.rows(sql`UPDATE schedules SET overlap = 'of a newer version'`);
  expect(await inVain()).toEqual([]);
  await store.rows(sql`UPDATE schedules SET overlap = 'queue'`);
  const toJudge = await inVain();
  expect(toJudge).toHaveLength(1);
  await store.database.transaction((tx) => writeOverlapEffects(tx, toJudge));
  expect(await inVain()).toEqual([]);
  instance.pipeline.wake.effects();
  await receiver.arrived(2);
  expect(await inVain()).toEqual([]);
});
