import { sql } from 'drizzle-orm';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { completeRun } from '../../src/operations/runs/act-on-runs.ts';
import { NotNow, isUnavailable } from '../../src/postgres/errors.ts';
import { createEventBus } from '../../src/runtime/event-bus.ts';
import { listen } from '../../src/postgres/connection/lasting-connection.ts';
import type { Database } from '../../src/postgres/database.ts';
import type { PulledRun } from '../../src/store/queues/pull-claims.ts';
import { WORK_FOR_PULL, forgetOldWorkers, listQueues } from '../../src/store/queues/queue-workers.ts';
import { createTargetRegistry } from '../../src/targets/target.ts';
import { storeOfTest, instanceOfTest, receiverOfTest } from '../support/of-test.ts';
import { applyAll } from '../support/effects.ts';
import type { Store } from '../support/pipeline.ts';
import { type PostgresProxy, startPostgresProxy } from '../support/postgres/postgres-proxy.ts';
import { notThroughPooler } from '../support/postgres/pooler.ts';
import { type PullInstance, createPullInstance } from '../support/pulling.ts';
import { until } from '../support/until.ts';

const MINUTE = 60_000;
const LONG = { waitSeconds: 60 };

let store: Store;
let instance: PullInstance;
const others: PullInstance[] = [];

beforeEach(async () => {
  store = await storeOfTest();
  instance = await createPullInstance(store.url);
});

afterEach(async () => {
  for (const one of [instance, ...others.splice(0)]) await one.stop();
});

async function another(around?: (database: Database) => Database): Promise<PullInstance> {
  const one = await createPullInstance(store.url, around);
  others.push(one);
  return one;
}

const idsOf = (pulled: readonly PulledRun[]) => pulled.map(({ run }) => run.id);
const rowOf = async (id: string) => {
  const [row] = await store.rows<Record<string, unknown>>(
    sql`SELECT *, extract(epoch FROM expires_at - claimed_at)::float8 AS leased FROM all_runs WHERE id = ${id}`,
  );
  return row ?? {};
};
const waiting = (one: PullInstance) => until(() => (one.claims() > 0 ? true : null));

describe('a claim', () => {
  it('goes by priority, then by due time, and leaves runs that are not due, whatever their priority', async () => {
    const now = Date.now();
    const [, older, low, high, newer] = await instance.accept(
      { priority: 'high', runAt: now + 60 * MINUTE },
      { runAt: now - 3 * MINUTE },
      { priority: 'low', runAt: now - 9 * MINUTE },
      { priority: 'high', runAt: now - MINUTE },
      { runAt: now - 2 * MINUTE },
    );
    expect(idsOf(await instance.claim({ max: 2 }))).toEqual([high, older]);
    expect(idsOf(await instance.claim({ max: 100 }))).toEqual([newer, low]);
    expect(await instance.claim({ max: 100 })).toEqual([]);
  });

  it('leases the run to the worker, and counts as its handoff', async () => {
    const [id = ''] = await instance.accept({ payload: '{"n": 1.0}', runAt: Date.now() - MINUTE });
    const [pulled] = await instance.claim({ workerId: 'w"1\\', leaseSeconds: 90 });
    expect(pulled).toMatchObject({
      isFirst: true,
      dependencies: [],
      run: {
        id,
        status: 'running',
        attempts: 1,
        queue: 'work',
        workerId: 'w"1\\',
        claimedBy: instance.id,
        payload: '{"n": 1.0}',
        error: null,
        finishedAt: null,
        nextAttemptAt: null,
      },
    });
    const { run } = pulled ?? {};
    expect(run?.claimedAt).toBe(run?.handedOffAt);
    expect(run?.claimedAt).toBe(run?.handoffStartedAt);
    expect(run?.latenessMs).toBe((run?.claimedAt ?? 0) - (run?.scheduledFor ?? 0));
    expect(await rowOf(id)).toMatchObject({
      leased: 90,
      lease_seconds: 90,
      lookups: 0,
      in_doubt_until: null,
    });
  });

  it('for a later attempt keeps the lateness of the first, and says nothing about its end', async () => {
    const [id = ''] = await instance.accept({ runAt: Date.now() - MINUTE });
    await instance.claim();
    const { lateness_ms } = await rowOf(id);
    await store.rows(sql`UPDATE runs SET status = 'pending', claimed_by = NULL, claimed_at = NULL, handed_off_at = NULL,
      handoff_started_at = NULL, expires_at = NULL, failures = 1, progress = 0.5,
      error = '{"kind": "expired", "message": "nobody was heard of"}' WHERE id = ${id}`);
    const [pulled] = await instance.claim({ workerId: 'another' });
    expect(pulled).toMatchObject({
      isFirst: false,
      run: { attempts: 2, failures: 1, error: null, progress: null, workerId: 'another' },
    });
    expect(pulled?.run.latenessMs).toBe(Number(lateness_ms));
    expect(instance.events.filter(({ type }) => type === 'runStarted')).toHaveLength(1);
    expect(instance.events.filter(({ type }) => type === 'pullRunsClaimed')).toMatchObject([
      { queue: 'work', workerId: 'a worker', count: 1 },
      { queue: 'work', workerId: 'another', count: 1 },
    ]);
  });

  it('gives no run of another queue, of a lane that is sent to, or of an unknown queue', async () => {
    await instance.accept({ queue: 'work.2' });
    await instance.accept({ queue: 'work' });
    await store.rows(sql`UPDATE runs SET lane = 'http work' WHERE lane = 'pull work'`);
    expect(await instance.claim({ max: 10 })).toEqual([]);
    expect(await instance.claim({ queue: 'nobody-s' })).toEqual([]);
    expect(await instance.claim({ queue: 'work.2' })).toHaveLength(1);
  });

  it('contains the outcomes of the run’s dependencies, in their order', async () => {
    const [first = '', second = ''] = await instance.accept({ ref: 'first' }, { ref: 'second' });
    const [last] = await instance.accept({ dependsOn: [second, first] });
    expect(idsOf(await instance.claim({ max: 10 })).sort()).toEqual([first, second].sort());
    const deps = {
      database: store.database,
      events: createEventBus(),
      targets: createTargetRegistry([]),
      scope: null,
      wake: {
        effects: () => undefined,
        dispatch: () => undefined,
        workers: () => undefined,
        admission: () => undefined,
        alerts: () => undefined,
      },
    };
    const word = { error: null, attempt: 1, workerId: 'a worker', status: 'succeeded' } as const;
    await completeRun(deps, first, { ...word, result: 'twelve' });
    await applyAll(store);
    expect(await instance.claim()).toEqual([]);
    await completeRun(deps, second, { ...word, result: null });
    await applyAll(store);
    const [pulled] = await instance.claim();
    expect(pulled?.run.id).toBe(last);
    expect(pulled?.dependencies).toEqual([
      { runId: second, status: 'succeeded', error: null, result: null },
      { runId: first, status: 'succeeded', error: null, result: { statusCode: null, body: 'twelve' } },
    ]);
  });

  it('takes no more than one answer can contain, and leaves the rest as it was', async () => {
    const first = await instance.accept(...Array.from({ length: 900 }, () => ({ queue: 'first' })));
    await store.rows(sql`WITH ended AS (DELETE FROM runs RETURNING *)
      INSERT INTO history SELECT row.* FROM ended, jsonb_populate_record(NULL::history, to_jsonb(ended)
        || jsonb_build_object('status', 'succeeded', 'finished_at', created_at, 'ended_at', created_at)) AS row`);
    const all = await instance.accept(...Array.from({ length: 5 }, () => ({ dependsOn: first })));
    const claimed = await instance.claim({ max: 5 });
    expect(claimed.map(({ dependencies }) => dependencies.length)).toEqual([900, 900]);
    const left = await store.rows(
      sql`SELECT 1 FROM all_runs WHERE status = 'pending' AND claimed_by IS NULL AND expires_at IS NULL AND lateness_ms IS NULL`,
    );
    expect(left).toHaveLength(3);
    const others = [...(await instance.claim({ max: 5 })), ...(await instance.claim({ max: 5 }))];
    expect(idsOf([...claimed, ...others]).sort()).toEqual([...all].sort());
  });

  it('is not held up by a row that cannot be read, since its id is of a time that no run has', async () => {
    const past = { runAt: Date.now() - MINUTE };
    const [bad = '', worse = '', good] = await instance.accept(past, past, {});
    await store.rows(sql`UPDATE runs SET id = '0000ffff-ffff-4fff-8fff-ffffffffffff' WHERE id = ${bad}`);
    await store.rows(sql`UPDATE runs SET id = 'ffffffff-ffff-4fff-8fff-ffffffffffff' WHERE id = ${worse}`);
    expect(idsOf(await instance.claim({ max: 3 }))).toEqual([good]);
  });

  it('never gives one run to two workers, however many ask of however many instances at once', async () => {
    const other = await another();
    const ids = await instance.accept(...Array.from({ length: 300 }, (_, n) => ({ runAt: Date.now() - n - 1 })));
    const work = async (workerId: string, one: PullInstance): Promise<string[]> => {
      const mine: string[] = [];
      for (let left = ids.length; left > 0;) {
        const pulled = await one.claim({ workerId, max: 7 });
        expect(pulled.every(({ run }) => run.workerId === workerId && run.attempts === 1)).toBe(true);
        mine.push(...idsOf(pulled));
        [{ left } = { left: 0 }] = await store.rows<{ left: number }>(
          sql`SELECT count(*)::int AS left FROM all_runs WHERE status = 'pending'`,
        );
      }
      return mine;
    };
    const workers = Array.from({ length: 20 }, (_, n) => work(`worker ${n}`, n % 2 === 0 ? instance : other));
    const claimed = (await Promise.all(workers)).flat();
    expect(claimed).toHaveLength(300);
    expect(new Set(claimed)).toEqual(new Set(ids));
  });
});

describe('a worker that waits', () => {
  it('gets runs that are recorded here', async () => {
    const answer = instance.claim(LONG);
    await waiting(instance);
    const [id] = await instance.accept({});
    expect(idsOf(await answer)).toEqual([id]);
  });

  it('gets runs that another instance records, and announces', async (context) => {
    notThroughPooler(context, 'LISTEN hears nothing there');
    let heard = 0;
    const ears = listen(store.url, { [WORK_FOR_PULL]: () => (heard += 1) });
    try {
      await until(() => heard > 0 || null);
      const answer = instance.claim(LONG);
      await waiting(instance);
      const [id] = await (await another()).accept({});
      expect(idsOf(await answer)).toEqual([id]);
      await until(() => heard > 1 || null);
    } finally {
      await ears.stop();
    }
  });

  it('gets runs that come due, also without a hint', async () => {
    const [id = ''] = await instance.accept({ runAt: Date.now() + 60 * MINUTE });
    const answer = instance.claim(LONG);
    await waiting(instance);
    await store.rows(sql`UPDATE runs SET due_at = clock_timestamp() WHERE id = ${id}`);
    expect(idsOf(await answer)).toEqual([id]);
  });

  it('gets nothing when its time is up', async () => {
    expect(await instance.claim({ waitSeconds: 0.05 })).toEqual([]);
  });

  it('comes before later ones', async () => {
    const answers = ['first', 'second', 'third'].map((workerId) => instance.claim({ ...LONG, workerId }));
    await waiting(instance);
    await instance.accept({}, {});
    const [first = [], second = []] = await Promise.all(answers.slice(0, 2));
    expect([...first, ...second].map(({ run }) => run.workerId)).toEqual(['first', 'second']);
    await instance.queues.stop();
    expect(await answers[2]).toEqual([]);
  });

  it('costs no claim of its own: a thousand that wait for one run are served by one or two', async () => {
    const gone = new AbortController();
    const answers = Array.from({ length: 1000 }, (_, n) =>
      instance.claim({ ...LONG, workerId: `worker ${n}`, signal: gone.signal }),
    );
    await until(() => (instance.claims() === 2 ? true : null));
    const before = instance.claims();
    const [id] = await instance.accept({});
    expect(idsOf(await Promise.race(answers))).toEqual([id]);
    expect(instance.claims() - before).toBeLessThanOrEqual(2);
    gone.abort();
    expect((await Promise.all(answers)).flat()).toHaveLength(1);
  });

  it('swallows no run when it goes away', async () => {
    const gone = new AbortController();
    const left = instance.claim({ ...LONG, workerId: 'gone', signal: gone.signal });
    await waiting(instance);
    gone.abort();
    expect(await left).toEqual([]);
    const [id] = await instance.accept({});
    const [pulled] = await instance.claim({ ...LONG, workerId: 'here' });
    // Its own last look may have been under way still.
    expect(pulled?.run).toMatchObject({ id, workerId: 'here' });
    expect(await instance.claim({ signal: gone.signal })).toEqual([]);
  });

  it('leaves to others a run that was claimed for it while it went away', async () => {
    const gone = new AbortController();
    const one = await another((database) => ({
      ...database,
      transaction: async (work, limitMs) => {
        const result = await database.transaction(work, limitMs);
        gone.abort();
        return result;
      },
    }));
    const [id = ''] = await one.accept({});
    expect(await one.claim({ workerId: 'gone', signal: gone.signal })).toEqual([]);
    const [pulled] = await instance.claim({ ...LONG, workerId: 'here' });
    expect(pulled).toMatchObject({ isFirst: true, run: { id, workerId: 'here', attempts: 2, failures: 0 } });
    expect(one.events.filter(({ type }) => type === 'pullRunsClaimed')).toEqual([]);
  });

  it('is answered at once when the instance stops, and later ones are sent elsewhere', async () => {
    const answers = [instance.claim(LONG), instance.claim({ ...LONG, queue: 'other' })];
    await waiting(instance);
    await instance.queues.stop();
    expect(await Promise.all(answers)).toEqual([[], []]);
    await instance.accept({});
    await expect(instance.claim(LONG)).rejects.toBeInstanceOf(NotNow);
  });
});

describe('while the database is away', () => {
  let proxy: PostgresProxy;
  let cutOff: PullInstance;

  beforeEach(async () => {
    proxy = await startPostgresProxy(store.url);
    cutOff = await createPullInstance(proxy.url);
    await cutOff.claim();
    await proxy.interrupt('refuse');
  });

  afterEach(async () => {
    await cutOff.stop();
    await proxy.close();
  });

  it('a worker that does not wait gets an error', async () => {
    await expect(cutOff.claim()).rejects.toSatisfy(isUnavailable);
  });

  it('a waiting worker goes on waiting, and gets its run when the database is back', async () => {
    const answer = cutOff.claim({ ...LONG, workerId: 'patient' });
    await until(() => cutOff.events.some(({ type }) => type === 'loopFailed') || null);
    const [id] = await instance.accept({});
    await proxy.restore();
    const [pulled] = await answer;
    expect(pulled?.run).toMatchObject({ id, workerId: 'patient' });
  });

  it('a waiting worker gets an error when its time is up', async () => {
    await expect(cutOff.claim({ waitSeconds: 0.2 })).rejects.toSatisfy(isUnavailable);
  });

  it('and back before its wait is over, a worker without work gets an empty answer', async () => {
    const answer = cutOff.claim(LONG);
    await until(() => cutOff.events.some(({ type }) => type === 'loopFailed') || null);
    await proxy.restore();
    expect(await until(() => cutOff.claim().catch(() => null))).toEqual([]);
    await cutOff.queues.stop();
    expect(await answer).toEqual([]);
  });
});

describe('the list of queues', () => {
  const states = () => store.database.run((db) => listQueues(db, null));

  it('counts by queue: due, later, leased, and how long the oldest has been due', async () => {
    const now = Date.now();
    await instance.accept(
      { queue: 'b', runAt: now - MINUTE },
      { queue: 'b', runAt: now - 10 * MINUTE },
      { queue: 'b', runAt: now + 60 * MINUTE },
      { queue: 'A', runAt: now + 60 * MINUTE },
      { queue: 'c', runAt: now - MINUTE },
    );
    await instance.claim({ queue: 'c' });
    const listed = await until(async () => {
      const found = await states();
      return found.some(({ workers }) => workers > 0) ? found : null;
    });
    expect(listed).toMatchObject([
      { queue: 'A', pending: 0, scheduled: 1, running: 0, oldestPendingSeconds: 0, workers: 0 },
      { queue: 'b', pending: 2, scheduled: 1, running: 0, workers: 0 },
      { queue: 'c', pending: 0, scheduled: 0, running: 1, oldestPendingSeconds: 0, workers: 1 },
    ]);
    expect(listed[1]?.oldestPendingSeconds).toBeGreaterThanOrEqual(600);
  });

  it('names a queue whose workers were seen lately, each once, and forgets them after ten minutes', async () => {
    for (const workerId of ['one', 'two', 'one']) await instance.claim({ workerId });
    await until(async () => ((await states())[0]?.workers === 2 ? true : null));
    await store.rows(sql`UPDATE queue_workers SET seen_at = seen_at - interval '6 minutes'`);
    expect(await states()).toEqual([]);
    await store.rows(sql`UPDATE queue_workers SET seen_at = seen_at - interval '10 minutes' WHERE worker_id = 'one'`);
    expect(await store.database.run((db) => forgetOldWorkers(db, 1))).toBe(1);
    expect(await store.database.run((db) => forgetOldWorkers(db, 1))).toBe(0);
    expect(await store.rows(sql`SELECT worker_id FROM queue_workers`)).toEqual([{ worker_id: 'two' }]);
  });
});

it('pull runs are recorded and neither claimed nor sent by an instance, however they fire', async () => {
  const sender = await instanceOfTest(store);
  const receiver = await receiverOfTest();
  const timing = { cron: null, everySeconds: 3600 };
  await sender.put('pulled', { url: '', target: { type: 'pull', queue: 'q' }, ...timing });
  await sender.put('sent', { url: receiver.url, ...timing });
  await store.rows(sql`UPDATE schedules SET next_fire_at = next_fire_at - interval '1 hour',
    next_occurrence_at = next_occurrence_at - interval '1 hour', created_at = created_at - interval '1 hour'`);
  await sender.start();
  for (const id of ['pulled', 'sent']) await sender.fire(id);
  await receiver.arrived(2);
  const pulled = await until(async () => {
    const runs = await store.rows<{
      schedule_id: string;
      status: string;
    }>(sql`SELECT schedule_id, trigger, status, lane,
      claimed_by, attempts FROM all_runs ORDER BY trigger`);
    const sent = runs.filter((run) => run.schedule_id === 'sent');
    if (runs.length < 4 || sent.some(({ status }) => status === 'pending')) return null;
    return runs.filter((run) => run.schedule_id === 'pulled');
  });
  const untouched = { status: 'pending', lane: 'pull q', claimed_by: null, attempts: 0 };
  expect(pulled).toMatchObject([
    { trigger: 'manual', ...untouched },
    { trigger: 'schedule', ...untouched },
  ]);
});
