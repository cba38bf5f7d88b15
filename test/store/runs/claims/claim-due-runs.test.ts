import { sql } from 'drizzle-orm';
import { beforeEach, expect, it } from 'vitest';
import { claimDueRuns } from '../../../../src/store/runs/claims/claim-due-runs.ts';
import { NO_ROOM } from '../../../../src/store/runs/claims/claims.ts';
import { instanceOfTest, storeOfTest } from '../../../support/of-test.ts';
import { runIdAt } from '../../../support/pending-runs.ts';
import type { Store, TestInstance } from '../../../support/pipeline.ts';

let store: Store;
let instance: TestInstance;

beforeEach(async () => {
  store = await storeOfTest();
  instance = await instanceOfTest(store);
});

interface Recorded {
  lane?: string;
  dueInSeconds?: number;
  ready?: boolean;
  attempts?: number;
  limitId?: string | null;
}

async function record(count: number, recorded: Recorded = {}): Promise<void> {
  const { lane = 'http http://a', dueInSeconds = -5, ready = false, attempts = 0, limitId = null } = recorded;
  await store.rows(sql`INSERT INTO runs (id, scheduled_for, schedule_uid, schedule_version, schedule_id, trigger, status, lane, priority,
      due_at, ready, limit_id, attempts, created_at, updated_at)
    SELECT ${runIdAt(sql`at`)}, at, gen_random_uuid(), 1, '', 'api', 'pending', ${lane}, 1, at, ${ready}, ${limitId}, ${attempts}, at, at
    FROM generate_series(1, ${count}) AS i, LATERAL (SELECT now() + make_interval(secs => ${dueInSeconds}) AS at) AS t`);
}

const request = () => ({
  instanceId: instance.id,
  limit: 100,
  freeByLane: new Map<string, number>(),
  freePerLane: 10,
  targetTypes: ['http'],
  atMost: 50,
});
const take = (differing: Partial<ReturnType<typeof request>> = {}) =>
  store.database.run((db) => claimDueRuns(db, { ...request(), ...differing }));
/** By lane: how many are claimed, ready, and neither. */
const states = async () => {
  const rows = await store.rows<{ lane: string; states: string }>(sql`SELECT lane, concat_ws(', ',
      count(*) FILTER (WHERE claimed_by IS NOT NULL), count(*) FILTER (WHERE claimed_by IS NULL AND ready),
      count(*) FILTER (WHERE claimed_by IS NULL AND NOT ready)) AS states
    FROM runs GROUP BY lane`);
  return Object.fromEntries(rows.map((row) => [row.lane, row.states]));
};

it('claims the runs that have come due, and counts the attempt; says when the next one comes due', async () => {
  await record(2, { attempts: 1 });
  await record(1, { dueInSeconds: 3_600 });
  const due = await take();
  expect(due.claimed.map(({ attempt, lane, instanceId }) => ({ attempt, lane, instanceId }))).toEqual(
    Array(2).fill({ attempt: 2, lane: 'http http://a', instanceId: instance.id }),
  );
  expect(due).toMatchObject({ count: 2, blocked: 0, toPull: false });
  expect(due.msUntilNextDue).toBeGreaterThan(3_000_000);
  expect(await states()).toEqual({ 'http http://a': '2, 0, 1' });
  expect(await take()).toMatchObject({ claimed: [], count: 0 });
});

it('claims none of a lane that has no room for all of them, and says which are blocked; those of others are claimed', async () => {
  await record(4, { lane: 'http http://full' });
  await record(4, { lane: 'http http://fuller' });
  await record(4, { lane: 'http http://free' });
  await record(4, { lane: 'sftp other' });
  const freeByLane = new Map([
    ['http http://full', 3],
    ['http http://fuller', 0],
  ]);
  expect(await take({ freeByLane })).toMatchObject({ count: 16, blocked: 12, claimed: { length: 4 } });
  expect(await states()).toEqual({
    'http http://full': '0, 4, 0',
    'http http://fuller': '0, 4, 0',
    'http http://free': '4, 0, 0',
    'sftp other': '0, 4, 0',
  });
});

it('claims none of a lane in which others wait already: these may be more urgent', async () => {
  await record(1, { ready: true });
  await record(2);
  expect(await take()).toMatchObject({ count: 2, blocked: 0, claimed: [] });
  expect(await states()).toEqual({ 'http http://a': '0, 3, 0' });
});

it('claims none where there is not room for all: then priorities decide among what is ready', async () => {
  await record(3);
  expect(await take({ limit: 2 })).toMatchObject({ count: 3, blocked: 3, claimed: [] });
  expect(await states()).toEqual({ 'http http://a': '0, 3, 0' });
});

it('claims nothing for an instance that was declared dead, nor while maintenance holds runs', async () => {
  await record(1, { lane: 'http http://a' });
  await store.rows(sql`UPDATE instances SET died_at = now() WHERE id = ${instance.id}`);
  expect(await take()).toMatchObject({ count: 1, blocked: 1, claimed: [] });
  await store.rows(sql`UPDATE instances SET died_at = NULL WHERE id = ${instance.id}`);
  await store.rows(sql`UPDATE installation SET mode = 'holds', mode_since = now()`);
  await record(1, { lane: 'http http://b' });
  expect(await take()).toMatchObject({ count: 1, blocked: 1, claimed: [] });
});

it('says that workers may pull what is ready now; leaves runs with a limit to admission', async () => {
  await record(1, { lane: 'pull q' });
  await record(1, { limitId: 'l' });
  expect(await take({ ...NO_ROOM, targetTypes: [] })).toMatchObject({ count: 1, toPull: true, claimed: [] });
  expect(await states()).toEqual({ 'pull q': '0, 1, 0', 'http http://a': '0, 0, 1' });
});

it('takes at most so many, the longest due first', async () => {
  await record(3, { lane: 'http http://later', dueInSeconds: -1 });
  await record(3, { lane: 'http http://first', dueInSeconds: -9 });
  expect(await take({ atMost: 4 })).toMatchObject({ count: 4, claimed: { length: 4 } });
  expect(await states()).toEqual({ 'http http://first': '3, 0, 0', 'http http://later': '1, 0, 2' });
});
