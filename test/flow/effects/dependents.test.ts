import { type SQL, sql } from 'drizzle-orm';
import { describe, expect, it } from 'vitest';
import type { Run } from '../../../src/core/runs/run.ts';
import type { AttemptSettlement } from '../../../src/core/runs/attempts/settle-attempt.ts';
import { acceptRuns } from '../../../src/operations/runs/submit-one-off-runs.ts';
import { retryRun } from '../../../src/operations/runs/act-on-runs.ts';
import type { Database } from '../../../src/postgres/database.ts';
import { effectsForOverlooked, FIRST_EDGE } from '../../../src/store/effects/insert-effects.ts';
import type { Transaction } from '../../../src/postgres/executor.ts';
import { findRun } from '../../../src/store/runs/search/find-runs.ts';
import { settleLockedRuns } from '../../../src/store/runs/ends/settle-locked.ts';
import { eachTest, instanceOfTest, receiverOfTest, storeOfTest } from '../../support/of-test.ts';
import { applyAll, applyNext } from '../../support/effects.ts';
import { type AskedRun, createInstance, oneOffOf } from '../../support/pipeline.ts';
import { endedAttempt, plainSuccess } from '../../support/claims.ts';
import { LONG } from '../../support/runner/long.ts';
import { heldTransaction } from '../../support/pending-runs.ts';
import { until } from '../../support/until.ts';

const store = eachTest(storeOfTest);
const instance = eachTest(() => instanceOfTest(store));
const receiver = eachTest(() =>
  receiverOfTest(({ path }, response) => {
    response.statusCode = path.startsWith('/fails') ? 400 : 200;
    response.end('{"executionId":"e-1"}');
  }),
);

const run = async (id: string): Promise<Run> => {
  const found = await store.database.run((db) => findRun(db, id, null));
  if (!found) throw new Error(`there is no run ${id}`);
  return found;
};
const statusOf = async (id: string) => (await run(id)).status;
const ended = (ids: readonly string[]) =>
  until(async () => {
    const found = await Promise.all(ids.map(run));
    return found.every(({ status }) => !/waiting|pending|running/.test(status)) ? found : null;
  });
const asks = (ref: string, more: Partial<AskedRun> = {}): AskedRun => ({
  ref,
  url: `${receiver.url}/${ref}`,
  ...more,
});
/** The ids of the runs recorded, as they were asked for. */
const accept = async (...asked: AskedRun[]): Promise<string[]> => (await instance.accept(...asked)).map(({ id }) => id);
async function accepted<const Refs extends readonly AskedRun[]>(...asked: Refs) {
  return (await accept(...asked)) as { -readonly [Index in keyof Refs]: string };
}

/** Claims a run by hand, and says how its attempt ends. */
async function outcomeOf(id: string, status: 'succeeded' | 'failed' = 'succeeded'): Promise<AttemptSettlement> {
  await store.rows(
    sql`UPDATE runs SET claimed_by = ${instance.id}, claimed_at = now(), attempts = attempts + 1 WHERE id = ${id}::uuid`,
  );
  const { attempts } = await run(id);
  const at = Date.now();
  const success = plainSuccess({ runId: id, instanceId: instance.id, at });
  const settlement = {
    ...success.settlement,
    status,
    statusCode: status === 'succeeded' ? 200 : 400,
    body: '',
  };
  const outcome = status === 'succeeded' ? 'accepted' : 'rejected';
  return { ...success, attempt: attempts, outcome, latenessMs: null, settlement };
}
const settle = (tx: Transaction, outcome: AttemptSettlement) => settleLockedRuns(tx, [outcome], 'wait');
/** It ends; what is to follow waits. */
const endOnly = async (id: string, status: 'succeeded' | 'failed' = 'succeeded') => {
  const outcome = await outcomeOf(id, status);
  await store.database.transaction((tx) => settle(tx, outcome));
};
/** It ends, and what follows from that is done. */
const end = async (id: string, status: 'succeeded' | 'failed' = 'succeeded') => {
  await endOnly(id, status);
  await applyAll(store);
};

/** Until a statement waits for a row that another transaction has locked. */
const somebodyWaits = () =>
  until(async () => {
    const waiting = await store.rows(
      sql`SELECT 1 FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'`,
    );
    return waiting.length > 0 ? true : null;
  });

describe('a run that depends on others', () => {
  it('starts when all of them have ended, gets their outcomes, and shows which runs it waits for', async () => {
    const [a, b, join] = await accepted(asks('a'), asks('b'), asks('join', { dependsOn: ['b', 'a'] }));
    expect(await run(join)).toMatchObject({
      status: 'waiting',
      dependsOn: [b, a],
      dependents: [],
      trigger: 'api',
    });
    expect(await run(a)).toMatchObject({ status: 'pending', dependsOn: [], dependents: [join] });
    await instance.start();
    instance.pipeline.dispatcher.wake();
    await ended([a, b, join]);
    expect(
      receiver.arrivals
        .map(({ path }) => path)
        .sort()
        .at(-1),
    ).toBe('/join');
    expect(receiver.arrivals.at(-1)).toMatchObject({
      path: '/join',
      body: {
        runId: join,
        scheduleId: null,
        runName: null,
        trigger: 'api',
        dependencies: [
          {
            runId: b,
            status: 'succeeded',
            error: null,
            result: { statusCode: 200, body: '{"executionId":"e-1"}' },
          },
          { runId: a, status: 'succeeded', error: null },
        ],
      },
    });
  });

  it('is late by the time from when it could start, not by its waiting time', async () => {
    const [first, then] = await accepted(asks('first'), asks('then', { dependsOn: ['first'] }));
    await store.rows(
      sql`UPDATE runs SET due_at = due_at - interval '1 hour', created_at = created_at - interval '1 hour'`,
    );
    await instance.start();
    await ended([first, then]);
    expect((await run(first)).latenessMs).toBeGreaterThan(3_599_000);
    expect((await run(then)).latenessMs).toBeLessThan(600_000);
  });

  it('does not start before its own time either', async () => {
    const [first, then] = await accepted(
      asks('first'),
      asks('then', { dependsOn: ['first'], runAt: Date.now() + 3_600_000 }),
    );
    await end(first);
    const { status, nextAttemptAt, scheduledFor } = await run(then);
    expect({ status, nextAttemptAt }).toEqual({ status: 'pending', nextAttemptAt: scheduledFor });
  });

  it('may depend on a run of a schedule, and on one that ended long ago', async () => {
    await instance.put('report', { url: `${receiver.url}/report` });
    const fired = await instance.fire('report');
    const [early] = await accepted(asks('early', { dependsOn: [fired.id.toUpperCase()] }));
    await instance.start();
    await ended([fired.id, early]);
    const [late] = await accepted(asks('late', { dependsOn: [fired.id] }));
    expect((await ended([late]))[0]).toMatchObject({ status: 'succeeded', dependsOn: [fired.id] });
    expect(receiver.arrivals.at(-1)?.body).toMatchObject({
      dependencies: [{ runId: fired.id, status: 'succeeded' }],
    });
    expect((await run(fired.id)).dependents).toEqual([early, late].sort());
  });
});

describe('the last dependencies of a run', () => {
  it('that end at the same moment wait for no other, and release it, on whichever instance counts them', async () => {
    const [a, b, join] = await accepted(asks('a'), asks('b'), asks('join', { dependsOn: ['a', 'b'] }));
    const [endOfA, endOfB] = [await outcomeOf(a), await outcomeOf(b)];
    // Neither sees the other, or its dependent, as anything but open. One after the other, so that the effect of `a` comes first.
    const commitA = await heldTransaction(store.database, (tx) => settle(tx, endOfA));
    const commitB = await heldTransaction(store.database, (tx) => settle(tx, endOfB));
    for (const commit of [commitA, commitB]) await commit();

    const commitFirst = await heldTransaction(store.database, (tx) => applyNext(tx, 1));
    const meanwhile = await store.database.transaction((tx) => applyNext(tx));
    expect(meanwhile).toMatchObject({ done: [], toClaim: 0, unfinished: [{ runId: b }] });
    expect(await commitFirst()).toMatchObject({ toClaim: 0, done: [{ runId: a }] });
    expect(await statusOf(join)).toBe('waiting');
    expect(await store.database.transaction((tx) => applyNext(tx))).toMatchObject({ toClaim: 1 });
    expect(await statusOf(join)).toBe('pending');
  });

  it('that are counted by one transaction release it once', async () => {
    const [a, b, join] = await accepted(asks('a'), asks('b'), asks('join', { dependsOn: ['a', 'b'] }));
    await endOnly(a);
    await endOnly(b);
    expect(await store.database.transaction((tx) => applyNext(tx))).toMatchObject({ toClaim: 1 });
    expect(await statusOf(join)).toBe('pending');
  });

  it('count once each, however often they end', async () => {
    const [a, , join] = await accepted(
      asks('a'),
      asks('b'),
      asks('join', { dependsOn: ['a', 'b'], onDependencyFailure: 'run' }),
    );
    await end(a, 'failed');
    expect(await retryRun(instance.deps, a)).toMatchObject({ kind: 'done' });
    await end(a);
    expect(await statusOf(a)).toBe('succeeded');
    expect(await statusOf(join)).toBe('waiting');
    expect(await store.rows(sql`SELECT open_dependencies AS open FROM runs WHERE id = ${join}::uuid`)).toEqual([
      { open: 1 },
    ]);
  });
});

describe('a run that gets a dependent while it ends', () => {
  const depends = (database: Database, on: string) =>
    acceptRuns({ ...instance.deps, database }, [oneOffOf({ url: receiver.url, dependsOn: [on] })]);

  it('makes the dependent wait for the end, and find it', async () => {
    const [a] = await accepted(asks('a'));
    const endOfA = await outcomeOf(a);
    const commitEnd = await heldTransaction(store.database, (tx) => settle(tx, endOfA));
    const dependent = depends(store.database, a);
    await somebodyWaits();
    await commitEnd();
    expect(await statusOf((await dependent).runs[0]?.id ?? '')).toBe('pending');
  });

  it('releases a dependent that was recorded after the end began', async () => {
    const [a] = await accepted(asks('a'));
    await instance.pipeline.settler.start();
    await instance.pipeline.effects.start();
    const outcome = await outcomeOf(a);
    const allowed = Promise.withResolvers<undefined>();
    const holding: Database = {
      ...store.database,
      transaction: (work, limitMs) =>
        store.database.transaction(async (tx) => {
          const result = await work(tx);
          await allowed.promise;
          return result;
        }, limitMs),
    };
    const recorded = depends(holding, a);
    await until(async () => {
      const locked = await store.rows(sql`SELECT id FROM runs WHERE id = ${a}::uuid FOR UPDATE SKIP LOCKED`);
      return locked.length === 0 ? true : null;
    });
    const settled = new Promise<void>((resolve) => {
      instance.pipeline.settler.add(endedAttempt(outcome, { scheduleId: null, onSettled: resolve }));
    });
    await somebodyWaits();
    allowed.resolve(undefined);
    const dependent = (await recorded).runs[0]?.id ?? '';
    await settled;
    expect(await statusOf(a)).toBe('succeeded');
    await until(async () => ((await statusOf(dependent)) === 'pending' ? true : null));
    expect(instance.events.some(({ type }) => type === 'settlementFenced')).toBe(false);
  });
});

it('a run whose row another transaction always has locked ends all the same', async () => {
  const [a] = await accepted(asks('a'), asks('then', { dependsOn: ['a'] }));
  const outcome = await outcomeOf(a);
  let over = false;
  // As clients do that keep recording runs that depend on it: one transaction begins before the other ends.
  const holders = [0, 1, 2].map(async (nth) => {
    while (!over) {
      await store.database.transaction(async (tx) => {
        await tx.execute(sql`SELECT 1 FROM runs WHERE id = ${a}::uuid FOR NO KEY UPDATE`);
        await tx.execute(sql`SELECT pg_sleep(${0.05 + nth * 0.01})`);
      });
    }
  });
  await instance.pipeline.settler.start();
  await new Promise<void>((resolve) => {
    instance.pipeline.settler.add(endedAttempt(outcome, { scheduleId: null, onSettled: resolve }));
  });
  over = true;
  await Promise.all(holders);
  expect(await statusOf(a)).toBe('succeeded');
});

it('the result of a run that ended before others depended on it is shown as well', async () => {
  const [a] = await accepted(asks('a'));
  await end(a);
  const [late] = await accepted(asks('late', { dependsOn: [a] }));
  expect((await run(a)).dependents).toEqual([late]);
});

describe('if a dependency does not succeed', () => {
  it('runs that need it fail unstarted, and runs that need those, also if others go on; runs that do not need it run', async () => {
    const [fails, slow, needs, above, minds] = await accepted(
      asks('fails'),
      asks('slow', { runAt: Date.now() + 3_600_000 }),
      asks('needs', { dependsOn: ['slow', 'fails'] }),
      asks('above', { dependsOn: ['needs'] }),
      asks('minds', { dependsOn: ['fails', 'above'], onDependencyFailure: 'run' }),
    );
    await instance.start();
    const [, failed, failedToo] = await ended([fails, needs, above, minds]);
    expect(failed).toMatchObject({
      status: 'failed',
      attempts: 0,
      error: { kind: 'dependency', message: `run ${fails}, which it depends on, ended as failed` },
    });
    expect(failedToo?.error?.message).toBe(`run ${needs}, which it depends on, ended as failed`);
    expect(await statusOf(slow)).toBe('pending');
    expect(receiver.arrivals.map(({ path }) => path)).toEqual(['/fails', '/minds']);
    expect(receiver.arrivals[1]?.body).toMatchObject({
      dependencies: [
        { runId: fails, status: 'failed', error: { kind: 'http' } },
        { runId: above, status: 'failed', error: { kind: 'dependency' } },
      ],
    });
  });

  async function failInARow(many: number): Promise<void> {
    const chain = Array.from({ length: many }, (_, index) =>
      asks(`r${index}`, index === 0 ? { url: `${receiver.url}/fails` } : { dependsOn: [`r${index - 1}`] }),
    );
    await instance.start();
    const ids = await accept(...chain);
    const [last] = await ended(ids.slice(-1));
    expect(last).toMatchObject({ status: 'failed', error: { kind: 'dependency' } });
    const [more] = await accepted(asks('more', { dependsOn: ids.slice(-1) }));
    expect((await ended([more]))[0]).toMatchObject({ status: 'failed', error: { kind: 'dependency' } });
    expect(receiver.arrivals).toHaveLength(1);
  }

  it('a hundred in a row fail, and one more that is recorded afterwards', () => failInARow(100));
  it('a thousand too', { tags: [LONG] }, () => failInARow(1000));

  it('because its schedule was deleted, or it gave way to another, that is no success', async () => {
    await instance.put('gone', { url: receiver.url });
    await instance.put('serial', { url: receiver.url, overlap: 'queue' });
    const abandoned = await instance.fire('gone');
    await instance.fire('serial');
    const skipped = await instance.fire('serial');
    const ids = await accept(
      asks('a', { dependsOn: [abandoned.id] }),
      asks('b', { dependsOn: [skipped.id] }),
      asks('c', { dependsOn: [abandoned.id, skipped.id], onDependencyFailure: 'run' }),
    );
    await instance.remove('gone');
    await instance.fire('serial');
    await applyAll(store);
    expect(await Promise.all(ids.map(statusOf))).toEqual(['failed', 'failed', 'pending']);
    expect((await run(ids[1] ?? '')).error?.message).toBe(`run ${skipped.id}, which it depends on, ended as skipped`);
  });
});

it('an end that released no dependent, since another program deleted its effect, is made good', async () => {
  const [a, then] = await accepted(asks('a'), asks('then', { dependsOn: ['a'] }));
  await endOnly(a);
  await store.rows(sql`DELETE FROM effects`);
  const look = () => store.database.transaction((tx) => effectsForOverlooked(tx, FIRST_EDGE, 1));
  expect(await look()).toMatchObject({ found: 1, next: { dependsOn: a, runId: then } });
  expect(await look()).toMatchObject({ found: 0 });
  await applyAll(store);
  expect(await statusOf(then)).toBe('pending');
  expect(await look()).toMatchObject({ found: 0, next: null });
});

it('an end whose effect is done in the middle of a look for overlooked ones is not taken for one', async () => {
  const [a, then] = await accepted(asks('a'), asks('then', { dependsOn: ['a'] }));
  await endOnly(a);
  await store.rows(sql`UPDATE history SET ended_at = ended_at - interval '1 minute'`);
  const looked = await store.database.transaction((tx) =>
    effectsForOverlooked(
      afterFirstStatement(tx, () => applyAll(store)),
      FIRST_EDGE,
      10,
    ),
  );
  expect(looked).toEqual({ found: 0, next: null });
  expect(await statusOf(then)).toBe('pending');
});

/** The transaction, in which something else happens between its first statement and the next one. */
function afterFirstStatement(tx: Transaction, work: () => Promise<unknown>): Transaction {
  let isFirst = true;
  return new Proxy(tx, {
    get: (target, name) =>
      name === 'execute'
        ? async (statement: SQL) => {
            const rows = await target.execute(statement);
            if (isFirst) await work();
            isFirst = false;
            return rows;
          }
        : (Reflect.get(target, name) as unknown),
  });
}

describe('a dependency that is opened again', () => {
  it('holds up dependents recorded since, whatever was left to be done after its first end', async () => {
    const [failed] = await accepted(asks('failed'), asks('first', { dependsOn: ['failed'] }));
    await endOnly(failed, 'failed');
    expect(await retryRun(instance.deps, failed)).toMatchObject({ kind: 'done' });
    const [next] = await accepted(asks('next', { dependsOn: [failed], onDependencyFailure: 'run' }));
    await applyAll(store);
    expect(await statusOf(next)).toBe('waiting');
    await end(failed);
    expect(await statusOf(next)).toBe('pending');
  });

  it('and ends otherwise, gives dependents recorded since its last end, whichever is handled first', async () => {
    const [failed] = await accepted(asks('failed'), asks('first', { dependsOn: ['failed'] }));
    await endOnly(failed, 'failed');
    await retryRun(instance.deps, failed);
    const [next] = await accepted(asks('next', { dependsOn: [failed] }));
    await endOnly(failed);
    await store.database.transaction((tx) => applyNext(tx, 1));
    expect(await statusOf(next)).not.toBe('failed');
    await applyAll(store);
    expect(await statusOf(next)).toBe('pending');
    expect(await store.rows(sql`SELECT FROM effects`)).toEqual([]);
  });

  it('while others are made to depend on it, makes them wait and releases them', async () => {
    const [busy, failed] = await accepted(asks('busy', { runAt: Date.now() - 60_000 }), asks('failed'));
    await end(failed, 'failed');
    const letGo = await heldTransaction(store.database, (tx) =>
      tx.execute(sql`SELECT FROM runs WHERE id = ${busy}::uuid FOR UPDATE`),
    );
    const recorded = accepted(asks('then', { dependsOn: [busy, failed] }));
    await somebodyWaits();
    await retryRun(instance.deps, failed);
    await letGo();
    const [then] = await recorded;
    await end(busy);
    expect(await statusOf(then)).toBe('waiting');
    await end(failed);
    expect(await statusOf(then)).toBe('pending');
  });
});

describe('runs that cannot be accepted leave nothing behind', () => {
  const refused = async (...asked: AskedRun[]) => {
    const faults = await instance.accept(...asked).then(
      () => 'accepted',
      (error: unknown) => (error as { faults?: unknown }).faults,
    );
    const left = await store.rows(
      sql`SELECT 1 FROM all_runs UNION ALL SELECT 1 FROM run_keys UNION ALL SELECT 1 FROM run_dependencies`,
    );
    expect(left).toEqual([]);
    return faults;
  };

  it('a cycle is named', async () => {
    const faults = await refused(
      asks('start', { dependsOn: ['a'] }),
      asks('a', { dependsOn: ['b'], key: 'k' }),
      asks('b', { dependsOn: ['c'] }),
      asks('c', { dependsOn: ['a'] }),
    );
    expect(faults).toEqual([{ index: 1, path: '/dependsOn', message: 'makes a cycle: a → b → c → a' }]);
    expect(await refused(asks('self', { dependsOn: ['self'] }))).toMatchObject([
      { message: 'makes a cycle: self → self' },
    ]);
  });

  it('every missing run is named', async () => {
    const unknown = ['0199d0c4-0000-7000-8000-000000000000', 'ffffffff-ffff-ffff-ffff-ffffffffffff'];
    expect(await refused(asks('a'), asks('b', { dependsOn: ['a', ...unknown], key: 'k' }))).toEqual([
      { index: 1, path: '/dependsOn/1', message: `names a run that does not exist: ${unknown[0]}` },
      { index: 1, path: '/dependsOn/2', message: `names a run that does not exist: ${unknown[1]}` },
    ]);
  });
});

it('a run for a moment long past starts at once, and its end is kept', async () => {
  await instance.start();
  const [late] = await accepted(asks('late', { runAt: Date.now() - 400 * 86_400_000 }));
  expect(await ended([late])).toMatchObject([{ status: 'succeeded' }]);
  expect(receiver.arrivals).toHaveLength(1);
});

describe('a key', () => {
  it('stands for one run, also if eight calls ask at the same moment, as long as the rest is the same', async () => {
    const asked = asks('a', { key: 'k', payload: '{"n":1.0}' });
    const answers = await Promise.all(Array.from({ length: 8 }, () => instance.accept(asked)));
    const [first] = answers.flat();
    expect(answers.flat().map(({ id }) => id)).toEqual(Array(8).fill(first?.id));
    expect(answers.flat().filter(({ created }) => created)).toHaveLength(1);
    await expect(instance.accept({ ...asked, payload: '{"n":1}' })).rejects.toMatchObject({
      faults: [{ index: 0, path: '/key', message: `was used with another body, for run ${first?.id}` }],
    });
    await expect(instance.accept({ ...asked, priority: 'low' })).rejects.toThrow('another body');
    expect(await store.rows(sql`SELECT 1 FROM all_runs`)).toHaveLength(1);
  });

  it('in a batch that is sent again makes only what is missing, and others can depend on the rest', async () => {
    const [a] = await accepted(asks('a', { key: 'k' }));
    const again = await instance.accept(asks('a', { key: 'k' }), asks('b', { dependsOn: ['a'] }));
    expect(again.map(({ created }) => created)).toEqual([false, true]);
    expect((await run(again[1]?.id ?? '')).dependsOn).toEqual([a]);
  });
});

it('runs of the same kind share one definition, and a thousand kinds have a thousand', async () => {
  await accept(asks('a', { url: receiver.url, payload: '1' }), asks('b', { url: receiver.url, payload: '2' }));
  expect(await store.rows(sql`SELECT 1 FROM schedule_versions`)).toHaveLength(1);
  await accept(...Array.from({ length: 1000 }, (_, n) => asks(`r${n}`)));
  expect(await store.rows(sql`SELECT 1 FROM schedule_versions`)).toHaveLength(1001);
});

it('a run for a future moment starts at that moment, not when a loop happens to look', async () => {
  const slow = await createInstance(store, { tickIntervalMs: 3_600_000 });
  await slow.start();
  const [later] = await accepted(asks('later', { runAt: Date.now() + 1_000 }));
  slow.pipeline.dispatcher.wake();
  expect(await ended([later])).toMatchObject([{ status: 'succeeded' }]);
  await slow.stop();
});
