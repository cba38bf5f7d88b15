import { sql } from 'drizzle-orm';
import { describe, expect, it } from 'vitest';
import type { Definition } from '../../src/core/schedules/schedule.ts';
import { OperationRefused } from '../../src/operations/operation-refused.ts';
import { skipFire } from '../../src/operations/schedules/skip-fires.ts';
import { eachTest, instanceOfTest, receiverOfTest, storeOfTest } from '../support/of-test.ts';
import { createInstance } from '../support/pipeline.ts';
import { until } from '../support/until.ts';

const HOUR = 3_600_000;

const store = eachTest(storeOfTest);
const receiver = eachTest(receiverOfTest);
const instance = eachTest(() => instanceOfTest(store));

interface RunRow {
  scheduled_for: string;
  status: string;
  reason: string | null;
  trigger: string;
  coalesced: number;
}

const runs = (id: string) =>
  store.rows<RunRow>(sql`SELECT * FROM all_runs WHERE schedule_id = ${id} ORDER BY scheduled_for`);
const left = () =>
  store.rows<{ id: string; fire_at: string | null }>(
    sql`SELECT id, fire_at FROM schedules LEFT JOIN skips ON schedule_uid = uid WHERE has_skips OR fire_at IS NOT NULL`,
  );

/**
 * As if no instance had planned for two hours, and the middle one of three fires had been skipped before. Answers the first. The next
 * fire is an hour away, so that none is planned beside them.
 */
async function late(id: string, more: Partial<Definition>): Promise<number> {
  const [now] = await store.rows<{ at: string }>(sql`SELECT date_trunc('second', clock_timestamp()) AS at`);
  const first = Date.parse(now?.at ?? '') - 2 * HOUR;
  await instance.put(id, {
    cron: null,
    everySeconds: 3600,
    startAt: first,
    url: `${receiver.url}/${id}`,
    ...more,
  });
  const at = new Date(first).toISOString();
  await store.rows(sql`UPDATE schedules SET has_skips = true, next_occurrence_at = ${at}, next_fire_at = ${at}
    WHERE id = ${id}`);
  await store.rows(sql`INSERT INTO skips (schedule_uid, fire_at, reason, asked_at)
    SELECT uid, next_fire_at + interval '1 hour', 'no "stock"', created_at FROM schedules WHERE id = ${id}`);
  return first;
}

const recorded = (id: string, count: number) =>
  until(async () => {
    const found = await runs(id);
    return found.length >= count && found.every(({ status }) => ['succeeded', 'skipped'].includes(status))
      ? found
      : null;
  });

describe('a fire that was skipped on request', () => {
  it.each([
    { id: 'allow', overlap: 'allow', catchUp: 'all', fired: [0, 2], coalesced: 0 },
    { id: 'latest', overlap: 'allow', catchUp: 'latest', fired: [2], coalesced: 1 },
    { id: 'queue', overlap: 'queue', catchUp: 'all', fired: [0, 2], coalesced: 0 },
    { id: 'replace', overlap: 'replace', catchUp: 'latest', fired: [2], coalesced: 1 },
  ] as const)(
    'is recorded as skipped and not sent, however late: %j',
    async ({ id, overlap, catchUp, fired, coalesced }) => {
      const first = await late(id, { overlap, catchUp, graceSeconds: 5400 });
      await instance.put('follower', {
        cron: null,
        after: { scheduleId: id, on: ['skipped'] },
        url: `${receiver.url}/follower`,
      });
      await instance.start();
      await recorded(id, fired.length + 1);
      const found = (await runs(id)).filter((run) => Date.parse(run.scheduled_for) <= first + 2 * HOUR);
      const skipped = found.filter(({ status }) => status === 'skipped');
      expect(skipped.map((run) => (Date.parse(run.scheduled_for) - first) / HOUR)).toEqual([1]);
      const error = { kind: 'reported', message: 'no "stock"' };
      expect(skipped).toMatchObject([{ reason: 'request', trigger: 'schedule', coalesced: 0, error }]);
      const others = found.filter(({ status }) => status !== 'skipped');
      expect(others.map((run) => (Date.parse(run.scheduled_for) - first) / HOUR)).toEqual(fired);
      expect(others.reduce((sum, run) => sum + run.coalesced, 0)).toBe(coalesced);
      expect(receiver.arrivals.map(({ body }) => body.scheduledFor)).not.toContain(
        new Date(first + HOUR).toISOString(),
      );
      // What follows from a skipped run follows from this one as well.
      await recorded('follower', 1);
      expect(await left()).toEqual([]);
      expect(instance.events).toContainEqual({ type: 'runsSkipped', reason: 'request', count: 1 });
    },
  );

  it('is skipped once, by whichever of two instances plans it, while another caller skips the next ones', async () => {
    const other = await createInstance(store);
    const { uid } = await instance.put('busy', { cron: '* * * * * *', url: receiver.url });
    const asked: number[] = [];
    await instance.start();
    await other.start();
    try {
      while (new Set(asked).size < 3) {
        const [row] = await store.rows<{ at: string }>(
          sql`SELECT date_trunc('second', clock_timestamp()) + interval '1 second' AS at`,
        );
        // The very next second: often it is being planned when the answer comes.
        const fireAt = Date.parse(row?.at ?? '');
        const request = { scheduleId: 'busy', fireAt, skipped: true, reason: null, by: null };
        await skipFire(instance.deps, request).then(
          () => void asked.push(fireAt),
          (error: unknown) => expect(error).toBeInstanceOf(OperationRefused),
        );
        await until(async () => {
          const all = await runs('busy');
          return all.some((run) => Date.parse(run.scheduled_for) >= fireAt) ? true : null;
        });
      }
      await instance.put('busy', { cron: '* * * * * *', url: receiver.url, enabled: false });
      const all = await recorded('busy', 3);
      const moments = all.map((run) => Date.parse(run.scheduled_for));
      const skipped = all.filter(({ status }) => status === 'skipped');
      expect(skipped.map((run) => Date.parse(run.scheduled_for))).toEqual([...new Set(asked)]);
      expect(moments).toEqual(moments.map((_, index) => (moments[0] ?? NaN) + index * 1000));
      expect(new Set(skipped.map(({ reason }) => reason))).toEqual(new Set(['request']));
      expect(receiver.arrivals.filter(({ body }) => asked.includes(Date.parse(body.scheduledFor)))).toEqual([]);
      expect(await store.rows(sql`SELECT FROM skips WHERE schedule_uid = ${uid}`)).toEqual([]);
    } finally {
      await other.stop();
    }
  });
});
