import { randomUUID } from 'node:crypto';
import { sql } from 'drizzle-orm';
import postgres from 'postgres';
import { beforeEach, describe, expect, it } from 'vitest';
import type { FirelockEvent } from '../../../src/core/events.ts';
import { randomRunId } from '../../../src/core/runs/run.ts';
import {
  type ActionResult,
  type CompletionReport,
  type HeartbeatReport,
  type RunActionDeps,
  type RunSummary,
  cancelRun,
  completeRun,
  heartbeatRun,
  retryRun,
} from '../../../src/operations/runs/act-on-runs.ts';
import { createEventBus } from '../../../src/runtime/event-bus.ts';
import type { Wake } from '../../../src/runtime/loop/wake.ts';
import { claimPullRuns } from '../../../src/store/queues/pull-claims.ts';
import { instanceOfTest, receiverOfTest, sqlOfTest, storeOfTest } from '../../support/of-test.ts';
import type { Store, TestInstance } from '../../support/pipeline.ts';
import type { Answer, Receiver } from '../../support/receiver.ts';
import { changeRun, changeRunIn } from '../../support/run-rows.ts';
import { until } from '../../support/until.ts';

const NOTHING_SAID = { attempt: null, workerId: null };
const OF_W1 = { workerId: 'w1' };

let store: Store;
let instance: TestInstance;
let receiver: Receiver;
let answer: Answer;
let deps: RunActionDeps;
let events: FirelockEvent[];
/** Which loops the actions have woken. */
let woken: (keyof Wake)[];
let psql: postgres.Sql;

beforeEach(async () => {
  store = await storeOfTest();
  answer = (_, response) => response.end('{}');
  receiver = await receiverOfTest((arrival, response) => answer(arrival, response));
  instance = await instanceOfTest(store);
  const bus = createEventBus();
  events = [];
  woken = [];
  bus.subscribe((event) => void events.push(event));
  deps = {
    database: store.database,
    events: bus,
    scope: null,
    wake: {
      effects: () => wakes('effects'),
      dispatch: () => wakes('dispatch'),
      workers: () => wakes('workers'),
      admission: () => wakes('admission'),
      alerts: () => wakes('alerts'),
    },
  };
  psql = sqlOfTest(store.url);
});

function wakes(loop: keyof Wake): void {
  woken.push(loop);
  instance.pipeline.wake[loop]();
}

const cancel = (id: string) => cancelRun(deps, id);
const retry = (id: string) => retryRun(deps, id);
const complete = (id: string, word: Partial<CompletionReport> = {}) =>
  completeRun(deps, id, { ...NOTHING_SAID, status: 'succeeded', error: null, result: null, ...word });
const heartbeat = (id: string, word: Partial<HeartbeatReport> = {}) =>
  heartbeatRun(deps, id, { ...NOTHING_SAID, progress: null, ...word });
/** What the API would answer, for comparison. */
const conflict = (message: string) => ({
  kind: 'notPossible',
  message,
  summary: expect.objectContaining({ attempts: expect.any(Number) as number }) as RunSummary,
});
const runOf = (result: ActionResult) => {
  if (result.kind !== 'done') throw new Error(JSON.stringify(result));
  return result.run;
};

interface Row {
  id: string;
  status: string;
  attempts: number;
  failures: number;
  schedule_version: number;
  lane: string;
  overlap_guarded: boolean;
  claimed_by: string | null;
  handed_off_at: string | null;
  finished_at: string | null;
  due_at: string;
  expires_at: string | null;
  worker_id: string | null;
  lost_at: string | null;
  lateness_ms: string | null;
  open_dependencies: number | null;
}
const row = async (id: string) => {
  const [found] = await store.rows<Row>(sql`SELECT * FROM all_runs WHERE id = ${id}`);
  if (!found) throw new Error(`there is no run ${id}`);
  return found;
};
const statusOf = async (id: string) => (await row(id)).status;
const reaches = (id: string, status: string) => until(async () => ((await statusOf(id)) === status ? true : null));
const fire = async (id: string) => (await instance.fire(id)).id;
const accept = async (...asked: Parameters<TestInstance['accept']>) =>
  (await instance.accept(...asked)).map((one) => one.id);
const only = ([id]: string[]) => {
  if (id === undefined) throw new Error('nothing was recorded');
  return id;
};
/** One run of a queue, leased to a worker. */
async function pulled(workerId: string, asked: { leaseSeconds?: number } = {}): Promise<string> {
  const id = only(await accept({ queue: 'q' }));
  await claim(workerId, asked.leaseSeconds ?? 60);
  return id;
}
const claim = (workerId: string, leaseSeconds = 60) =>
  store.database.transaction((tx) =>
    claimPullRuns(tx, {
      queue: 'q',
      instanceId: instance.id,
      asks: [{ workerId, max: 1, leaseSeconds, scope: null }],
    }),
  );
const put = (id: string, definition: Partial<Parameters<TestInstance['put']>[1]> = {}) =>
  instance.put(id, { url: receiver.url, ...definition });
/** Ends a run as if it had gone that way. */
const endAs = (id: string, status: string, more: object = {}) =>
  changeRun(psql, id, { status, finished_at: new Date(), ...more });
const attemptLog = async (id: string) =>
  (await store.rows<{ log: unknown }>(sql`SELECT attempt_log AS log FROM all_runs WHERE id = ${id}`))[0]?.log ?? null;
/** The runs that follow others, and whose ends they follow. */
const followers = () =>
  store.rows<{ parent_run_id: string; status: string }>(
    sql`SELECT parent_run_id, status FROM all_runs WHERE trigger = 'after'`,
  );
const noneLeft = () => until(async () => ((await store.rows(sql`SELECT FROM effects`)).length === 0 ? true : null));

describe('a run that is not there', () => {
  it('is reported as missing, whatever the action is', async () => {
    for (const id of [randomRunId(Date.now()), randomUUID(), 'ffffffff-ffff-7fff-bfff-ffffffffffff']) {
      for (const ask of [cancel, retry, complete, heartbeat]) expect(await ask(id)).toEqual({ kind: 'noSuchRun' });
    }
  });
});

describe('cancelling', () => {
  it('ends a waiting, pending or running run, once; only the target of a running one is called', async () => {
    await put('one');
    const [, waits] = await accept({ ref: 'a', queue: 'a' }, { dependsOn: ['a'], queue: 'b' });
    const pending = await fire('one');
    const running = await pulled('w1');
    for (const id of [waits ?? '', pending, running]) {
      const cancelled = runOf(await cancel(id));
      expect(cancelled).toMatchObject({ status: 'cancelled', reason: 'request', expiresAt: null });
      expect(cancelled.finishedAt).not.toBeNull();
      const again = runOf(await cancel(id));
      expect(again).toEqual(cancelled);
    }
    const effects = await store.rows(
      sql`SELECT run_id, schedule_id, trigger, attempt FROM effects WHERE kind = 'cancel'`,
    );
    expect(effects).toEqual([{ run_id: running, schedule_id: '', trigger: 'api', attempt: 1 }]);
    const cancellations = events.filter(({ type }) => type === 'runsCancelled');
    expect(cancellations).toHaveLength(3);
    expect(cancellations[0]).toMatchObject({ reason: 'request', count: 1 });
  });

  it('is refused once the run has ended', async () => {
    await put('one');
    const id = await fire('one');
    await endAs(id, 'succeeded');
    expect(await cancel(id)).toEqual(conflict('the run has ended as succeeded: there is nothing to cancel'));
  });

  it('keeps an attempt under way from settling the run, and starts the next one', async () => {
    const release = Promise.withResolvers<undefined>();
    answer = ({ path }, response) => {
      if (path === '/held') void release.promise.then(() => response.end('{}'));
      else response.end('{}');
    };
    await instance.start();
    await put('one', { url: `${receiver.url}/held`, overlap: 'queue' });
    const first = await fire('one');
    await receiver.arrived(1);
    const second = await fire('one');
    expect(await statusOf(second)).toBe('waiting');
    expect(runOf(await cancel(first)).status).toBe('cancelled');
    await reaches(second, 'pending');
    release.resolve(undefined);
    await reaches(second, 'succeeded');
    expect(await statusOf(first)).toBe('cancelled');
    const log = await until(() => attemptLog(first));
    expect(log).toMatchObject([{ outcome: 'acceptedLate' }]);
  });

  it('fails those that depend on it', async () => {
    await instance.start();
    const [parent = '', child = ''] = await accept({ ref: 'a', queue: 'q' }, { dependsOn: ['a'], queue: 'q' });
    await cancel(parent);
    await reaches(child, 'failed');
  });

  it('starts schedules that follow cancellations', async () => {
    await put('one');
    await put('after', { cron: null, after: { scheduleId: 'one', on: ['cancelled'] } });
    const id = await fire('one');
    await cancel(id);
    expect(woken).toEqual(['effects']);
    await instance.pipeline.effects.start();
    await noneLeft();
    expect(await followers()).toEqual([{ parent_run_id: id, status: 'pending' }]);
  });
});

describe('retrying', () => {
  it.each(['failed', 'unknown', 'abandoned', 'skipped', 'cancelled'])(
    'hands off again, from the start, a run that ended as %s, and keeps its past',
    async (status) => {
      await put('one');
      const id = await fire('one');
      const now = new Date();
      await endAs(id, status, {
        reason: 'any',
        attempts: 7,
        failures: 5,
        recoveries: 2,
        lost_at: now,
        recovered_at: now,
        lookups: 1,
        in_doubt_until: now,
        attempt_in_doubt: 7,
        claimed_by: randomUUID(),
        claimed_at: now,
        handoff_started_at: now,
        handed_off_at: now,
        lateness_ms: 12,
        execution_id: 'x',
        result_status_code: 500,
        result_body: 'no',
        error: { kind: 'http', message: 'no' },
        progress: 0.5,
      });
      const before = await row(id);
      const run = runOf(await retry(id));
      expect(run).toMatchObject({
        status: 'pending',
        reason: null,
        attempts: 7,
        failures: 0,
        recoveries: 0,
        lostAt: Date.parse(before.lost_at ?? ''),
        latenessMs: 12,
        inDoubtUntil: null,
        claimedBy: null,
        handoffStartedAt: null,
        handedOffAt: null,
        finishedAt: null,
        executionId: null,
        result: null,
        error: null,
        progress: null,
      });
      expect(woken).toEqual(['dispatch']);
      expect(events).toMatchObject([{ type: 'runRetried', runId: id, scheduleId: 'one', was: status }]);
      await instance.start();
      await reaches(id, 'succeeded');
      const [arrival] = receiver.arrivals;
      expect(arrival?.body).toMatchObject({ runId: id, attempt: 8, recovery: null });
      expect(await retry(id)).toEqual(conflict('the run has succeeded: there is nothing to retry'));
    },
  );

  it('goes by the current version of the schedule', async () => {
    await put('one', { payload: '1' });
    const id = await fire('one');
    await cancel(id);
    await put('one', { url: `${receiver.url}/new`, payload: '2', priority: 'high' });
    const run = runOf(await retry(id));
    expect(run).toMatchObject({ scheduleVersion: 2, priority: 'high', payload: '2' });
    await instance.start();
    await reaches(id, 'succeeded');
    expect(receiver.arrivals).toMatchObject([{ path: '/new', body: { payload: 2 } }]);
  });

  it('moves to the lane of the current version, such as a queue, and wakes its workers', async () => {
    await put('one');
    const id = await fire('one');
    await cancel(id);
    await put('one', { target: { type: 'pull', queue: 'q' } });
    woken.length = 0;
    expect(runOf(await retry(id))).toMatchObject({ status: 'pending', queue: 'q' });
    expect(woken).toEqual(['dispatch', 'workers']);
  });

  it('is refused once the schedule is deleted, and also where its id was used again', async () => {
    await put('one');
    const id = await fire('one');
    await endAs(id, 'failed');
    await instance.remove('one');
    const refused = { kind: 'notPossible', message: expect.stringContaining('was deleted') as string };
    expect(await retry(id)).toMatchObject(refused);
    await put('one');
    expect(await retry(id)).toMatchObject(refused);
    expect(await statusOf(id)).toBe('failed');
  });

  it('opens a one-off run by its own definition', async () => {
    const id = only(await accept({ url: receiver.url, payload: '"own"' }));
    await cancel(id);
    expect(runOf(await retry(id))).toMatchObject({ status: 'pending', scheduleId: null });
    expect((await row(id)).overlap_guarded).toBe(false);
    await instance.start();
    await reaches(id, 'succeeded');
    expect(receiver.arrivals).toMatchObject([{ body: { payload: 'own', scheduleId: null } }]);
  });

  it('makes a dependent wait again for dependencies that have not ended', async () => {
    await instance.start();
    const [one = '', other = '', child = ''] = await accept(
      { ref: 'one', queue: 'q' },
      { ref: 'other', queue: 'other' },
      { dependsOn: ['one', 'other'], url: receiver.url },
    );
    await cancel(one);
    await reaches(child, 'failed');
    expect(runOf(await retry(child))).toMatchObject({ status: 'waiting', error: null, nextAttemptAt: null });
    expect((await row(child)).open_dependencies).toBe(1);
    await store.rows(sql`UPDATE runs SET attempts = 1 WHERE id = ${other}`);
    await complete(other);
    await reaches(child, 'succeeded');
    expect(receiver.arrivals).toHaveLength(1);
  });

  it('ignores overlap, and counts as active for later fires', async () => {
    await put('one', { overlap: 'skip' });
    const first = await fire('one');
    await cancel(first);
    const second = await fire('one');
    expect(await statusOf(second)).toBe('pending');
    expect(runOf(await retry(first)).status).toBe('pending');
    await cancel(second);
    expect(await statusOf(await fire('one'))).toBe('skipped');
  });

  it('waits for a delete under way, and then finds the schedule gone', async () => {
    await put('one');
    const id = await fire('one');
    await endAs(id, 'failed');
    const retried = await whileLocked(
      (tx) => tx`DELETE FROM schedules WHERE id = 'one'`,
      () => retry(id),
    );
    expect(retried.kind).toBe('notPossible');
  });
});

/** Does something, and lets another transaction that has the rows end once it waits for them. */
async function whileLocked<T>(
  lock: (tx: postgres.TransactionSql) => Promise<unknown>,
  work: () => Promise<T>,
): Promise<T> {
  const client = postgres(store.url, { max: 1, onnotice: () => undefined });
  try {
    let waiting: Promise<T> | undefined;
    await client.begin(async (tx) => {
      await lock(tx);
      waiting = work();
      await until(async () => {
        const blocked = await store.rows(
          sql`SELECT pid FROM pg_stat_activity WHERE cardinality(pg_blocking_pids(pid)) > 0 AND datname = current_database()`,
        );
        return blocked.length > 0 ? true : null;
      });
    });
    if (!waiting) throw new Error('nothing was done');
    return await waiting;
  } finally {
    await client.end();
  }
}

describe('completing', () => {
  it('ends a callback run, keeps what the target answered, and answers the same again', async () => {
    answer = (_, response) => response.writeHead(202).end('{"executionId":"e1"}');
    await instance.start();
    await put('one', { completion: 'callback' });
    const id = await fire('one');
    await reaches(id, 'running');
    const done = runOf(await complete(id, { attempt: 1 }));
    expect(done).toMatchObject({
      status: 'succeeded',
      error: null,
      executionId: 'e1',
      result: { statusCode: 202, body: '{"executionId":"e1"}' },
      claimedBy: instance.id,
      expiresAt: null,
    });
    expect(done.finishedAt).toBeGreaterThanOrEqual(done.handedOffAt ?? Infinity);
    expect(runOf(await complete(id, { attempt: 1 }))).toEqual(done);
    expect(await complete(id, { status: 'failed' })).toEqual(conflict('the run has ended as succeeded'));
    const completions = events.filter((event) => event.type === 'runCompleted');
    expect(completions).toMatchObject([
      { runId: id, scheduleId: 'one', attempt: 1, settlement: { status: 'succeeded', recovered: false } },
    ]);
    expect(completions[0]?.settlement.durationMs).toBeGreaterThanOrEqual(0);
  });

  it('accepts the reported result, and the reason of a failure', async () => {
    const id = await pulled('w1');
    const run = runOf(await complete(id, { ...OF_W1, status: 'failed', error: 'no disk', result: '{"rows":3}' }));
    expect(run).toMatchObject({
      status: 'failed',
      error: { kind: 'reported', message: 'no disk' },
      result: { statusCode: null, body: '{"rows":3}' },
      workerId: 'w1',
    });
    expect(await complete(id)).toEqual(conflict('the run has ended as failed'));
    expect((await complete(id, { ...OF_W1, status: 'failed' })).kind).toBe('done');
  });

  it('refuses a report about an attempt that is not the current one, or from another worker', async () => {
    const id = await pulled('w1');
    await store.rows(
      sql`UPDATE runs SET status = 'pending', claimed_by = NULL, claimed_at = NULL, handoff_started_at = NULL,
      handed_off_at = NULL, expires_at = NULL WHERE id = ${id}`,
    );
    await claim('w2');
    expect(await complete(id, { attempt: 1 })).toEqual(conflict('attempt 1 is not the current one (2)'));
    expect(await heartbeat(id, { attempt: 1 })).toEqual(conflict('attempt 1 is not the current one (2)'));
    const other = conflict('the run is not claimed by worker w1');
    expect(await complete(id, { workerId: 'w1' })).toEqual(other);
    expect(await heartbeat(id, { workerId: 'w1' })).toEqual(other);
    const unnamed = conflict('a worker has claimed the run: workerId must name it');
    expect(await complete(id, { attempt: 2 })).toEqual(unnamed);
    expect(await heartbeat(id, { attempt: 2 })).toEqual(unnamed);
    expect(await statusOf(id)).toBe('running');
    expect(runOf(await complete(id, { attempt: 2, workerId: 'w2' })).status).toBe('succeeded');
  });

  it('overtakes the settlement of the attempt under way, whose outcome is then in the log', async () => {
    const completed = Promise.withResolvers<ActionResult>();
    answer = ({ body }, response) => {
      void complete(body.runId, { attempt: body.attempt, result: '"done"' }).then((result) => {
        completed.resolve(result);
        response.writeHead(202).end('{"executionId":"late"}');
      });
    };
    await instance.start();
    await put('one', { completion: 'callback' });
    const id = await fire('one');
    const run = runOf(await completed.promise);
    expect(run).toMatchObject({ status: 'succeeded', attempts: 1, result: { body: '"done"' } });
    expect(run.handedOffAt).not.toBeNull();
    expect(run.latenessMs).not.toBeNull();
    await until(() => instance.pipeline.dispatcher.claimed() === 0 || null);
    expect(await row(id)).toMatchObject({ status: 'succeeded', attempts: 1, expires_at: null });
    expect(await attemptLog(id)).toMatchObject([{ attempt: 1, outcome: 'acceptedLate', statusCode: 202 }]);
    expect(instance.events.filter(({ type }) => type === 'runSettled')).toEqual([]);
  });

  it('also ends a run between two attempts, and a lost one before its recovery', async () => {
    await put('one');
    const id = await fire('one');
    expect(await complete(id)).toEqual(conflict('the run is pending: no attempt has started'));
    await store.rows(
      sql`UPDATE runs SET attempts = 1, failures = 1, lost_at = clock_timestamp(), due_at = due_at + interval '1 hour'
      WHERE id = ${id}`,
    );
    expect(runOf(await complete(id)).status).toBe('succeeded');
    expect(events).toMatchObject([{ type: 'runCompleted', settlement: { recovered: true, durationMs: null } }]);
    await instance.start();
    await until(() => instance.pipeline.tick.passes() > 2 || null);
    expect(receiver.arrivals).toEqual([]);
  });

  it('settles an unknown outcome late, and starts the schedules that follow that status', async () => {
    await put('one');
    await put('after', { cron: null, after: { scheduleId: 'one', on: ['succeeded'] } });
    const id = await fire('one');
    await endAs(id, 'unknown', { attempts: 1, error: { kind: 'network', message: 'cut' } });
    expect(runOf(await complete(id))).toMatchObject({ status: 'succeeded', error: null });
    await instance.pipeline.effects.start();
    await noneLeft();
    expect(await followers()).toEqual([{ parent_run_id: id, status: 'pending' }]);
  });

  it('releases dependents once, however often the run ends', async () => {
    const [parent = '', , child = ''] = await accept(
      { ref: 'a', queue: 'q' },
      { ref: 'b', queue: 'other' },
      { dependsOn: ['a', 'b'], onDependencyFailure: 'run', queue: 'q' },
    );
    await instance.pipeline.effects.start();
    await claim('w1');
    await complete(parent, { ...OF_W1, status: 'failed' });
    await noneLeft();
    expect(await row(child)).toMatchObject({ status: 'waiting', open_dependencies: 1 });
    await retry(parent);
    await claim('w1');
    await complete(parent, OF_W1);
    await noneLeft();
    expect(await row(child)).toMatchObject({ status: 'waiting', open_dependencies: 1 });
  });

  it('and cancelling at the same moment have one end between them', async () => {
    const id = await pulled('w1');
    const results = await Promise.all([complete(id, OF_W1), cancel(id)]);
    const status = await statusOf(id);
    expect(results.map(({ kind }) => kind)).toEqual(
      status === 'succeeded' ? ['done', 'notPossible'] : ['notPossible', 'done'],
    );
  });

  it('waits for a transaction that has the row, and decides by what that left', async () => {
    const id = await pulled('w1');
    const result = await whileLocked(
      (tx) => changeRunIn(tx, id, { status: 'cancelled', reason: 'replaced' }),
      () => complete(id, OF_W1),
    );
    expect(result).toEqual(conflict('the run has ended as cancelled (replaced)'));
  });
});

describe('a heartbeat', () => {
  it('extends the run’s time by its own lease, and keeps the progress', async () => {
    const id = await pulled('w1', { leaseSeconds: 90 });
    await store.rows(sql`UPDATE runs SET expires_at = clock_timestamp() + interval '1 second' WHERE id = ${id}`);
    const run = runOf(await heartbeat(id, { attempt: 1, workerId: 'w1', progress: 0.25 }));
    expect(run).toMatchObject({ status: 'running', progress: 0.25, workerId: 'w1' });
    expect((run.expiresAt ?? 0) - run.updatedAt).toBe(90_000);
    expect(runOf(await heartbeat(id, OF_W1)).progress).toBe(0.25);
    expect(events).toEqual([]);
  });

  it('for a run that is not accepted yet only keeps the progress', async () => {
    const answers: (() => void)[] = [];
    answer = (_, response) => answers.push(() => response.end('{}'));
    await instance.start();
    await put('one', { completion: 'callback' });
    const id = await fire('one');
    await receiver.arrived(1);
    expect(runOf(await heartbeat(id, { attempt: 1, progress: 1 }))).toMatchObject({
      status: 'pending',
      progress: 1,
      expiresAt: null,
    });
    for (const one of answers) one();
    await reaches(id, 'running');
  });

  it('is refused before an attempt has started, and says how a run has ended', async () => {
    await put('one');
    const id = await fire('one');
    expect(await heartbeat(id)).toEqual(conflict('the run is pending: no attempt has started'));
    await cancel(id);
    expect(await heartbeat(id)).toEqual(conflict('the run has ended as cancelled (request)'));
  });

  it('waits for a transaction that has the row, and decides by what that left', async () => {
    const id = await pulled('w1');
    const result = await whileLocked(
      (tx) => changeRunIn(tx, id, { status: 'cancelled', reason: 'request' }),
      () => heartbeat(id, { ...OF_W1, progress: 0.5 }),
    );
    expect(result).toEqual(conflict('the run has ended as cancelled (request)'));
    expect(await row(id)).toMatchObject({ status: 'cancelled', progress: null });
  });
});
