import { sql } from 'drizzle-orm';
import { beforeEach, expect, it } from 'vitest';
import type { After } from '../../../src/core/timing/timing.ts';
import { writeLateEffects } from '../../../src/store/effects/insert-effects.ts';
import { findSchedule } from '../../../src/store/schedules/search/find-schedules.ts';
import { SCHEDULE_CHECKS } from '../../../src/store/verify/schedule-checks.ts';
import { instanceOfTest, receiverOfTest, storeOfTest } from '../../support/of-test.ts';
import type { Store, TestInstance } from '../../support/pipeline.ts';
import type { Receiver } from '../../support/receiver.ts';
import { until } from '../../support/until.ts';

let store: Store;
let instance: TestInstance;
let receiver: Receiver;

beforeEach(async () => {
  store = await storeOfTest();
  instance = await instanceOfTest(store);
  receiver = await receiverOfTest(({ path }, response) => {
    response.statusCode = path.startsWith('/fails') ? 400 : 200;
    response.end('{"executionId":"e-1"}');
  });
});

const put = (id: string, more: object = {}) => instance.put(id, { url: `${receiver.url}/${id}`, ...more });
const follow = (id: string, scheduleId: string, on: After['on'] = ['succeeded'], more: object = {}) =>
  put(id, { cron: null, after: { scheduleId, on }, ...more });

interface RunRow {
  schedule_id: string;
  parent: string | null;
  status: string;
  left: number;
}

/** `FOLLOWER of PARENT` of all runs that followed, once so many runs have ended and nothing is left to follow. */
const followed = (count: number) =>
  until(async () => {
    const found = await store.rows<RunRow>(
      sql`SELECT r.schedule_id, p.schedule_id AS parent, r.status, (SELECT count(*) FROM effects)::int AS left
        FROM all_runs r LEFT JOIN all_runs p ON p.id = r.parent_run_id`,
    );
    const isOver = found.every(({ status, left }) => !/pending|waiting/.test(status) && left === 0);
    if (found.length < count || !isOver) return null;
    return found
      .flatMap((run) => (run.parent === null ? [] : [`${run.schedule_id} of ${run.parent}`]))
      .sort();
  });

it('each run of a schedule whose id begins so is followed, and no run of another', async () => {
  for (const id of ['billing.a', 'billing.b', 'billing', 'billinga', 'ops.a']) await put(id);
  await follow('watch-billing', 'billing.*');
  await follow('watch-b', 'b*');
  await follow('watch-one', 'billing.a*');
  await follow('watch-all', '*');
  await follow('watch-none', 'billing.a.*');
  await instance.start();
  for (const id of ['billing.a', 'billing.b', 'billing', 'billinga', 'ops.a']) await instance.fire(id);
  const expected = [
    ...['billing.a', 'billing.b'].map((id) => `watch-billing of ${id}`),
    ...['billing.a', 'billing.b', 'billing', 'billinga'].map((id) => `watch-b of ${id}`),
    'watch-one of billing.a',
    ...['billing.a', 'billing.b', 'billing', 'billinga', 'ops.a'].map((id) => `watch-all of ${id}`),
  ];
  expect(await followed(5 + expected.length)).toEqual(expected.sort());
});

it('only how the run ended decides, also where it failed or was missed', async () => {
  await put('fails.a');
  await put('works.a');
  await follow('of-failed', 'fails.*', ['failed']);
  await follow('of-succeeded', 'fails.*', ['succeeded']);
  await follow('of-works', 'works.*', ['failed']);
  await instance.start();
  await instance.fire('fails.a');
  await instance.fire('works.a');
  expect(await followed(3)).toEqual(['of-failed of fails.a']);
});

it('a schedule that follows is not followed by one of its prefix, so that no cycle can close', async () => {
  await put('team.parent');
  await follow('team.child', 'team.parent');
  // It has the prefix itself.
  await follow('team.watch', 'team.*');
  await follow('team.watch-too', 'team.*');
  await follow('of-watch', 'team.watch');
  await instance.start();
  await instance.fire('team.parent');
  expect(await followed(5)).toEqual([
    'of-watch of team.watch',
    'team.child of team.parent',
    'team.watch of team.parent',
    'team.watch-too of team.parent',
  ]);
});

it('an edit moves it to another prefix, and a schedule of a prefix can be deleted', async () => {
  await put('a.one');
  await put('b.one');
  await follow('watch', 'a.*');
  expect((await store.database.run((db) => findSchedule(db, 'watch')))?.status).toBe('active');
  const check = SCHEDULE_CHECKS.find(({ name }) => name === 'followedSchedulesExist');
  expect(check && (await store.rows(check.found))).toEqual([]);
  await follow('watch', 'b.*');
  await instance.start();
  await instance.fire('a.one');
  await instance.fire('b.one');
  expect(await followed(3)).toEqual(['watch of b.one']);
  expect([await instance.remove('a.one'), await instance.remove('watch')]).toEqual([true, true]);
});

it('many follow one prefix, each once, in parts', async () => {
  await put('team.parent');
  await instance.putMany(
    Array.from({ length: 230 }, (_, n) => `watch-${n}`),
    { url: `${receiver.url}/watch`, cron: null, after: { scheduleId: 'team.*', on: ['succeeded'] } },
  );
  await instance.start();
  await instance.fire('team.parent');
  const runs = await followed(231);
  expect([runs.length, new Set(runs).size]).toEqual([230, 230]);
});

it('it is told of a lateness too', async () => {
  const { uid, version } = await put('team.slow');
  const other = await put('other');
  await follow('of-late', 'team.*', ['late']);
  const lateSince = Date.now() - 1000;
  const late = [
    { uid, id: 'team.slow', version, lateSince },
    { uid: other.uid, id: 'other', version: other.version, lateSince },
  ];
  expect(await store.database.transaction((tx) => writeLateEffects(tx, late))).toBe(1);
  await instance.start();
  const [run] = await until(async () => {
    const found = await store.rows<RunRow>(sql`SELECT * FROM all_runs WHERE status = 'succeeded'`);
    return found.length > 0 ? found : null;
  });
  expect(run?.schedule_id).toBe('of-late');
});
