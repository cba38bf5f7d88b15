import { sql } from 'drizzle-orm';
import { beforeEach, describe, expect, it } from 'vitest';
import type { FirelockEvent } from '../../../src/core/events.ts';
import type { Definition } from '../../../src/core/schedules/schedule.ts';
import {
  type ActionResult,
  type RunActionDeps,
  cancelRun,
  completeRun,
  heartbeatRun,
} from '../../../src/operations/runs/act-on-runs.ts';
import { failForNow, giveBackRun } from '../../../src/operations/runs/worker-reports.ts';
import { createEventBus } from '../../../src/runtime/event-bus.ts';
import { claimPullRuns } from '../../../src/store/queues/pull-claims.ts';
import { instanceOfTest, receiverOfTest, storeOfTest } from '../../support/of-test.ts';
import type { Store, TestInstance } from '../../support/pipeline.ts';
import { until } from '../../support/until.ts';

const SAID = { attempt: 1, workerId: 'w1' };
const LATER = { error: 'no space', result: 'half' };

let store: Store;
let instance: TestInstance;
let deps: RunActionDeps;
let events: FirelockEvent[];

beforeEach(async () => {
  store = await storeOfTest();
  instance = await instanceOfTest(store);
  const bus = createEventBus();
  events = [];
  bus.subscribe((event) => void events.push(event));
  deps = { database: store.database, events: bus, scope: null, wake: instance.pipeline.wake };
});

interface Row {
  status: string;
  attempts: number;
  failures: number;
  due_at: string;
  worker_id: string | null;
  first_claimed_at: string | null;
  lateness_ms: string | null;
  next_bound: string | null;
  wait: number;
  log: { attempt: number; outcome: string; error: { message: string } | null }[] | null;
}
async function row(id: string): Promise<Row> {
  const [found] = await store.rows<Row>(sql`SELECT *, attempt_log AS log,
    extract(epoch FROM due_at - clock_timestamp())::float8 AS wait,
    (SELECT next_bound FROM runs WHERE id = ${id}) AS next_bound FROM all_runs WHERE id = ${id}`);
  if (!found) throw new Error(`there is no run ${id}`);
  return found;
}

const claim = (workerId = 'w1') =>
  store.database.transaction((tx) =>
    claimPullRuns(tx, {
      ...{ queue: 'q', instanceId: instance.id },
      asks: [{ workerId, max: 1, leaseSeconds: 60, scope: null }],
    }),
  );

/** A run of a schedule, leased to a worker. */
async function pulled(definition: Partial<Definition> = {}): Promise<string> {
  await instance.put('one', { url: '', target: { type: 'pull', queue: 'q' }, ...definition });
  const { id } = await instance.fire('one');
  await claim();
  return id;
}

function runOf(result: ActionResult) {
  if (result.kind !== 'done') throw new Error(JSON.stringify(result));
  return result.run;
}

const kinds = (results: readonly ActionResult[]) => results.map(({ kind }) => kind).sort();
/** The retry is due. */
const makeDue = (id: string) =>
  store.rows(sql`UPDATE runs SET due_at = clock_timestamp(), ready = true WHERE id = ${id}`);

describe('a report that a run failed for now', () => {
  it('counts as a failure, and makes it pending for as long as its retry policy says', async () => {
    const id = await pulled({ retry: { maxAttempts: 3, minBackoffSeconds: 100, maxBackoffSeconds: 1000 } });
    const run = runOf(await failForNow(deps, id, { ...SAID, ...LATER }));
    expect(run).toMatchObject({ status: 'pending', attempts: 1, failures: 1, claimedBy: null });
    expect(run).toMatchObject({ error: { kind: 'reported', message: 'no space' }, result: { body: 'half' } });
    const { wait, log } = await row(id);
    expect(wait).toBeGreaterThan(80);
    expect(wait).toBeLessThan(111);
    expect(log).toMatchObject([{ attempt: 1, outcome: 'transient', error: { message: 'no space' } }]);
    expect(events).toMatchObject([
      { type: 'runCompleted', attempt: 1, settlement: { status: 'pending', retryAt: run.nextAttemptAt } },
    ]);
  });

  it('counts once, however often it comes, and none that comes after a release or a lease that ran out', async () => {
    const id = await pulled();
    const word = { ...SAID, ...LATER };
    const results = await Promise.all([1, 2, 3].map(() => failForNow(deps, id, word)));
    expect(kinds(results)).toEqual(['done', 'done', 'done']);
    expect(await row(id)).toMatchObject({ failures: 1, status: 'pending' });
    await makeDue(id);
    await claim();
    await giveBackRun(deps, id, { ...SAID, attempt: 2 });
    expect((await failForNow(deps, id, { ...word, attempt: 2 })).kind).toBe('done');
    expect(await row(id)).toMatchObject({ failures: 1, attempts: 2 });
    expect((await failForNow(deps, id, word)).kind).toBe('notPossible');
  });

  it('ends the run once it has had all its attempts, by that error', async () => {
    const id = await pulled({ retry: { maxAttempts: 2, minBackoffSeconds: 0, maxBackoffSeconds: 0 } });
    await failForNow(deps, id, { ...SAID, ...LATER });
    await makeDue(id);
    await claim();
    const last = { ...SAID, attempt: 2, error: null, result: null };
    expect(runOf(await failForNow(deps, id, last))).toMatchObject({
      ...{ status: 'failed', failures: 2, error: { kind: 'reported', message: 'reported as failed' } },
    });
    expect(runOf(await failForNow(deps, id, last)).status).toBe('failed');
    expect(runOf(await completeRun(deps, id, { ...last, status: 'failed' })).failures).toBe(2);
  });

  it('ends a run that is to be done at most once: a part of it may have been', async () => {
    const id = await pulled({ delivery: 'atMostOnce' });
    const run = runOf(await failForNow(deps, id, { ...SAID, ...LATER }));
    expect(run).toMatchObject({ status: 'failed', error: { message: 'no space' }, result: { body: 'half' } });
  });

  it('goes by the version of the run, and not by a later one', async () => {
    const once = { maxAttempts: 1, minBackoffSeconds: 0, maxBackoffSeconds: 0 };
    const id = await pulled();
    await instance.put('one', { url: '', target: { type: 'pull', queue: 'q' }, retry: once });
    expect(runOf(await failForNow(deps, id, { ...SAID, ...LATER })).status).toBe('pending');
  });

  it('of a target outlasts the acknowledgement of the same attempt that comes after it', async () => {
    let id = '';
    const reported = Promise.withResolvers<ActionResult>();
    const receiver = await receiverOfTest(({ body }, response) => {
      ({ runId: id } = body);
      void failForNow(deps, id, { attempt: 1, workerId: null, ...LATER }).then((result) => {
        reported.resolve(result);
        response.writeHead(202).end('{}');
      });
    });
    await instance.start();
    const retry = { maxAttempts: 2, minBackoffSeconds: 3600, maxBackoffSeconds: 3600 };
    await instance.put('one', { url: receiver.url, completion: 'callback', retry });
    await instance.fire('one');
    expect(runOf(await reported.promise)).toMatchObject({ status: 'pending', failures: 1 });
    await until(() => instance.pipeline.dispatcher.claimed() === 0 || null);
    expect(await row(id)).toMatchObject({ status: 'pending', failures: 1, log: [{ outcome: 'transient' }] });
  });
});

describe('a release', () => {
  it('leaves the run as if it had not been claimed, but for the number of its attempt', async () => {
    const id = await pulled({
      expect: { startWithinSeconds: 60, finishWithinSeconds: null, atLeastSeconds: null, result: null },
    });
    expect(await row(id)).toMatchObject({ next_bound: null });
    expect(runOf(await giveBackRun(deps, id, SAID))).toMatchObject({ status: 'pending', failures: 0 });
    expect(await row(id)).toMatchObject({
      ...{
        attempts: 1,
        failures: 0,
        first_claimed_at: null,
        lateness_ms: null,
        next_bound: 'start',
        log: null,
      },
    });
    const { given } = await claim('w2');
    expect(given[0]?.map(({ run, isFirst }) => [run.id, run.attempts, isFirst])).toEqual([[id, 2, true]]);
    expect((await giveBackRun(deps, id, SAID)).kind).toBe('notPossible');
    expect(await row(id)).toMatchObject({ status: 'running', worker_id: 'w2' });
  });

  it('keeps what earlier attempts left of the run', async () => {
    const id = await pulled();
    await failForNow(deps, id, { ...SAID, ...LATER });
    const { first_claimed_at: first, lateness_ms: lateness } = await row(id);
    await makeDue(id);
    await claim();
    await giveBackRun(deps, id, { ...SAID, attempt: 2 });
    expect(await row(id)).toMatchObject({ first_claimed_at: first, lateness_ms: lateness, failures: 1 });
  });

  it('and the progress, or the end, of the same run at the same moment are decided one after the other', async () => {
    const id = await pulled();
    const beat = heartbeatRun(deps, id, { ...SAID, progress: 0.5 });
    const [release, progress] = [await giveBackRun(deps, id, SAID), await beat];
    const { status } = await row(id);
    expect([status, release.kind]).toEqual(status === 'running' ? ['running', 'notPossible'] : ['pending', 'done']);
    expect(progress.kind).toBe('done');
    const other = await pulled();
    const results = await Promise.all([giveBackRun(deps, other, SAID), cancelRun(deps, other)]);
    expect((await row(other)).status).toBe('cancelled');
    expect(results[1].kind).toBe('done');
  });
});
