import { sql } from 'drizzle-orm';
import { describe, expect, it, onTestFinished } from 'vitest';
import type { Definition } from '../../src/core/schedules/schedule.ts';
import { findOrphans, takeOverIfStillClaimed } from '../../src/store/runs/claims/take-over-lost-claims.ts';
import { instanceOfTest, receiverOfTest, storeOfTest, eachTest, sqlOfTest } from '../support/of-test.ts';
import { endedRunsOf, leaveRuns, lockRuns, loseAnswerOf, runsOf, claimRuns } from '../support/pending-runs.ts';
import type { InstanceOptions, TestInstance } from '../support/pipeline.ts';
import type { Receiver } from '../support/receiver.ts';
import { deadInstance, startRecovery } from '../support/recovering.ts';
import { passingDatabaseClock } from '../support/clocks.ts';
import { until } from '../support/until.ts';
import { targetAt } from '../support/targets.ts';
import { startsFindNoRow } from '../support/refused.ts';

const HOUR_MS = 3_600_000;
const POLICY = { maxRecoveries: 3, maxRecoveryAgeSeconds: 86_400, lockTtlSeconds: 120 };

const store = eachTest(storeOfTest);

const instanceOf = (options: InstanceOptions = {}, database = store.database) =>
  instanceOfTest({ ...store, database }, options);

/** Its last heartbeat was too long ago. */
function lapse({ lease }: TestInstance): void {
  const { monotonic, wall } = lease.moment();
  lease.renew({ monotonic: monotonic - 2 * HOUR_MS, wall: wall - 2 * HOUR_MS });
}

describe('a claimed run that waits for its slot behind slow ones', () => {
  it.each(['is answered', 'is not answered'])(
    'is handed back after a while, for any instance with a slot, and is not lost; the handing back %s',
    async (how) => {
      const slow = await receiverOfTest(() => undefined);
      const quick = await receiverOfTest();
      const { databaseClock, pass } = passingDatabaseClock();
      const lossy = loseAnswerOf(store.database, 'returnClaimsIfMine');
      const isLost = how === 'is not answered';
      const busy = await instanceOf({ concurrency: 2, databaseClock }, (isLost ? lossy : store).database);
      await busy.put('slow', { url: slow.url, timeoutSeconds: 3600 });
      await busy.put('quick', { url: quick.url });
      await leaveRuns(store, 'slow', { count: 2 });
      await busy.start();
      await slow.arrived(2);
      await leaveRuns(store, 'quick');
      await until(async () => (await runsOf(store, 'quick'))[0]?.claimed_by === busy.id || null);
      const other = await instanceOf();
      await other.start();
      const recovery = startRecovery(store, busy, { lostAfterSeconds: 1 });
      onTestFinished(() => recovery.stop());

      pass(11_000);
      if (isLost) {
        await lossy.committed;
        lossy.lose();
      }
      expect(await endedRunsOf(store, 'quick')).toMatchObject([
        { status: 'succeeded', claimed_by: other.id, failures: 0, recoveries: 0, lost_at: null },
      ]);
      await until(() => busy.pipeline.dispatcher.claimed() === 2 || null);
      expect(quick.arrivals).toHaveLength(1);
      expect(recovery.eventsOf('runsTakenOver')).toEqual([]);
      expect(slow.arrivals).toHaveLength(2);
    },
  );

  it('keeps no other from being claimed and sent, if another transaction has it locked', async () => {
    const slow = await receiverOfTest(() => undefined);
    const quick = await receiverOfTest();
    const { databaseClock, pass } = passingDatabaseClock();
    const busy = await instanceOf({ concurrency: 8, concurrencyPerLane: 1, databaseClock });
    await busy.put('slow', { url: slow.url, timeoutSeconds: 3600 });
    await busy.put('waits', { url: slow.url });
    await busy.put('quick', { url: quick.url });
    await busy.start();
    await leaveRuns(store, 'slow');
    await slow.arrived(1);
    await leaveRuns(store, 'waits');
    await until(async () => (await runsOf(store, 'waits'))[0]?.claimed_by === busy.id || null);
    const unlock = await lockRuns(store, 'waits');
    onTestFinished(unlock);
    pass(11_000);
    const returned = () => busy.events.filter((event) => event.type === 'runsReturned' && event.count > 0);
    await until(() => busy.events.some(({ type }) => type === 'runsReturned') || null);
    await leaveRuns(store, 'quick');
    expect(await endedRunsOf(store, 'quick')).toMatchObject([{ status: 'succeeded' }]);
    expect(returned()).toEqual([]);
    expect(await runsOf(store, 'waits')).toMatchObject([{ claimed_by: busy.id, attempts: 1 }]);
    await unlock();
    await until(() => returned().length > 0 || null);
    expect(slow.arrivals).toHaveLength(1);
    expect(busy.events.filter(({ type }) => type === 'loopFailed')).toEqual([]);
  });

  it('is sent by the same instance, if that is the first to have a slot', async () => {
    const owed: (() => void)[] = [];
    const slow = await receiverOfTest((_, response) => owed.push(() => response.end('{}')));
    const quick = await receiverOfTest();
    const { databaseClock, pass } = passingDatabaseClock();
    const only = await instanceOf({ concurrency: 1, databaseClock });
    await only.put('slow', { url: slow.url });
    await only.put('quick', { url: quick.url });
    await leaveRuns(store, 'slow');
    await only.start();
    await slow.arrived(1);
    await leaveRuns(store, 'quick');
    await until(async () => (await runsOf(store, 'quick'))[0]?.claimed_by === only.id || null);
    pass(11_000);
    await until(() => only.events.some(({ type }) => type === 'runsReturned') || null);
    pass(-11_000);
    for (const answer of owed) answer();
    const [run] = await endedRunsOf(store, 'quick');
    expect(run).toMatchObject({ status: 'succeeded', failures: 0, recoveries: 0, lost_at: null });
    expect(run?.attempts).toBeGreaterThan(1);
    expect(quick.arrivals).toHaveLength(1);
  });
});

describe('at most once', () => {
  it('a run that another transaction keeps locked keeps no other from being started', async () => {
    const receiver = await receiverOfTest();
    const instance = await instanceOf();
    await instance.put('some', { url: receiver.url, delivery: 'atMostOnce' });
    await leaveRuns(store, 'some', { count: 3 });
    const lane = (await store.rows<{ lane: string }>(sql`SELECT DISTINCT lane FROM all_runs`))[0]?.lane ?? '';
    const claimed = await claimRuns(store, instance.id, 3);
    expect(claimed.map(() => instance.pipeline.dispatcher.reserve(lane))).toEqual([true, true, true]);
    const client = sqlOfTest(store.url);
    const locked = claimed[1]?.id ?? '';
    await client.begin(async (tx) => {
      await tx`SELECT FROM runs WHERE id = ${locked} FOR UPDATE`;
      instance.pipeline.dispatcher.accept(claimed);
      await instance.start();
      await receiver.arrived(2);
      expect(receiver.arrivals.map(({ body }) => body.runId)).not.toContain(locked);
    });
    const runs = await endedRunsOf(store);
    expect(runs.every(({ status, failures }) => status === 'succeeded' && failures === 0)).toBe(true);
    expect(receiver.arrivals.map(({ body }) => body.runId).sort()).toEqual(runs.map(({ id }) => id).sort());
  });
});

describe('a run whose first try ended unsent', () => {
  /** From when it was due to when it was sent, and what it says of it. */
  async function endedLate(): Promise<{ dueAt: number; latenessMs: number }> {
    const [run] = await endedRunsOf(store);
    expect(run).toMatchObject({ status: 'succeeded', failures: 0 });
    return { dueAt: Date.parse(run?.due_at ?? ''), latenessMs: Number(run?.lateness_ms) };
  }
  const dueAt = async () => Date.parse((await runsOf(store))[0]?.due_at ?? '');

  it('because its start could not be written stays due as it was, and its lateness is that of the sending', async () => {
    const receiver = await receiverOfTest();
    const instance = await instanceOf();
    await instance.put('late', { url: receiver.url, delivery: 'atMostOnce' });
    await leaveRuns(store, 'late', { lateBySeconds: 600 });
    const before = await dueAt();
    const mend = await startsFindNoRow(store);
    await instance.start();
    await until(async () => (await runsOf(store)).some(({ attempts }) => attempts > 1) || null);
    expect(receiver.arrivals).toEqual([]);
    await mend();
    const late = await endedLate();
    expect(late.dueAt).toBe(before);
    expect(late.latenessMs).toBeGreaterThanOrEqual(600_000);
    expect(instance.events.filter(({ type }) => type === 'runStarted')).toHaveLength(1);
  });

  it('because the lease ran out at the last moment does not count as started', async () => {
    const { databaseClock, pass } = passingDatabaseClock();
    const receiver = await receiverOfTest();
    const instance = await instanceOf({ databaseClock });
    // Between the question whether an earlier attempt arrived and the next attempt.
    const book = await receiverOfTest((_, response) => {
      if (book.arrivals.length === 1) lapse(instance);
      response.writeHead(404).end();
    });
    await instance.put('late', withLookup(receiver, book));
    await leaveRuns(store, 'late');
    const before = await dueAt();
    await store.rows(sql`UPDATE runs SET in_doubt_until = due_at`);
    await instance.start();
    await until(async () => (await runsOf(store))[0]?.attempts === 1 || null);
    await until(() => instance.pipeline.dispatcher.claimed() === 0 || null);
    expect(receiver.arrivals).toEqual([]);
    pass(HOUR_MS);
    instance.lease.renew(instance.lease.moment());
    const late = await endedLate();
    expect(late.dueAt).toBe(before);
    expect(late.latenessMs).toBeGreaterThanOrEqual(HOUR_MS);
    expect(instance.events.filter(({ type }) => type === 'runStarted')).toHaveLength(1);
    expect(receiver.arrivals).toHaveLength(1);
  });
});

describe('a question about an attempt in doubt', () => {
  it('that an expired lease refused, or left without an answer, does not count as asked', async () => {
    const [one, other] = [await receiverOfTest(), await receiverOfTest()];
    // One connection to the target: the second question waits in line while the lease runs out.
    const instance = await instanceOf({ concurrencyPerLane: 1 });
    const book = await receiverOfTest((_, response) => {
      if (book.arrivals.length > 5) {
        response.end('{"executionId":"known"}');
        return;
      }
      lapse(instance);
      response.writeHead(500).end();
    });
    await instance.put('one', withLookup(one, book, 'atMostOnce'));
    await instance.put('other', withLookup(other, book, 'atMostOnce'));
    await leaveRuns(store, 'one');
    await leaveRuns(store, 'other');
    await store.rows(sql`UPDATE runs SET in_doubt_until = due_at`);
    await instance.start();
    for (let asked = 1; asked <= 5; asked += 1) {
      await book.arrived(asked);
      await until(async () => (await runsOf(store)).every(({ claimed_by }) => claimed_by === null) || null);
      expect(await runsOf(store)).toMatchObject([
        { status: 'pending', lookups: 0 },
        { status: 'pending', lookups: 0 },
      ]);
      expect(book.arrivals).toHaveLength(asked);
      await until(() => instance.pipeline.dispatcher.claimed() === 0 || null);
      instance.lease.renew(instance.lease.moment());
    }
    expect((await endedRunsOf(store)).map(({ status }) => status)).toEqual(['succeeded', 'succeeded']);
    expect([one.arrivals.length, other.arrivals.length]).toEqual([0, 0]);
  });

  it('that was asked in vain still counts after its instance has died', async () => {
    const receiver = await receiverOfTest();
    const instance = await instanceOf();
    const book = await receiverOfTest((_, response) => void response.writeHead(500).end());
    await instance.put('one', withLookup(receiver, book, 'atMostOnce'));
    await leaveRuns(store, 'one', { claimedBy: await deadInstance(store) });
    await store.rows(sql`UPDATE runs SET in_doubt_until = due_at, lookups = 2`);
    const orphans = await store.database.run((db) => findOrphans(db, { limit: 10, besides: [] }));
    await store.database.transaction((tx) => takeOverIfStillClaimed(tx, orphans, POLICY, 'skipLocked'));
    expect(await runsOf(store)).toMatchObject([{ status: 'pending', recoveries: 1, lookups: 2 }]);
    await instance.start();
    expect(await endedRunsOf(store)).toMatchObject([{ status: 'unknown' }]);
    expect([book.arrivals.length, receiver.arrivals.length]).toEqual([1, 0]);
  });
});

function withLookup(
  receiver: Receiver,
  book: Receiver,
  delivery: Definition['delivery'] = 'atLeastOnce',
): Partial<Definition> & { url: string } {
  const { url } = receiver;
  const lookup = { url: `${book.url}/{{runId}}`, method: 'GET' as const, headers: {} };
  return {
    url,
    delivery,
    retry: { maxAttempts: 3, minBackoffSeconds: 0, maxBackoffSeconds: 0 },
    target: targetAt(url, { lookup }),
  };
}
