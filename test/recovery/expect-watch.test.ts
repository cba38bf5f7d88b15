import { sql } from 'drizzle-orm';
import { beforeEach, expect, it } from 'vitest';
import type { FirelockEvent } from '../../src/core/events.ts';
import type { Expect } from '../../src/core/schedules/expect.ts';
import { createExpectWatch } from '../../src/recovery/watches.ts';
import { systemClock } from '../../src/runtime/clock.ts';
import { createEventBus } from '../../src/runtime/event-bus.ts';
import type { Loop } from '../../src/runtime/loop/loop.ts';
import { eachTest, instanceOfTest, receiverOfTest, storeOfTest } from '../support/of-test.ts';
import { until } from '../support/until.ts';

const BOTH: Expect = { startWithinSeconds: 60, finishWithinSeconds: 900, atLeastSeconds: null, result: null };

const store = eachTest(storeOfTest);
const receiver = eachTest(() =>
  receiverOfTest(({ body: { runId } }, response) => {
    void isBegun(runId).then((begun) => {
      begunAtArrival.push(begun);
      answers.push(() => response.end('{}'));
    });
  }),
);
const instance = eachTest(() => instanceOfTest(store));
/** Each lets one call end. */
let answers: (() => void)[];
/** What each call found when it arrived. */
let begunAtArrival: boolean[];
let watches: Loop[];
let events: FirelockEvent[];

beforeEach(() => {
  [answers, begunAtArrival, events] = [[], [], []];
  const bus = createEventBus();
  bus.subscribe((event) => void events.push(event));
  const { lease, pipeline } = instance;
  const deps = { database: store.database, clock: systemClock, events: bus, lease, wake: pipeline.wake };
  watches = [createExpectWatch(deps), createExpectWatch(deps)];
});

async function isBegun(runId: string): Promise<boolean> {
  const [run] = await store.rows<{ begun: boolean }>(
    sql`SELECT handoff_started_at IS NOT NULL AND next_bound = 'finish' AS begun FROM runs WHERE id = ${runId}`,
  );
  return run?.begun === true;
}

const put = (id: string, more = {}) => instance.put(id, { url: receiver.url, expect: BOTH, ...more });
const passBounds = () => store.rows(sql`UPDATE runs SET bound_at = clock_timestamp() - interval '2 s'`);
const unmetOf = async (id: string) =>
  (
    await store.rows<{ status: string; unmet: string[] | null }>(
      sql`SELECT status, to_json(unmet) AS unmet FROM all_runs WHERE id = ${id}`,
    )
  )[0];
const effects = () =>
  store.rows(sql`SELECT kind, alert_kind, run_id, status FROM effects WHERE alert_kind IS NOT NULL`);

/** Until each of them has looked, in a look that began after this call; then they stop. */
async function look(): Promise<void> {
  for (const watch of watches) await watch.start();
  await until(() => watches.every((watch) => watch.passes() > 0) || null);
  for (const watch of watches) await watch.stop();
}

it('a run is sent once it is durable that it begins, and two watches find once that it takes too long', async () => {
  const { settler, dispatcher, alertEffects } = instance.pipeline;
  for (const service of [settler, dispatcher]) await service.start();
  await put('slow');
  const { id } = await instance.fire('slow');
  await until(() => answers.length > 0 || null);
  expect(begunAtArrival).toEqual([true]);
  await passBounds();
  await look();
  expect(await unmetOf(id)).toEqual({ status: 'pending', unmet: ['finish'] });
  const effect = { kind: 'breaks', alert_kind: 'slow', run_id: id, status: 'pending' };
  expect(await effects()).toEqual([effect]);
  answers[0]?.();
  await until(async () => ((await unmetOf(id))?.status === 'succeeded' ? true : null));
  expect([await unmetOf(id), await effects()]).toEqual([{ status: 'succeeded', unmet: ['finish'] }, [effect]]);
  await alertEffects.start();
  const found = { runId: id, scheduleId: 'slow', bound: 'finish', passedAt: expect.any(Number) as number };
  await until(() => instance.events.some(({ type }) => type === 'runsUnmet') || null);
  expect(instance.events.filter(({ type }) => type === 'runsUnmet')).toEqual([{ type: 'runsUnmet', runs: [found] }]);
});

it('so is a run that was recorded with its claim', async () => {
  const { settler, dispatcher, tick } = instance.pipeline;
  for (const service of [settler, dispatcher, tick]) await service.start();
  await put('planned', { cron: '* * * * * *' });
  await until(() => answers.length > 0 || null);
  await tick.stop();
  expect(new Set(begunAtArrival)).toEqual(new Set([true]));
  for (const answer of answers) answer();
});

it('a run whose row is refused holds up no other', async () => {
  await put('bad');
  await put('good');
  const [bad, good] = [await instance.fire('bad'), await instance.fire('good')];
  await store.rows(
    sql`ALTER TABLE runs ADD CONSTRAINT refused CHECK (unmet IS NULL OR schedule_id <> 'bad') NOT VALID`,
  );
  await passBounds();
  await look();
  expect([await unmetOf(bad.id), await unmetOf(good.id)]).toEqual([
    { status: 'pending', unmet: null },
    { status: 'pending', unmet: ['start'] },
  ]);
  expect(events).toContainEqual(expect.objectContaining({ type: 'boundRefused', runId: bad.id }));
});
