import { randomUUID } from 'node:crypto';
import { sql } from 'drizzle-orm';
import { beforeEach, describe, expect, it, onTestFinished } from 'vitest';
import type { AttemptOutcome } from '../../../src/core/runs/attempts/outcome.ts';
import type { AttemptSettlement } from '../../../src/core/runs/attempts/settle-attempt.ts';
import { DELIVERIES, type Definition } from '../../../src/core/schedules/schedule.ts';
import { type Settler, createSettler } from '../../../src/flow/settle.ts';
import { systemClock } from '../../../src/runtime/clock.ts';
import { createEventBus } from '../../../src/runtime/event-bus.ts';
import type { Database } from '../../../src/postgres/database.ts';
import { claimOf } from '../../../src/store/runs/claims/held-claims.ts';
import { endedAttempt } from '../../support/claims.ts';
import { eachTest, instanceOfTest, receiverOfTest, storeOfTest } from '../../support/of-test.ts';
import { claimRuns, endedRunsOf, leaveRuns, lockRuns, loseAnswerOf, runsOf } from '../../support/pending-runs.ts';
import type { InstanceOptions } from '../../support/pipeline.ts';
import { refuseRunsOf, refuseToStart } from '../../support/refused.ts';
import { startRecovery } from '../../support/recovering.ts';
import { NO_WAKE } from '../../support/working.ts';
import { until } from '../../support/until.ts';

const AT_ONCE = { maxAttempts: 5, minBackoffSeconds: 0, maxBackoffSeconds: 0 };

const store = eachTest(storeOfTest);

const instanceOn = (database: Database, options: InstanceOptions = {}) =>
  instanceOfTest({ ...store, database }, options);

describe.each(DELIVERIES)('a settlement that is committed and whose answer is lost (%s)', (delivery) => {
  /** The first attempt is answered 503, the others when told. */
  async function once() {
    let underWay = 0;
    let most = 0;
    const owed: (() => void)[] = [];
    const receiver = await receiverOfTest(({ body }, response) => {
      if (body.attempt === 1) {
        response.writeHead(503).end();
        return;
      }
      underWay += 1;
      most = Math.max(most, underWay);
      owed.push(() => {
        underWay -= 1;
        response.end('{}');
      });
    });
    const answerAll = () => {
      for (const answer of owed.splice(0)) answer();
    };
    return { receiver, answerAll, most: () => most };
  }

  it('does not make its process forget the next attempt, nor make two at once', async () => {
    const { receiver, answerAll, most } = await once();
    const lossy = loseAnswerOf(store.database, 'settleLockedRuns');
    const instance = await instanceOn(lossy.database);
    onTestFinished(() => {
      lossy.lose();
      answerAll();
      return Promise.resolve();
    });
    await instance.put('one', { url: receiver.url, delivery, retry: AT_ONCE });
    await leaveRuns(store, 'one');
    await instance.start();
    await lossy.committed;
    // Only the row says that the attempt is over.
    await until(async () => (await runsOf(store)).some((run) => run.attempts === 2) || null);
    const recovery = startRecovery(store, instance);
    onTestFinished(() => recovery.stop());
    await recovery.waits(60_000);
    expect(receiver.arrivals).toHaveLength(1);

    lossy.lose();
    await receiver.arrived(2);
    await until(() => instance.events.some(({ type }) => type === 'settlementFenced') || null);
    await recovery.waits(60_000);
    answerAll();
    expect(await endedRunsOf(store)).toMatchObject([
      { status: 'succeeded', attempts: 2, failures: 1, recoveries: 0, lost_at: null },
    ]);
    expect(receiver.arrivals.map(({ body }) => body.attempt)).toEqual([1, 2]);
    expect(most()).toBe(1);
    expect(recovery.eventsOf('runsTakenOver')).toEqual([]);
    await until(() => instance.pipeline.dispatcher.claimed() === 0 || null);
    const [run] = await store.rows<{ log: unknown }>(sql`SELECT attempt_log AS log FROM all_runs`);
    expect(run?.log).toMatchObject([
      { attempt: 1, outcome: 'transient' },
      { attempt: 2, outcome: 'accepted' },
    ]);
  });

  it('and again when it is repeated, settles its run once', async () => {
    const receiver = await receiverOfTest();
    const first = loseAnswerOf(store.database, 'settlePlainIfClaimed');
    const second = loseAnswerOf(first.database, 'settleLockedRuns');
    first.lose();
    second.lose();
    const instance = await instanceOn(second.database);
    await instance.put('one', { url: receiver.url, delivery });
    await leaveRuns(store, 'one');
    await instance.start();
    await second.committed;
    await until(() => instance.pipeline.dispatcher.claimed() === 0 || null);
    expect(await runsOf(store)).toMatchObject([{ status: 'succeeded', attempts: 1, recoveries: 0 }]);
    expect(receiver.arrivals).toHaveLength(1);
    const emitted = instance.events.filter(({ type }) => type === 'runSettled' || type === 'settlementFenced');
    expect(emitted).toMatchObject([{ type: 'runSettled', attempt: 1, settlement: { status: 'succeeded' } }]);
  });
});

describe('a run that another transaction keeps locked', () => {
  it('keeps no other from being settled, and is settled once it is free', async () => {
    const owed: (() => void)[] = [];
    const slow = await receiverOfTest((_, response) => owed.push(() => response.end('{}')));
    const quick = await receiverOfTest();
    const instance = await instanceOn(store.database);
    await instance.put('slow', { url: slow.url });
    await instance.put('quick', { url: quick.url });
    await leaveRuns(store, 'slow');
    await instance.start();
    await slow.arrived(1);
    const unlock = await lockRuns(store, 'slow');
    onTestFinished(unlock);
    for (const answer of owed) answer();
    await leaveRuns(store, 'quick', { count: 20 });

    const others = await endedRunsOf(store, 'quick');
    expect(others.every(({ status, attempts }) => status === 'succeeded' && attempts === 1)).toBe(true);
    expect(await runsOf(store, 'slow')).toMatchObject([{ status: 'pending' }]);
    await unlock();
    expect(await endedRunsOf(store, 'slow')).toMatchObject([{ status: 'succeeded', attempts: 1 }]);
    expect([slow.arrivals.length, quick.arrivals.length]).toEqual([1, 20]);
    expect(instance.events.filter(({ type }) => type === 'settlementFenced')).toEqual([]);
    // No other run that ended waited for it until the time of a statement was up, with all others that ended.
    expect(instance.events.filter(({ type }) => type === 'loopFailed')).toEqual([]);
    expect(instance.events.some(({ type }) => type === 'batchHeldUp')).toBe(true);
  });
});

describe('an effect of an end that the database refuses', () => {
  it('keeps no run from being settled, and is done once it is mended', async () => {
    const owed: (() => void)[] = [];
    const receiver = await receiverOfTest(({ path }, response) => {
      if (path === '/held') owed.push(() => response.end('{}'));
      else response.end('{}');
    });
    const instance = await instanceOn(store.database);
    const put = (id: string, more: Partial<Definition> = {}, path = id) =>
      instance.put(id, { url: `${receiver.url}/${path}`, ...more });
    // One of each: a run that follows, a run that waits for its turn, and one that waits for another.
    await put('plain');
    await put('notify', { cron: null, after: { scheduleId: '*', on: ['succeeded'] } });
    await put('serial', { overlap: 'queue' }, 'held');
    await instance.fire('serial');
    const turn = await instance.fire('serial');
    const [one, then] = await instance.accept(
      { ref: 'one', url: `${receiver.url}/one` },
      { dependsOn: ['one'], url: `${receiver.url}/then` },
    );
    const mendings = [
      await refuseRunsOf(store, 'notify'),
      await refuseToStart(store, turn.id),
      await refuseToStart(store, then?.id ?? ''),
    ];
    await store.rows(sql`UPDATE schedules SET overlap = 'skip' WHERE id = 'serial'`);
    await leaveRuns(store, 'plain', { count: 30 });
    await instance.start();
    await until(() => owed.shift() ?? null).then((answer) => answer());

    const putOff = () => instance.events.filter((event) => event.type === 'effectPutOff');
    await until(() => new Set(putOff().map(({ kind }) => kind)).size === 3 || null);
    await leaveRuns(store, 'plain', { count: 30, lateBySeconds: 100 });
    await until(async () => (await runsOf(store, 'plain')).every(({ status }) => status === 'succeeded') || null);
    const settled = (await runsOf(store)).filter(({ status }) => status !== 'waiting');
    expect(settled).toHaveLength(62);
    for (const run of settled) expect(run).toMatchObject({ status: 'succeeded', attempts: 1, recoveries: 0 });
    const delivered = () => receiver.arrivals.map(({ body }) => body.runId).sort();
    expect(delivered()).toEqual(settled.map(({ id }) => id).sort());
    const waiting = (await runsOf(store)).filter(({ status }) => status === 'waiting');
    expect(waiting.map(({ id }) => id).sort()).toEqual([turn.id, then?.id].sort());
    expect(settled.map(({ id }) => id)).toContain(one?.id);

    for (const mend of mendings) await mend();
    await until(() => owed.shift() ?? null).then((answer) => answer());
    // One that follows each end of the two schedules.
    const all = await until(async () => {
      const runs = await runsOf(store);
      return runs.length === 126 && runs.every(({ status }) => status === 'succeeded') ? runs : null;
    });
    expect(all.filter((run) => run.schedule_id === 'notify')).toHaveLength(62);
    expect(delivered()).toEqual(all.map(({ id }) => id).sort());
    await until(async () => (await store.rows(sql`SELECT FROM effects`)).length === 0 || null);
    const amiss = instance.events.filter(({ type }) => type === 'loopFailed' || type === 'settlementFenced');
    expect(amiss).toEqual([]);
  });
});

describe('a settler', () => {
  const ACCEPTED = {
    status: 'succeeded' as const,
    failures: 0,
    retryAt: null,
    executionId: null,
    statusCode: 200,
    body: '',
    error: null,
    doubt: null,
    leaseSeconds: null,
  };
  let settled: string[];

  function settlerOn(database: Database): Settler {
    const settler = createSettler({
      database,
      clock: systemClock,
      commits: { note: () => undefined },
      concurrency: 8,
      events: createEventBus(),
      wake: NO_WAKE,
    });
    onTestFinished(() => Promise.resolve(settler.stop()));
    return settler;
  }

  function add(settler: Settler, outcome: AttemptSettlement): void {
    const onSettled = () => settled.push(`${outcome.runId} ${outcome.outcome}`);
    settler.add(endedAttempt(outcome, { onSettled }));
  }

  /** Of a run that has no row: it is refused, as any other that comes too late. */
  const ofNoRun = (): AttemptSettlement => ({
    runId: randomUUID(),
    instanceId: randomUUID(),
    attempt: 1,
    ...made(Date.now(), 'rejected'),
    settlement: { ...ACCEPTED, status: 'failed' },
  });
  const made = (at: number, outcome: AttemptOutcome) => ({
    startedAt: at,
    finishedAt: at,
    latenessMs: 0,
    recovery: false,
    lookup: null,
    sent: true,
    outcome,
  });

  beforeEach(() => {
    settled = [];
  });

  it('has flushed once all that waited is written, however much comes in meanwhile', async () => {
    let streams = true;
    const settler = settlerOn({
      ...store.database,
      transaction: async (work, limitMs) => {
        const result = await store.database.transaction(work, limitMs);
        // At the end of no pass there is nothing left to write.
        if (streams) add(settler, ofNoRun());
        return result;
      },
    });
    const first = ofNoRun();
    add(settler, first);
    await settler.start();
    await until(() => settler.passes() > 2 || null);
    const before = ofNoRun();
    add(settler, before);
    await settler.flush();
    expect(settled).toContain(`${before.runId} rejected`);
    streams = false;
  });

  it('has flushed, in vain, when the database has failed for some passes', async () => {
    const settler = settlerOn({
      ...store.database,
      run: () => Promise.reject(new Error('no connection')),
      transaction: () => Promise.reject(new Error('no connection')),
    });
    add(settler, ofNoRun());
    await settler.start();
    await settler.flush();
    expect(settled).toEqual([]);
    expect(settler.passes()).toBeGreaterThan(1);
  });

  it('writes everything that it gets, also if one run is among it twice', async () => {
    const instance = await instanceOn(store.database);
    await instance.put('some', { url: 'http://127.0.0.1:1/' });
    await leaveRuns(store, 'some', { count: 3 });
    const claimed = await claimRuns(store, instance.id, 3);
    const settler = settlerOn(store.database);
    for (const run of claimed) {
      const again = { ...ACCEPTED, status: 'failed' as const, failures: 1, statusCode: 503 };
      const outcome = { ...made(run.dueAt, 'transient'), ...claimOf(run), settlement: again };
      add(settler, outcome);
      add(settler, { ...outcome });
    }
    const single = ofNoRun();
    add(settler, single);
    await settler.start();
    await until(() => settled.length === 7 || null);
    expect(await runsOf(store)).toMatchObject(claimed.map(() => ({ status: 'failed', failures: 1 })));
    const twice = claimed.flatMap(({ id }) => [`${id} transient`, `${id} transient`]);
    expect([...settled].sort()).toEqual([...twice, `${single.runId} rejected`].sort());
  });
});
