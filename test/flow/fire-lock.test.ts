import { randomUUID } from 'node:crypto';
import { type SQL, sql } from 'drizzle-orm';
import { beforeEach, describe, expect, it } from 'vitest';
import { plannedRunId } from '../../src/core/runs/run.ts';
import { lockDueSchedules } from '../../src/store/schedules/fire-locks.ts';
import type { Intent } from '../../src/store/runs/intents/intent.ts';
import { recordIntentsIfLocked } from '../../src/store/runs/intents/record-intents.ts';
import { eachTest, instanceOfTest, receiverOfTest, storeOfTest } from '../support/of-test.ts';
import { createInstance } from '../support/pipeline.ts';

const store = eachTest(storeOfTest);
const receiver = eachTest(receiverOfTest);
const instance = eachTest(() => instanceOfTest(store));

beforeEach(async () => {
  await instance.put('due', { url: receiver.url });
  await store.rows(
    sql`UPDATE schedules SET next_occurrence_at = clock_timestamp() - interval '1 s', next_fire_at = clock_timestamp() - interval '1 s'`,
  );
});

const lock = (instanceId: string, walking: string[] = [], lockTtlSeconds = 120) =>
  store.database.run((db) => lockDueSchedules(db, { instanceId, limit: 100, lockTtlSeconds, walking }));

async function otherInstance(): Promise<string> {
  return (await createInstance(store)).id;
}

describe('the fire-lock', () => {
  it('is taken by one of two instances, and the other sees so', async () => {
    const first = await lock(instance.id);
    const second = await lock(await otherInstance());
    expect(first.locked.map((schedule) => schedule.id)).toEqual(['due']);
    expect(second.locked).toEqual([]);
    expect(second.contended).toBe(1);
  });

  it('is taken over when its TTL has passed, and when its holder is not alive', async () => {
    const other = await otherInstance();
    await lock(other);
    expect((await lock(instance.id)).locked).toEqual([]);
    await store.rows(sql`UPDATE schedules SET locked_at = locked_at - interval '121 s'`);
    expect((await lock(instance.id)).takenOver).toBe(1);
    await store.rows(sql`UPDATE instances SET died_at = clock_timestamp() WHERE id = ${instance.id}`);
    expect((await lock(other)).takenOver).toBe(1);
    await lock(randomUUID());
  });

  it('that a failed round of mine left is mine again at once, unless I still walk the schedule', async () => {
    const [{ uid } = { uid: '' }] = (await lock(instance.id)).locked;
    expect((await lock(instance.id, [uid])).locked).toEqual([]);
    const again = await lock(instance.id);
    expect(again.locked).toHaveLength(1);
    expect(again.takenOver).toBe(0);
  });

  it('during a walk of mine is renewed long before its TTL, so that the walk can go on', async () => {
    const [{ uid } = { uid: '' }] = (await lock(instance.id)).locked;
    await store.rows(sql`UPDATE schedules SET locked_at = locked_at - interval '41 s'`);
    const renewed = await lock(instance.id, [uid]);
    expect(renewed.locked).toHaveLength(1);
    expect(renewed.takenOver).toBe(0);
  });

  it('answers when the next schedule is due, and takes nothing before', async () => {
    const [next] = await store.rows<{ at: string }>(
      sql`UPDATE schedules SET next_fire_at = clock_timestamp() + interval '1 hour' RETURNING next_fire_at AS at`,
    );
    expect(await lock(instance.id)).toMatchObject({ locked: [], nextDueAt: Date.parse(next?.at ?? '') });
  });

  it('names no next moment if the only one is due at infinity: the tick would never sleep', async () => {
    await store.rows(sql`UPDATE schedules SET next_fire_at = 'infinity'`);
    expect(await lock(instance.id)).toMatchObject({ locked: [], nextDueAt: null });
  });
});

describe('recording an intent', () => {
  async function allPlanned() {
    return (await lock(instance.id)).locked.map(({ uid, version, lockedAt, nextOccurrenceAt }) => {
      const intent: Intent = {
        id: plannedRunId(uid, nextOccurrenceAt),
        scheduleUid: uid,
        scheduledFor: nextOccurrenceAt,
        trigger: 'schedule',
        dueAt: nextOccurrenceAt,
        skipped: null,
        coalesced: 0,
        coalescedFrom: null,
        claimed: false,
      };
      const advance = {
        uid,
        version,
        lockedAt,
        nextOccurrenceAt: nextOccurrenceAt + 3_600_000,
        nextFireAt: nextOccurrenceAt + 3_600_000,
        plannedThrough: nextOccurrenceAt,
        lastFireAt: nextOccurrenceAt,
      };
      return { advance, intent };
    });
  }
  async function planned() {
    const [first] = await allPlanned();
    if (!first) throw new Error('nothing was locked');
    return first;
  }
  async function plan() {
    const { advance, intent } = await planned();
    return async () => {
      const recorded = await store.database.run((db) =>
        recordIntentsIfLocked(db, instance.id, [advance], [intent], { alone: true }),
      );
      return { advanced: recorded.advanced, inserted: recorded.inserted(intent.id) };
    };
  }
  const runs = () => store.rows(sql`SELECT * FROM all_runs`);
  const ms = async (statement: SQL) => (await store.rows<{ ms: number }>(statement))[0]?.ms;
  const plannedThrough = () =>
    ms(sql`SELECT (extract(epoch FROM planned_through) * 1000)::float8 AS ms FROM schedules`);
  const dueMs = () => ms(sql`SELECT (extract(epoch FROM scheduled_for) * 1000)::float8 AS ms FROM all_runs`);

  it('writes the run and moves the cursor on, together', async () => {
    const record = await plan();
    expect(await record()).toMatchObject({ advanced: 1, inserted: true });
    expect(await runs()).toHaveLength(1);
    expect((await lock(instance.id)).locked).toEqual([]);
    expect(await plannedThrough()).toBe(await dueMs());
  });

  it('never says again that less has been planned, wherever the cursor is set', async () => {
    const first = await plan();
    await first();
    const before = await plannedThrough();
    await store.rows(sql`UPDATE schedules SET next_occurrence_at = planned_through - interval '1 hour',
      next_fire_at = planned_through - interval '1 hour'`);
    const earlier = await plan();
    expect(await earlier()).toMatchObject({ advanced: 1, inserted: true });
    expect(await plannedThrough()).toBe(before);
    await instance.put('due', { url: receiver.url, description: 'edited' });
    expect(await plannedThrough()).toBe(before);
  });

  it('writes nothing once another instance has the lock', async () => {
    const record = await plan();
    await store.rows(sql`UPDATE schedules SET locked_at = locked_at - interval '1 hour'`);
    await lock(await otherInstance());
    expect(await record()).toMatchObject({ advanced: 0, inserted: false });
    expect(await runs()).toEqual([]);
  });

  it('writes nothing once the lock was mine, lost, and mine again', async () => {
    const record = await plan();
    await store.rows(sql`UPDATE schedules SET locked_at = locked_at + interval '1 ms'`);
    expect(await record()).toMatchObject({ advanced: 0, inserted: false });
  });

  it('writes nothing once the schedule was edited, and the edit has recorded what was due', async () => {
    const record = await plan();
    await instance.put('due', { url: receiver.url, description: 'edited' });
    expect(await runs()).toHaveLength(1);
    expect(await record()).toMatchObject({ advanced: 0, inserted: false });
    expect(await runs()).toHaveLength(1);
  });

  it('twice for the same fire leaves one run, even without any lock', async () => {
    const record = await plan();
    await record();
    await store.rows(sql`UPDATE schedules SET next_occurrence_at = s.scheduled_for, next_fire_at = s.scheduled_for
      FROM (SELECT scheduled_for FROM all_runs) s`);
    const again = await plan();
    expect(await again()).toMatchObject({ advanced: 1, inserted: false });
    expect(await runs()).toHaveLength(1);
  });

  it('for a fire that exists already keeps none of the other schedules from being recorded', async () => {
    await instance.put('other', { url: receiver.url });
    await store.rows(sql`UPDATE schedules SET next_occurrence_at = clock_timestamp() - interval '1 s',
      next_fire_at = clock_timestamp() - interval '1 s'`);
    const both = await allPlanned();
    const record = (some: typeof both) =>
      store.database.run((db) =>
        recordIntentsIfLocked(
          db,
          instance.id,
          some.map(({ advance }) => advance),
          some.map(({ intent }) => intent),
          { alone: true },
        ),
      );
    await record(both.slice(0, 1));
    await store.rows(sql`UPDATE schedules s SET next_occurrence_at = r.scheduled_for, next_fire_at = r.scheduled_for
      FROM all_runs r WHERE r.schedule_uid = s.uid`);
    const recorded = await record(await allPlanned());
    expect(recorded.advanced).toBe(2);
    expect(both.map(({ intent }) => recorded.inserted(intent.id))).toEqual([false, true]);
    expect(await runs()).toHaveLength(2);
  });

  it('for fires that are caught up with leaves out existing ones, and keeps the data of the others', async () => {
    const { advance, intent } = await planned();
    const at = (minutes: number): Intent => {
      const scheduledFor = intent.scheduledFor - minutes * 60_000;
      const dueAt = scheduledFor + 1;
      return {
        ...intent,
        id: plannedRunId(intent.scheduleUid, scheduledFor),
        scheduledFor,
        dueAt,
        trigger: 'catchUp',
      };
    };
    await store.database.run((db) => recordIntentsIfLocked(db, instance.id, [advance], [at(1)], { alone: true }));
    await store.rows(sql`UPDATE schedules SET next_fire_at = next_occurrence_at - interval '2 hours'`);
    const next = await planned();
    const recorded = await store.database.run((db) =>
      recordIntentsIfLocked(db, instance.id, [next.advance], [at(2), at(1), at(0)], { alone: true }),
    );
    expect(recorded.advanced).toBe(1);
    expect([2, 1, 0].map((minutes) => recorded.inserted(at(minutes).id))).toEqual([true, false, true]);
    const stored = await store.rows(sql`SELECT trigger, (extract(epoch FROM scheduled_for) * 1000)::float8 AS at,
      (extract(epoch FROM due_at - scheduled_for) * 1000)::float8 AS delay FROM all_runs ORDER BY scheduled_for`);
    expect(stored).toEqual(
      [2, 1, 0].map((minutes) => ({ trigger: 'catchUp', at: at(minutes).scheduledFor, delay: 1 })),
    );
  });
});
