// @module-tag long
import { sql } from 'drizzle-orm';
import { beforeEach, describe, expect, it } from 'vitest';
import type { Definition } from '../../src/core/schedules/schedule.ts';
import { isDataRefused } from '../../src/postgres/errors.ts';
import { eachTest, FAR, instanceOfTest, receiverOfTest, storeOfTest } from '../support/of-test.ts';
import { endedRunsOf, leaveRuns, runsOf } from '../support/pending-runs.ts';
import { deadInstance, startRecovery } from '../support/recovering.ts';
import { until } from '../support/until.ts';
import { targetAt } from '../support/targets.ts';

/** More than any statement may take; after that, what was set aside is tried again. */
const LONG_MS = 60_000;
const MOST = 2_147_483_647;

const store = eachTest(() => storeOfTest(FAR));
/** Answers 503 at /bad, nothing at /cut, 200 elsewhere. */
const receiver = eachTest(() =>
  receiverOfTest(({ path }, response) => {
    if (path === '/cut') {
      response.destroy();
      return;
    }
    response.statusCode = path === '/bad' ? 503 : 200;
    response.end('{}');
  }),
);
const instance = eachTest(() => instanceOfTest(store));
let dead: string;

beforeEach(async () => {
  dead = await deadInstance(store);
});

/** One run of the schedule `bad`, and more of two that are well: all claimed by an instance that is gone, or unclaimed. */
async function leaveBadAndGood(
  claimedBy: string | null,
  bad: Partial<Definition> & { url?: string } = {},
): Promise<void> {
  await instance.put('bad', { url: `${receiver.url}/bad`, ...bad });
  await instance.put('good', { url: `${receiver.url}/good` });
  await instance.put('once', { url: `${receiver.url}/once`, delivery: 'atMostOnce' });
  // The oldest: all others come after it.
  await leaveRuns(store, 'bad', { claimedBy, lateBySeconds: 60 });
  for (const id of ['good', 'once']) await leaveRuns(store, id, { claimedBy, count: 3 });
}

async function othersSucceeded(): Promise<void> {
  for (const id of ['good', 'once']) {
    const runs = await endedRunsOf(store, id);
    expect(runs.map(({ status }) => status)).toEqual(['succeeded', 'succeeded', 'succeeded']);
  }
}

const bad = async () => {
  const [run] = await runsOf(store, 'bad');
  if (!run) throw new Error('there is no such run');
  return run;
};

/** The process does all its work still: what comes after is planned, sent and settled too. */
async function goesOn(): Promise<void> {
  await instance.put('after', {
    url: `${receiver.url}/after`,
    cron: '* * * * * *',
  });
  await until(async () => (await runsOf(store, 'after')).some(({ status }) => status === 'succeeded') || null);
}

describe('among lost runs, one', () => {
  it('whose row does not say since when it is claimed goes on as the others do', async () => {
    await leaveBadAndGood(dead, { url: `${receiver.url}/good` });
    await store.rows(sql`UPDATE runs SET claimed_at = NULL WHERE schedule_id = 'bad'`);
    await instance.start();
    const recovery = startRecovery(store, instance);
    const runs = await endedRunsOf(store);
    await recovery.stop();
    expect(runs.map(({ status, recoveries }) => `${status} ${recoveries}`)).toEqual(runs.map(() => 'succeeded 1'));
    expect(runs).toHaveLength(7);
    expect(recovery.eventsOf('loopFailed')).toEqual([]);
  });

  it.each(['22003', '23514', '54000'])(
    'that cannot be taken over (SQLSTATE %s) is reported, and the others go on',
    async (code) => {
      await leaveBadAndGood(dead);
      await store.rows(
        sql.raw(`CREATE FUNCTION refuse() RETURNS trigger LANGUAGE plpgsql
        AS $$ BEGIN RAISE 'not this one' USING ERRCODE = '${code}'; END $$`),
      );
      await store.rows(sql`CREATE TRIGGER refuse BEFORE UPDATE ON runs FOR EACH ROW
        WHEN (OLD.schedule_id = 'bad') EXECUTE FUNCTION refuse()`);
      await instance.start();
      const recovery = startRecovery(store, instance);
      await othersSucceeded();
      const { id } = await bad();
      expect(recovery.eventsOf('takeOverRefused')).toContainEqual({
        type: 'takeOverRefused',
        runId: id,
        error: expect.stringContaining('not this one') as string,
      });
      expect(recovery.eventsOf('loopFailed')).toEqual([]);
      await store.rows(sql`DROP TRIGGER refuse ON runs`);
      await recovery.waits(LONG_MS);
      await until(async () => (await bad()).recoveries > 0 || null);
      await recovery.stop();
      await goesOn();
    },
  );

  it('with as many attempts as can be counted is left where it is, and the others go on', async () => {
    await leaveBadAndGood(dead);
    await store.rows(sql`UPDATE runs SET attempts = ${MOST} WHERE schedule_id = 'bad'`);
    await instance.start();
    const recovery = startRecovery(store, instance);
    await othersSucceeded();
    await recovery.stop();
    expect(await bad()).toMatchObject({ attempts: MOST, recoveries: 1, claimed_by: null });
    expect(recovery.eventsOf('loopFailed')).toEqual([]);
    await goesOn();
  });

  it('with as many recoveries as can be counted is given up, and the others go on', async () => {
    await leaveBadAndGood(dead);
    await store.rows(sql`UPDATE runs SET recoveries = ${MOST} WHERE schedule_id = 'bad'`);
    await instance.start();
    const recovery = startRecovery(store, instance);
    await othersSucceeded();
    await recovery.stop();
    expect(await bad()).toMatchObject({ status: 'abandoned', reason: 'recoveries' });
    expect(recovery.eventsOf('loopFailed')).toEqual([]);
  });
});

describe('among due runs, one', () => {
  const loopsFailed = () => instance.events.filter(({ type }) => type === 'loopFailed');

  it.each([2_000_000_000, MOST])('with %i attempts is not claimed, and the others are', async (attempts) => {
    await leaveBadAndGood(null);
    await store.rows(sql`UPDATE runs SET attempts = ${attempts} WHERE schedule_id = 'bad'`);
    await instance.start();
    await othersSucceeded();
    expect(await bad()).toMatchObject({ status: 'pending', attempts, claimed_by: null });
    expect(loopsFailed()).toEqual([]);
    await goesOn();
  });

  it.each([1e300, 1e15])(
    'whose retries are to wait for %f s waits for as long as one can, and the others go on',
    async (seconds) => {
      const retry = { maxAttempts: 5, minBackoffSeconds: seconds, maxBackoffSeconds: seconds };
      await leaveBadAndGood(null, { retry });
      await instance.start();
      await othersSucceeded();
      const run = await until(async () => ((await bad()).failures > 0 ? await bad() : null));
      expect(run).toMatchObject({ status: 'pending', claimed_by: null, attempts: 1, failures: 1 });
      expect(Number.isFinite(Date.parse(run.due_at))).toBe(true);
      expect(Date.parse(run.due_at)).toBeGreaterThan(Date.parse(run.scheduled_for) + 86_400_000);
      expect(loopsFailed()).toEqual([]);
      await goesOn();
    },
  );

  it.each([
    ['whose retries are to wait for less than nothing', { minBackoffSeconds: -1e300, maxBackoffSeconds: -1e300 }],
    ['whose failures are as many as can be counted', {}],
  ])('%s cannot be settled, is told of and given up in the end, and the others go on', async (what, retry) => {
    await leaveBadAndGood(null, {
      retry: { maxAttempts: 5, minBackoffSeconds: 0, maxBackoffSeconds: 0, ...retry },
    });
    const failures = what.includes('failures') ? MOST : 0;
    await store.rows(sql`UPDATE runs SET failures = ${failures} WHERE schedule_id = 'bad'`);
    await instance.start();
    await othersSucceeded();
    const { id } = await bad();
    await until(() => instance.events.some((event) => event.type === 'settlementFenced') || null);
    expect(instance.events).toContainEqual(expect.objectContaining({ type: 'settlementRefused', runId: id }));
    await goesOn();
    // Its claim is left in the row, for recovery to find, as often as any other.
    const recovery = startRecovery(store, instance);
    await until(async () => {
      await recovery.waits(LONG_MS);
      return (await bad()).status !== 'pending' || null;
    });
    await recovery.stop();
    expect(await bad()).toMatchObject({ status: 'abandoned', reason: 'recoveries', recoveries: 3 });
    expect([...recovery.eventsOf('loopFailed'), ...loopsFailed()]).toEqual([]);
  });

  it('whose attempt may take 1e300 s, and is then in doubt, is sent once, and the others go on', async () => {
    const target = targetAt(`${receiver.url}/cut`, {
      lookup: { url: `${receiver.url}/lookup`, method: 'GET' as const, headers: {} },
    });
    await leaveBadAndGood(null, { delivery: 'atMostOnce', timeoutSeconds: 1e300, target });
    await instance.start();
    await othersSucceeded();
    await until(() => instance.events.some((event) => event.type === 'settlementFenced') || null);
    const recovery = startRecovery(store, instance);
    await recovery.waits(LONG_MS);
    await until(async () => (await bad()).recoveries > 0 || null);
    await recovery.stop();
    // Its target is asked at once, and says that it has it.
    expect(await endedRunsOf(store, 'bad')).toMatchObject([{ status: 'succeeded', recoveries: 1 }]);
    expect([...recovery.eventsOf('loopFailed'), ...loopsFailed()]).toEqual([]);
    await goesOn();
    expect(receiver.arrivals.filter(({ path }) => path === '/cut')).toHaveLength(1);
  });
});

describe('the table of runs', () => {
  it.each(['scheduled_for', 'due_at', 'created_at', 'claimed_at', 'handoff_started_at', 'in_doubt_until'])(
    'takes no infinite instant as %s',
    async (column) => {
      await instance.put('some', { url: receiver.url });
      await leaveRuns(store, 'some', { claimedBy: dead });
      const before = await runsOf(store);
      for (const instant of ['infinity', '-infinity']) {
        const written = store.rows(sql`UPDATE runs SET ${sql.identifier(column)} = ${instant}`);
        await expect(written).rejects.toMatchObject({ cause: { code: '23514' } });
        expect(isDataRefused(await written.catch((error: unknown) => error))).toBe(true);
      }
      expect(await runsOf(store)).toEqual(before);
    },
  );
});
