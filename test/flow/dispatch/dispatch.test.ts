import { randomUUID } from 'node:crypto';
import type { ServerResponse } from 'node:http';
import { sql } from 'drizzle-orm';
import { describe, expect, it } from 'vitest';
import { type AttemptSettlement, isPlainSuccess } from '../../../src/core/runs/attempts/settle-attempt.ts';
import type { ClaimedRun } from '../../../src/store/runs/claims/claimed-run.ts';
import { settleLockedRuns } from '../../../src/store/runs/ends/settle-locked.ts';
import { settlePlainIfClaimed } from '../../../src/store/runs/ends/settle-plain.ts';
import { eachTest, instanceOfTest, receiverOfTest, storeOfTest } from '../../support/of-test.ts';
import { claimRuns, heldTransaction, leaveRuns } from '../../support/pending-runs.ts';
import { createInstance } from '../../support/pipeline.ts';
import { type Receiver, startReceiver } from '../../support/receiver.ts';
import { until } from '../../support/until.ts';

const store = eachTest(storeOfTest);
const instance = eachTest(() => instanceOfTest(store, { concurrency: 8, concurrencyPerLane: 4 }));

const unclaimedRuns = (scheduleId: string, count: number, lateBySeconds = 1) =>
  leaveRuns(store, scheduleId, { count, lateBySeconds });

interface RunRow {
  id: string;
  schedule_id: string;
  status: string;
  attempts: number;
  failures: number;
  claimed_by: string | null;
  error: { kind: string; statusCode?: number } | null;
  execution_id: string | null;
  result_status_code: number | null;
  due_at: string;
  finished_at: string | null;
}

const runs = () => store.rows<RunRow>(sql`SELECT * FROM all_runs ORDER BY scheduled_for DESC`);
const ended = (count: number) =>
  until(async () => {
    const all = (await runs()).filter((run) => run.status !== 'pending');
    return all.length >= count ? all : null;
  });

describe('dispatch', () => {
  it.each(['ready', 'due'])(
    'a %s run whose row the database refuses to write stands before no other',
    async (state) => {
      const receiver = await receiverOfTest();
      await instance.put('one', { url: receiver.url });
      await unclaimedRuns('one', 20, 1);
      if (state === 'due') await store.rows(sql`UPDATE runs SET ready = false`);
      const [bad] = await store.rows<{ id: string }>(sql`UPDATE runs SET due_at = due_at - interval '1 h'
      WHERE id = (SELECT min(id::text)::uuid FROM runs) RETURNING id`);
      await store.rows(sql`CREATE FUNCTION refuse() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
      RAISE data_exception USING MESSAGE = 'this row is bad'; END $$`);
      await store.rows(sql`CREATE TRIGGER refuse BEFORE UPDATE ON runs FOR EACH ROW
      WHEN (OLD.id = ${sql.raw(`'${bad?.id ?? ''}'`)}) EXECUTE FUNCTION refuse()`);
      await instance.start();
      expect((await ended(19)).map(({ id }) => id)).not.toContain(bad?.id);
      expect(instance.events.filter(({ type }) => type === 'claimRefused')).toMatchObject([
        { runId: bad?.id, error: expect.stringContaining('this row is bad') as string },
      ]);
      // The loop works, and looks for others.
      await unclaimedRuns('one', 3, 1);
      await ended(22);
      expect(instance.events.filter(({ type }) => type === 'claimRefused')).toHaveLength(1);
    },
  );

  it('claims by priority, then by due time', async () => {
    const receiver = await receiverOfTest();
    await instance.put('low', { url: receiver.url, priority: 'low' });
    await instance.put('high', { url: receiver.url, priority: 'high' });
    await instance.put('normal', { url: receiver.url });
    for (const id of ['low', 'normal', 'high']) await unclaimedRuns(id, 3, id === 'low' ? 100 : 1);
    const claimed = await claimRuns(store, instance.id, 5);
    expect(claimed.map((run) => run.scheduleId).sort()).toEqual(['high', 'high', 'high', 'normal', 'normal']);
    const [oldest] = (await runs()).filter((run) => run.schedule_id === 'normal').slice(-1);
    expect(claimed.map((run) => run.id)).toContain(oldest?.id);
    expect(claimed.every((run) => run.attempt === 1)).toBe(true);
    expect(new Set(claimed.map((run) => `${run.scheduleId ?? ''} ${run.priority}`))).toEqual(
      new Set(['high 0', 'normal 1']),
    );
  });

  it('does not claim runs that this version cannot send', async () => {
    const receiver = await receiverOfTest();
    await instance.put('a', { url: receiver.url });
    await unclaimedRuns('a', 2);
    await store.rows(sql`UPDATE runs SET lane = 'carrierPigeon loft-7'`);
    await instance.put('b', { url: receiver.url });
    await unclaimedRuns('b', 1);
    await instance.start();
    expect((await ended(1)).map((run) => run.schedule_id)).toEqual(['b']);
    expect((await runs()).filter((run) => run.claimed_by === null)).toHaveLength(2);
  });

  it('leaves the fires of a kind that this version cannot send unclaimed when it records them', async () => {
    const receiver = await receiverOfTest();
    await instance.put('later-version', { cron: '* * * * * *', url: receiver.url });
    await store.rows(sql`UPDATE schedules SET lane = 'carrierPigeon loft-7'`);
    await instance.start();
    const [run] = await until(async () => {
      const all = await runs();
      return all.length > 0 ? all : null;
    });
    expect(run).toMatchObject({ status: 'pending', claimed_by: null, attempts: 0 });
  });

  it('sends runs with more payload than it keeps in memory', async () => {
    const receiver = await receiverOfTest();
    const wide = await createInstance(store, { concurrency: 100, concurrencyPerLane: 100 });
    const ids = Array.from({ length: 60 }, (_, index) => `large-${index}`);
    const payload = JSON.stringify('x'.repeat(600_000));
    for (let from = 0; from < ids.length; from += 10) {
      await wide.putMany(ids.slice(from, from + 10), { url: receiver.url, payload });
    }
    for (const id of ids) await unclaimedRuns(id, 1);
    await wide.start();
    const all = await ended(60);
    await wide.stop();
    expect(all.every((run) => run.status === 'succeeded' && run.failures === 0)).toBe(true);
  });

  it('keeps a hanging target within its share, while others go on', async () => {
    const hanging = await receiverOfTest(() => undefined);
    const quick = await receiverOfTest();
    await instance.put('hanging', { url: hanging.url, timeoutSeconds: 20 });
    await instance.put('quick', { url: quick.url });
    await unclaimedRuns('hanging', 60, 1000);
    await unclaimedRuns('quick', 60);
    await instance.start();
    await quick.arrived(60);
    // Until it is known to hang it has fewer.
    await hanging.arrived(4);
    await unclaimedRuns('quick', 60, 100);
    instance.pipeline.dispatcher.wake();
    await quick.arrived(120);
    expect(hanging.arrivals).toHaveLength(4);
    expect(instance.pipeline.dispatcher.inFlight()).toBeGreaterThanOrEqual(4);
  });

  it('never has more under way than its cap', async () => {
    let open = 0;
    let most = 0;
    const answer = (_: unknown, response: ServerResponse): void => {
      open += 1;
      most = Math.max(most, open);
      setTimeout(() => {
        open -= 1;
        response.end();
      }, 5);
    };
    const targets = await Promise.all([1, 2, 3, 4].map(() => receiverOfTest(answer)));
    for (const [index, target] of targets.entries()) {
      await instance.put(`t${index}`, { url: target.url });
      await unclaimedRuns(`t${index}`, 40);
    }
    await instance.start();
    await ended(160);
    expect(most).toBeLessThanOrEqual(8);
    // More than one lane may have: it is the whole that is full.
    expect(most).toBeGreaterThan(4);
    for (const target of targets) {
      expect(new Set(target.arrivals.map((arrival) => arrival.body.runId)).size).toBe(40);
      expect(target.arrivals).toHaveLength(40);
    }
  });

  it('sends the runs of two instances once each', async () => {
    const receiver = await receiverOfTest();
    await instance.put('shared', { url: receiver.url });
    await unclaimedRuns('shared', 500);
    const second = await createInstance(store, { concurrency: 8, concurrencyPerLane: 4 });
    await Promise.all([instance.start(), second.start()]);
    await ended(500);
    await second.stop();
    expect(receiver.arrivals).toHaveLength(500);
    expect(new Set(receiver.arrivals.map((arrival) => arrival.body.runId)).size).toBe(500);
  });

  it('leaves the backlog of a slow target to whichever instance has a slot', async () => {
    const slow = await receiverOfTest((_, response) => void setTimeout(() => response.end(), 700));
    await instance.put('slow', { url: slow.url });
    await unclaimedRuns('slow', 32);
    const second = await createInstance(store, { concurrency: 8, concurrencyPerLane: 4 });
    await Promise.all([instance.start(), second.start()]);
    await ended(32);
    const [shares] = await store.rows<{ least: number }>(
      sql`SELECT min(n)::int AS least FROM (SELECT count(*) AS n FROM all_runs GROUP BY claimed_by) s`,
    );
    await second.stop();
    expect(shares?.least).toBeGreaterThanOrEqual(8);
    expect(slow.arrivals).toHaveLength(32);
  });

  it('hands back what it claimed and did not send, when it stops', async () => {
    const hanging = await receiverOfTest(() => undefined);
    await instance.put('hanging', { url: hanging.url, timeoutSeconds: 30 });
    await unclaimedRuns('hanging', 30);
    await instance.start();
    await hanging.arrived(4);
    await instance.stop();
    const left = await runs();
    expect(left.every((run) => run.status === 'pending' && run.claimed_by === null && run.failures === 0)).toBe(true);
    expect(hanging.arrivals).toHaveLength(4);
  });

  it('hands back at once when it stops, whatever its present pass waits for', async () => {
    const hanging = await receiverOfTest(() => undefined);
    await instance.put('hanging', { url: hanging.url, timeoutSeconds: 30 });
    await instance.put('unread', { url: hanging.url.replace('127.0.0.1', 'localhost') });
    await unclaimedRuns('hanging', 30);
    await instance.start();
    await hanging.arrived(4);
    // Once it is held: else its own wait for the lock would be taken for that of the pass.
    const release = await heldTransaction(store.database, (tx) => tx.execute(sql`LOCK TABLE schedule_versions`));
    const waiting = () =>
      store.rows(sql`SELECT FROM pg_locks WHERE NOT granted AND relation = 'schedule_versions'::regclass`);
    await unclaimedRuns('unread', 1);
    instance.pipeline.dispatcher.wake();
    await until(async () => (await waiting()).length > 0 || null);

    const stopped = instance.stop();
    await until(async () => (await runs()).filter(({ claimed_by }) => claimed_by !== null).length <= 5 || null);
    expect(await waiting()).toHaveLength(1);
    await Promise.all([release(), stopped]);
    expect((await runs()).map(({ claimed_by }) => claimed_by)).toEqual(Array(31).fill(null));
    expect(hanging.arrivals).toHaveLength(4);
  });

  /** A run that a statement claims while the dispatcher stops. */
  async function lateClaim(): Promise<ClaimedRun[]> {
    const receiver = await receiverOfTest();
    await instance.put('late', { url: receiver.url });
    await unclaimedRuns('late', 1);
    const claimed = await claimRuns(store, instance.id, 1);
    expect(claimed.map(({ lane }) => instance.pipeline.dispatcher.reserve(lane))).toEqual([true]);
    return claimed;
  }

  it('hands back runs that it gets after it has stopped', async () => {
    const { dispatcher } = instance.pipeline;
    const claimed = await lateClaim();
    await dispatcher.stop();
    expect(dispatcher.claimed()).toBe(1);
    dispatcher.accept(claimed);
    await dispatcher.drained();
    expect(await runs()).toMatchObject([{ status: 'pending', claimed_by: null }]);
  });

  it('lets go of runs that it gets when there is no more time to hand them back', async () => {
    const { dispatcher } = instance.pipeline;
    const claimed = await lateClaim();
    await dispatcher.stop();
    dispatcher.abort();
    dispatcher.accept(claimed);
    await dispatcher.drained();
    expect(await runs()).toMatchObject([{ status: 'pending', claimed_by: instance.id }]);
  });
});

describe('an attempt', () => {
  async function one(answer: Parameters<typeof startReceiver>[0], given: object = {}): Promise<Receiver> {
    const receiver = await receiverOfTest(answer);
    const retry = { maxAttempts: 3, minBackoffSeconds: 0.1, maxBackoffSeconds: 0.3 };
    await instance.put('one', { url: receiver.url, retry, ...given });
    await unclaimedRuns('one', 1);
    await instance.start();
    return receiver;
  }
  const log = async () => {
    const [row] = await store.rows<{ log: unknown[] }>(sql`SELECT attempt_log AS log FROM history`);
    return row?.log;
  };

  it('that is answered 503 is made again under the same id until it succeeds, and each is in the log', async () => {
    let answers = 0;
    const receiver = await one((_, response) => {
      answers += 1;
      response.statusCode = answers < 3 ? 503 : 200;
      response.end('{"executionId": "job-7"}');
    });
    const [run] = await ended(1);
    expect(run).toMatchObject({
      status: 'succeeded',
      attempts: 3,
      failures: 2,
      error: null,
      execution_id: 'job-7',
    });
    expect(receiver.arrivals.map((arrival) => arrival.body.attempt)).toEqual([1, 2, 3]);
    expect(new Set(receiver.arrivals.map((arrival) => arrival.body.runId))).toEqual(new Set([run?.id]));
    expect(await log()).toMatchObject([
      { attempt: 1, outcome: 'transient', statusCode: 503 },
      { attempt: 2, outcome: 'transient', statusCode: 503 },
      { attempt: 3, outcome: 'accepted', statusCode: 200 },
    ]);
  });

  it('fails its run after maxAttempts failures', async () => {
    const receiver = await one((_, response) => {
      response.statusCode = 500;
      response.end('no');
    });
    const [run] = await ended(1);
    expect(run).toMatchObject({
      status: 'failed',
      attempts: 3,
      failures: 3,
      error: { kind: 'http', statusCode: 500 },
    });
    expect(receiver.arrivals).toHaveLength(3);
  });

  it('that is refused for good is not repeated', async () => {
    const receiver = await one((_, response) => {
      response.statusCode = 422;
      response.end('never');
    });
    const [run] = await ended(1);
    expect(run).toMatchObject({
      status: 'failed',
      attempts: 1,
      result_status_code: 422,
      error: { kind: 'http' },
    });
    expect(receiver.arrivals).toHaveLength(1);
  });

  it('waits as long as the target asks for, up to the cap', async () => {
    const before = Date.now();
    await one(
      (_, response) => {
        response.writeHead(429, { 'retry-after': '3600' }).end();
      },
      { retry: { maxAttempts: 3, minBackoffSeconds: 1, maxBackoffSeconds: 600 } },
    );
    const run = await until(async () => (await runs()).find((row) => row.failures === 1) ?? null);
    // By the clock of the database, which is not quite that of this machine.
    expect(Date.parse(run.due_at)).toBeGreaterThan(before + 599_000);
    expect(Date.parse(run.due_at)).toBeLessThan(Date.now() + 601_000);
  });

  it('whose run was planned under an older version uses that version', async () => {
    const old = await receiverOfTest();
    const young = await receiverOfTest();
    await instance.put('moved', { url: old.url, payload: '"old"' });
    await unclaimedRuns('moved', 1);
    await instance.put('moved', { url: young.url, payload: '"young"' });
    await instance.start();
    await ended(1);
    expect(old.arrivals.map((arrival) => arrival.body.payload)).toEqual(['old']);
    expect(young.arrivals).toEqual([]);
  });

  it('of a missing version fails visibly and delays no other', async () => {
    const receiver = await one(undefined, {});
    await ended(1);
    await leaveRuns(store, 'one', { lateBySeconds: 5, version: 99 });
    const run = await until(async () => (await runs()).find((row) => row.failures > 0) ?? null);
    expect(JSON.stringify(run.error)).toContain('version 99');
    expect(receiver.arrivals).toHaveLength(1);
  });
});

describe('settling', () => {
  const settlement = {
    status: 'failed' as const,
    failures: 1,
    retryAt: null,
    executionId: null,
    statusCode: 400,
    body: 'x',
    error: null,
    doubt: null,
    leaseSeconds: null,
  };

  async function claimedRun() {
    const receiver = await receiverOfTest();
    await instance.put('guarded', { url: receiver.url });
    await unclaimedRuns('guarded', 1);
    const [run] = await claimRuns(store, instance.id, 1);
    if (!run) throw new Error('nothing was claimed');
    const times = { startedAt: Date.now(), finishedAt: Date.now(), latenessMs: 0 };
    const { id: runId, scheduledFor, attempt } = run;
    const claim = { runId, scheduledFor, instanceId: instance.id, attempt };
    return { ...claim, ...times, recovery: false, lookup: null, sent: true };
  }
  /** As the settler does: what its first statement leaves takes a transaction. */
  const settle = async (outcome: AttemptSettlement, repeated = false) => {
    if (isPlainSuccess(outcome) && !repeated) {
      const plain = await store.database.run((db) => settlePlainIfClaimed(db, [outcome]));
      if (plain.settled(outcome.runId)) return [outcome.runId];
    }
    const { settled } = await store.database.transaction((tx) => settleLockedRuns(tx, [outcome], 'skipLocked'));
    return [...settled.keys()];
  };

  it('is refused once another instance has the claim, or this attempt is not the last', async () => {
    const claim = await claimedRun();
    const stranger = { ...claim, instanceId: randomUUID(), settlement, outcome: 'rejected' as const };
    const older = { ...claim, attempt: claim.attempt - 1, settlement, outcome: 'rejected' as const };
    expect([...(await settle(stranger)), ...(await settle(older))]).toEqual([]);
    expect(await runs()).toMatchObject([{ status: 'pending' }]);
    expect(await settle({ ...claim, settlement, outcome: 'rejected' })).toEqual([claim.runId]);
    expect(await runs()).toMatchObject([{ status: 'failed' }]);
  });

  it('takes a 2xx from any attempt, while the run is pending', async () => {
    const claim = await claimedRun();
    const accepted = { ...settlement, status: 'succeeded' as const, statusCode: 200 };
    const stranger = {
      ...claim,
      instanceId: randomUUID(),
      settlement: accepted,
      outcome: 'accepted' as const,
    };
    expect(await settle(stranger)).toEqual([claim.runId]);
    expect(await runs()).toMatchObject([{ status: 'succeeded' }]);
  });

  it('leaves a terminal status alone; a 2xx that comes then is only in the log', async () => {
    const claim = await claimedRun();
    await settle({ ...claim, settlement, outcome: 'rejected' });
    const accepted = { ...settlement, status: 'succeeded' as const, statusCode: 200 };
    await settle({ ...claim, attempt: 2, settlement: accepted, outcome: 'accepted' });
    expect(await runs()).toMatchObject([{ status: 'failed' }]);
    const [row] = await store.rows<{ log: { outcome: string }[] }>(sql`SELECT attempt_log AS log FROM history`);
    expect(row?.log.map(({ outcome }) => outcome)).toEqual(['rejected', 'acceptedLate']);
  });

  it('that is sent again, since its commit was not confirmed, counts as settled once', async () => {
    const claim = await claimedRun();
    const accepted = { ...settlement, status: 'succeeded' as const, statusCode: 200 };
    const outcome = { ...claim, settlement: accepted, outcome: 'accepted' as const };
    expect(await settle(outcome)).toEqual([claim.runId]);
    expect(await settle(outcome, true)).toEqual([claim.runId]);
    expect(await store.rows(sql`SELECT attempt_log FROM history`)).toEqual([{ attempt_log: null }]);
  });
});
