import { randomUUID } from 'node:crypto';
import { sql } from 'drizzle-orm';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { plannedRunId } from '../../src/core/run.ts';
import { lockDueSchedules } from '../../src/store/fire-locks.ts';
import { type Intent, recordIntentsIfLocked } from '../../src/store/intents.ts';
import { type Store, type TestInstance, createInstance, createStore } from '../support/pipeline.ts';
import { type Receiver, startReceiver } from '../support/receiver.ts';

let store: Store;
let receiver: Receiver;
let instance: TestInstance;

beforeEach(async () => {
  store = await createStore();
  receiver = await startReceiver();
  instance = await createInstance(store);
  await instance.put('due', { url: receiver.url });
  await store.rows(
    sql`UPDATE schedules SET next_occurrence_at = clock_timestamp() - interval '1 s', next_fire_at = clock_timestamp() - interval '1 s'`,
  );
});

afterEach(async () => {
  await instance.stop();
  await receiver.close();
  await store.drop();
});

const lock = (instanceId: string, walking: string[] = [], lockTtlSeconds = 120) =>
  store.database.run((db) => lockDueSchedules(db, { instanceId, limit: 100, lockTtlSeconds, walking }));

async function otherInstance(): Promise<string> {
  return (await createInstance(store)).id;
}

describe('the fire-lock', () => {
  it('is taken by one of two instances, and the other sees that it is held', async () => {
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

  it('of a failed round of mine is mine again at once, unless I still walk it', async () => {
    const [{ uid } = { uid: '' }] = (await lock(instance.id)).locked;
    expect((await lock(instance.id, [uid])).locked).toEqual([]);
    const again = await lock(instance.id);
    expect(again.locked).toHaveLength(1);
    expect(again.takenOver).toBe(0);
  });

  it('of a walk of mine is renewed long before its TTL, so that the walk can go on', async () => {
    const [{ uid } = { uid: '' }] = (await lock(instance.id)).locked;
    await store.rows(sql`UPDATE schedules SET locked_at = locked_at - interval '41 s'`);
    const renewed = await lock(instance.id, [uid]);
    expect(renewed.locked).toHaveLength(1);
    expect(renewed.takenOver).toBe(0);
  });

  it('answers when the next schedule is due, and takes nothing before', async () => {
    await store.rows(sql`UPDATE schedules SET next_fire_at = clock_timestamp() + interval '1 hour'`);
    const { locked, now, nextDueAt } = await lock(instance.id);
    expect(locked).toEqual([]);
    expect((nextDueAt ?? 0) - now).toBeGreaterThan(3_590_000);
  });
});

describe('recording an intent', () => {
  async function plan() {
    const [schedule] = (await lock(instance.id)).locked;
    if (!schedule) throw new Error('nothing was locked');
    const { uid, version, lockedAt, nextOccurrenceAt } = schedule;
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
      lastFireAt: nextOccurrenceAt,
    };
    return async () => {
      const recorded = await store.database.run((db) =>
        recordIntentsIfLocked(db, instance.id, [advance], [intent]),
      );
      return { advanced: recorded.advanced, inserted: recorded.inserted.size };
    };
  }
  const runs = () => store.rows(sql`SELECT * FROM runs`);

  it('writes the run and moves the cursor on, together', async () => {
    const record = await plan();
    expect(await record()).toMatchObject({ advanced: 1, inserted: 1 });
    expect(await runs()).toHaveLength(1);
    expect((await lock(instance.id)).locked).toEqual([]);
  });

  it('writes nothing once the lock is somebody else’s', async () => {
    const record = await plan();
    await store.rows(sql`UPDATE schedules SET locked_at = locked_at - interval '1 hour'`);
    await lock(await otherInstance());
    expect(await record()).toMatchObject({ advanced: 0, inserted: 0 });
    expect(await runs()).toEqual([]);
  });

  it('writes nothing once the lock was mine, lost, and mine again', async () => {
    const record = await plan();
    await store.rows(sql`UPDATE schedules SET locked_at = locked_at + interval '1 ms'`);
    expect(await record()).toMatchObject({ advanced: 0, inserted: 0 });
  });

  it('writes nothing once the schedule was edited, and the edit has recorded what was due', async () => {
    const record = await plan();
    await instance.put('due', { url: receiver.url, description: 'edited' });
    expect(await runs()).toHaveLength(1);
    expect(await record()).toMatchObject({ advanced: 0, inserted: 0 });
    expect(await runs()).toHaveLength(1);
  });

  it('of the same fire twice leaves one run, even without any lock', async () => {
    const record = await plan();
    await record();
    await store.rows(sql`UPDATE schedules SET next_occurrence_at = s.scheduled_for, next_fire_at = s.scheduled_for
      FROM (SELECT scheduled_for FROM runs) s`);
    const again = await plan();
    expect(await again()).toMatchObject({ advanced: 1, inserted: 0 });
    expect(await runs()).toHaveLength(1);
  });
});
