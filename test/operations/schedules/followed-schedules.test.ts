import { sql } from 'drizzle-orm';
import { beforeEach, describe, expect, it } from 'vitest';
import type { After } from '../../../src/core/timing/timing.ts';
import { scheduledForOf } from '../../../src/core/runs/run.ts';
import { CannotFollow } from '../../../src/operations/schedules/check-names.ts';
import { OperationRefused } from '../../../src/operations/operation-refused.ts';
import { writeLateEffects } from '../../../src/store/effects/insert-effects.ts';
import { findSchedule } from '../../../src/store/schedules/search/find-schedules.ts';
import { SCHEDULE_CHECKS } from '../../../src/store/verify/schedule-checks.ts';
import { instanceOfTest, receiverOfTest, storeOfTest } from '../../support/of-test.ts';
import type { Store, TestInstance } from '../../support/pipeline.ts';
import { type Receiver, startReceiver } from '../../support/receiver.ts';
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

interface RunRow {
  id: string;
  schedule_id: string;
  status: string;
  trigger: string;
  scheduled_for: string;
  finished_at: string;
  parent_run_id: string | null;
}

const runs = () => store.rows<RunRow>(sql`SELECT * FROM all_runs ORDER BY created_at, id`);
const runsOf = async (id: string) => (await runs()).filter((run) => run.schedule_id === id);
const put = (id: string, more: object = {}) => instance.put(id, { url: `${receiver.url}/${id}`, ...more });
const follow = (id: string, after: Partial<After> & { scheduleId: string }, more: object = {}) =>
  put(id, { cron: null, after: { on: ['succeeded'], ...after }, ...more });
/** So many runs, which have all ended, and nothing is left to follow. Asked in one statement: an end is written with what is to follow. */
const settled = (count: number) =>
  until(async () => {
    const found = await store.rows<RunRow & { left: number }>(
      sql`SELECT *, (SELECT count(*) FROM effects)::int AS left FROM all_runs ORDER BY created_at, id`,
    );
    const isOver = found.every(({ status, left }) => !/pending|waiting/.test(status) && left === 0);
    return found.length === count && isOver ? found : null;
  });

describe('a schedule that follows another', () => {
  it('has one run for each end that it asks for, with that run and its outcome', async () => {
    await put('parent');
    await follow('child', { scheduleId: 'parent' }, { payload: '{"n":1.50}' });
    await instance.start();
    const parent = await instance.fire('parent');
    await settled(2);
    const [child] = await runsOf('child');
    const [ended] = await runsOf('parent');
    expect(child).toMatchObject({ trigger: 'after', parent_run_id: parent.id, status: 'succeeded' });
    expect(child?.scheduled_for).toBe(ended?.finished_at);
    expect(scheduledForOf(child?.id ?? '')).toBe(Date.parse(ended?.finished_at ?? ''));
    expect(child?.id).toMatch(/^[\da-f]{8}-[\da-f]{4}-7[\da-f]{3}-[89ab][\da-f]{3}-[\da-f]{12}$/);
    const arrival = receiver.arrivals.find(({ path }) => path === '/child');
    expect(arrival?.body).toMatchObject({
      runName: null,
      trigger: 'after',
      dependencies: [
        {
          runId: parent.id,
          status: 'succeeded',
          error: null,
          result: { statusCode: 200, body: '{"executionId":"e-1"}' },
        },
      ],
      payload: { n: 1.5 },
    });
    expect(receiver.arrivals.find(({ path }) => path === '/parent')?.body).not.toHaveProperty('dependencies');
  });

  it('has none for ends that it does not ask for', async () => {
    await put('fails');
    await follow('on-success', { scheduleId: 'fails' });
    await follow('on-failure', { scheduleId: 'fails', on: ['failed', 'unknown'] });
    await instance.start();
    await instance.fire('fails');
    await settled(2);
    expect(await runsOf('on-success')).toEqual([]);
    expect(await runsOf('on-failure')).toHaveLength(1);
  });

  it('can have followers itself', async () => {
    await put('a');
    await follow('b', { scheduleId: 'a' });
    await follow('c', { scheduleId: 'b' });
    await instance.start();
    await instance.fire('a');
    const [a, b, c] = await settled(3);
    expect([a, b, c].map((run) => run?.schedule_id)).toEqual(['a', 'b', 'c']);
    expect(c?.parent_run_id).toBe(b?.id);
  });

  it('follows every schedule except `after` schedules, with "*"', async () => {
    await put('fails');
    await put('other');
    await follow('fails-too', { scheduleId: 'other' });
    await follow('notify', { scheduleId: '*', on: ['failed'] });
    await instance.start();
    await instance.fire('fails');
    await instance.fire('other');
    // The end of `fails-too` is one of a schedule that follows: no schedule follows it, and there is no endless cycle.
    await settled(4);
    const notified = await runsOf('notify');
    expect(notified.map((run) => run.parent_run_id)).toEqual((await runsOf('fails')).map(({ id }) => id));
  });

  it('rests while it is paused, and outside of its time', async () => {
    await put('parent');
    await follow('paused', { scheduleId: 'parent' }, { enabled: false });
    await follow('early', { scheduleId: 'parent' }, { startAt: Date.now() + 3_600_000 });
    await follow('late', { scheduleId: 'parent' }, { endAt: Date.now() - 1000 });
    await follow('now', { scheduleId: 'parent' }, { startAt: Date.now() - 60_000, endAt: Date.now() + 3_600_000 });
    await instance.start();
    await instance.fire('parent');
    expect((await settled(2)).map((run) => run.schedule_id)).toEqual(['parent', 'now']);
  });

  it('is active, and has no fire times of its own', async () => {
    await put('parent');
    expect(await follow('child', { scheduleId: 'parent' })).toMatchObject({
      status: 'active',
      nextFireAt: null,
    });
  });

  it('starts its runs one at a time, where they must not overlap', async () => {
    await put('parent');
    let answer: (() => void) | undefined;
    const slow = await startReceiver((_, response) => (answer = () => response.end('{}')));
    await instance.put('child', {
      url: slow.url,
      cron: null,
      after: { scheduleId: 'parent', on: ['succeeded'] },
      overlap: 'skip',
    });
    await instance.start();
    await instance.fire('parent');
    await slow.arrived(1);
    await instance.fire('parent');
    await until(async () => ((await runsOf('child')).some(({ status }) => status === 'skipped') ? true : null));
    answer?.();
    await settled(4);
    expect((await runsOf('child')).map(({ status }) => status).sort()).toEqual(['skipped', 'succeeded']);
    await slow.close();
  });
});

describe('ends without an attempt have followers too:', () => {
  it('a run skipped because it was missed', async () => {
    await put('parent', { cron: '* * * * *', catchUp: 'skip', graceSeconds: 0 });
    await follow('child', { scheduleId: 'parent', on: ['skipped'] });
    await store.rows(sql`UPDATE schedules SET next_occurrence_at = next_occurrence_at - interval '10 minutes',
      next_fire_at = next_fire_at - interval '10 minutes' WHERE id = 'parent'`);
    await instance.start();
    await until(async () => ((await runsOf('child')).length === 1 ? true : null));
    const [skipped] = await runsOf('parent');
    expect(skipped?.status).toBe('skipped');
    expect((await runsOf('child'))[0]?.parent_run_id).toBe(skipped?.id);
  });

  it('a run skipped, or replaced, because of overlap', async () => {
    const stuck = await startReceiver(() => undefined);
    await instance.put('skips', {
      url: stuck.url,
      overlap: 'skip',
      retry: { maxAttempts: 1, minBackoffSeconds: 0, maxBackoffSeconds: 0 },
    });
    await instance.put('replaces', {
      url: stuck.url,
      overlap: 'replace',
      retry: { maxAttempts: 1, minBackoffSeconds: 0, maxBackoffSeconds: 0 },
    });
    await follow('child', { scheduleId: '*', on: ['skipped', 'cancelled'] });
    await instance.start();
    for (const id of ['skips', 'skips', 'replaces', 'replaces']) await instance.fire(id);
    await until(async () => ((await runsOf('child')).length === 2 ? true : null));
    const ends = (await runs()).filter(({ status }) => status === 'skipped' || status === 'cancelled');
    expect((await runsOf('child')).map((run) => run.parent_run_id).sort()).toEqual(ends.map(({ id }) => id).sort());
    await stuck.close();
    await until(async () => ((await runs()).every(({ status }) => status !== 'pending') ? true : null));
  });

  it('a run abandoned because its schedule is deleted', async () => {
    await put('parent');
    await follow('child', { scheduleId: '*', on: ['abandoned'] });
    const run = await instance.fire('parent');
    await instance.remove('parent');
    await instance.pipeline.effects.start();
    await until(async () => ((await runsOf('child')).length === 1 ? true : null));
    expect(await runsOf('child')).toMatchObject([{ parent_run_id: run.id, trigger: 'after', status: 'pending' }]);
  });
});

describe('a schedule that cannot be followed is refused:', () => {
  const faultsOf = async (work: Promise<unknown>) => {
    const error = await work.then(
      () => null,
      (thrown: unknown) => thrown,
    );
    if (!(error instanceof CannotFollow)) throw new Error('it was not refused', { cause: error });
    return error.faults;
  };

  it('a missing one', async () => {
    expect(await faultsOf(follow('child', { scheduleId: 'nobody' }))).toEqual([
      { scheduleId: 'child', message: 'names a schedule that does not exist: nobody' },
    ]);
  });

  it('itself, and its own followers, however far around', async () => {
    expect(await faultsOf(follow('self', { scheduleId: 'self' }))).toHaveLength(1);
    await put('a');
    await follow('b', { scheduleId: 'a' });
    await follow('c', { scheduleId: 'b' });
    expect(await faultsOf(follow('a', { scheduleId: 'c' }))).toEqual([
      { scheduleId: 'a', message: expect.stringContaining('c follows this schedule') as string },
    ]);
    expect(await store.rows(sql`SELECT version FROM schedules WHERE id = 'a'`)).toEqual([{ version: 1 }]);
  });

  it('a cycle that two edits would close together', async () => {
    for (const id of ['a', 'c']) await put(id);
    await follow('b', { scheduleId: 'a' });
    await follow('d', { scheduleId: 'c' });
    const edits = await Promise.allSettled([follow('a', { scheduleId: 'd' }), follow('c', { scheduleId: 'b' })]);
    expect(edits.map(({ status }) => status).sort()).toEqual(['fulfilled', 'rejected']);
  });

  it('and a schedule with followers cannot be deleted', async () => {
    await put('parent');
    await follow('one', { scheduleId: 'parent' });
    await follow('two', { scheduleId: 'parent' });
    await follow('all', { scheduleId: '*' });
    const refused = 'the schedule is followed by one, two: delete these first, or let them follow another';
    await expect(instance.remove('parent')).rejects.toThrow(new OperationRefused(409, refused));
    await instance.remove('one');
    await put('two');
    expect(await instance.remove('parent')).toBe(true);
  });
});

it('has ended once its time is over', async () => {
  await put('parent');
  const over = {
    cron: null,
    after: { scheduleId: 'parent', on: ['succeeded' as const] },
    endAt: Date.now() - 1,
  };
  await put('over', over);
  await put('lasting', { ...over, endAt: Date.now() + 3_600_000 });
  const statusOf = async (id: string) => (await store.database.run((db) => findSchedule(db, id)))?.status;
  expect([await statusOf('over'), await statusOf('lasting')]).toEqual(['ended', 'active']);
});

describe('a schedule that follows a prefix:', () => {
  const watch = (id: string, scheduleId: string, on: After['on'] = ['succeeded']) => follow(id, { scheduleId, on });

  /** `FOLLOWER of PARENT` of all runs that followed, once so many runs have ended and nothing is left to follow. */
  const followed = (count: number) =>
    until(async () => {
      const found = await store.rows<RunRow & { parent: string | null; left: number }>(
        sql`SELECT r.schedule_id, p.schedule_id AS parent, r.status, (SELECT count(*) FROM effects)::int AS left
        FROM all_runs r LEFT JOIN all_runs p ON p.id = r.parent_run_id`,
      );
      const isOver = found.every(({ status, left }) => !/pending|waiting/.test(status) && left === 0);
      if (found.length < count || !isOver) return null;
      return found.flatMap((run) => (run.parent === null ? [] : [`${run.schedule_id} of ${run.parent}`])).sort();
    });

  it('each run of a schedule whose id begins so is followed, and no run of another', async () => {
    for (const id of ['billing.a', 'billing.b', 'billing', 'billinga', 'ops.a']) await put(id);
    await watch('watch-billing', 'billing.*');
    await watch('watch-b', 'b*');
    await watch('watch-one', 'billing.a*');
    await watch('watch-all', '*');
    await watch('watch-none', 'billing.a.*');
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
    await watch('of-failed', 'fails.*', ['failed']);
    await watch('of-succeeded', 'fails.*', ['succeeded']);
    await watch('of-works', 'works.*', ['failed']);
    await instance.start();
    await instance.fire('fails.a');
    await instance.fire('works.a');
    expect(await followed(3)).toEqual(['of-failed of fails.a']);
  });

  it('a schedule that follows is not followed by one of its prefix, so that no cycle can close', async () => {
    await put('team.parent');
    await watch('team.child', 'team.parent');
    // It has the prefix itself.
    await watch('team.watch', 'team.*');
    await watch('team.watch-too', 'team.*');
    await watch('of-watch', 'team.watch');
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
    await watch('watch', 'a.*');
    expect((await store.database.run((db) => findSchedule(db, 'watch')))?.status).toBe('active');
    const check = SCHEDULE_CHECKS.find(({ name }) => name === 'followedSchedulesExist');
    expect(check && (await store.rows(check.found))).toEqual([]);
    await watch('watch', 'b.*');
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
    await watch('of-late', 'team.*', ['late']);
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
});
