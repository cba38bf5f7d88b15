import { randomUUID } from 'node:crypto';
import { sql } from 'drizzle-orm';
import { beforeEach, describe, expect, it } from 'vitest';
import { isoInstant, DAY_MS } from '../../src/core/instant.ts';
import { createDefinitionWalk } from '../../src/history/definition-walk.ts';
import { systemClock } from '../../src/runtime/clock.ts';
import { incarnationsOf, versionSpans } from '../../src/store/reports/occurrence-rows.ts';
import { keepVersions } from '../../src/store/schedules/schedule-versions.ts';
import { storeOfTest } from '../support/of-test.ts';
import { dayAgo, endedRun } from '../support/history.ts';
import { type Store, createInstance } from '../support/pipeline.ts';

/** Days for which history is kept, and a version that was replaced by then. */
const DAYS = 30;
const OLD = 40;
const noonAgo = (days: number) => dayAgo(days) + DAY_MS / 2;

let store: Store;
beforeEach(async () => {
  store = await storeOfTest();
});

/** A whole walk; answers how many it dropped. */
async function dropAll(batch = 1_000): Promise<number> {
  const walk = createDefinitionWalk(store.database, systemClock, batch);
  while (await walk.step(dayAgo(DAYS)));
  return walk.dropped();
}

const versionsOf = async (uid: string) =>
  (
    await store.rows<{ version: number }>(
      sql`SELECT version FROM schedule_versions WHERE schedule_uid = ${uid} ORDER BY version`,
    )
  ).map(({ version }) => version);

describe('versions of an existing schedule', () => {
  /** Version n was written so many days ago. */
  async function edited(id: string, daysAgo: readonly number[]): Promise<string> {
    const instance = await createInstance(store);
    const { uid } = await instance.put(id, { url: 'http://127.0.0.1:1' });
    await instance.stop();
    for (const [index, days] of daysAgo.entries()) {
      const version = index + 1;
      if (index > 0)
        await store.rows(sql`INSERT INTO schedule_versions (schedule_uid, version, schedule_id, change, at, definition)
          VALUES (${uid}, ${version}, ${id}, 'updated', now(), '{}')`);
      await store.rows(sql`UPDATE schedule_versions v SET at = ${isoInstant(noonAgo(days))},
        definition = first.definition || jsonb_build_object('description', 'v' || v.version) FROM schedule_versions first
        WHERE v.schedule_uid = ${uid} AND v.version = ${version} AND first.schedule_uid = ${uid} AND first.version = 1`);
    }
    await store.rows(sql`UPDATE schedules SET version = ${daysAgo.length} WHERE uid = ${uid}`);
    return uid;
  }
  const LONG_AGO = [OLD + 50, OLD + 40, OLD + 30, OLD + 20, OLD + 10, 9, 8];

  it('go that were replaced before the retention; the first, the one in force then, and younger ones stay', async () => {
    const uid = await edited('edited', LONG_AGO);
    const twice = await edited('twice', [OLD + 50, OLD + 40]);
    const incarnation = { uid, createdAt: noonAgo(OLD + 50) };
    const spans = () => store.database.run((db) => versionSpans(db, incarnation, { from: 1, limit: 99 }));
    const before = await spans();
    expect(await dropAll()).toBe(3);
    expect(await versionsOf(uid)).toEqual([1, 5, 6, 7]);
    expect(await versionsOf(twice)).toEqual([1, 2]);
    // What /occurrences judges by is as it was since then, and says nothing of the time before.
    expect(await spans()).toEqual(before.slice(4));
    expect(await store.database.run((db) => incarnationsOf(db, 'edited'))).toEqual([incarnation]);
  });

  it('stay while a transaction makes up for a period by them, and are looked at anew after it', async () => {
    const uid = await edited('kept', LONG_AGO);
    await store.database.transaction(async (tx) => {
      expect([...(await keepVersions(tx, uid, [2, 3])).keys()]).toEqual([2, 3]);
      expect(await dropAll()).toBe(1);
    });
    expect(await versionsOf(uid)).toEqual([1, 2, 3, 5, 6, 7]);
    expect(await dropAll()).toBe(2);
  });

  it('stay that a run names: open or ended, planned or fired by hand', async () => {
    const uid = await edited('named', LONG_AGO);
    const ended = await endedRun(store, {
      endedAt: noonAgo(1),
      scheduledFor: noonAgo(OLD + 35),
      scheduleUid: uid,
    });
    await store.rows(sql`UPDATE history SET schedule_version = 2 WHERE id = ${ended}`);
    const instance = await createInstance(store);
    const run = await instance.fire('named');
    await store.rows(sql`UPDATE runs SET schedule_version = 4 WHERE id = ${run.id}`);
    await instance.stop();
    expect(await dropAll()).toBe(1);
    expect(await versionsOf(uid)).toEqual([1, 2, 4, 5, 6, 7]);
  });

  it('go in small steps, however many there are', async () => {
    const uid = await edited('scripted', LONG_AGO);
    await store.rows(
      sql`UPDATE schedule_versions SET version = version + 400 WHERE schedule_uid = ${uid} AND version > 1`,
    );
    await store.rows(sql`UPDATE schedules SET version = version + 400 WHERE uid = ${uid}`);
    await store.rows(sql`INSERT INTO schedule_versions (schedule_uid, version, schedule_id, change, at, definition)
      SELECT ${uid}, n, 'scripted', 'updated', ${isoInstant(noonAgo(OLD + 45))}::timestamptz + make_interval(secs => n), '{}'
      FROM generate_series(2, 401) AS n`);
    expect(await dropAll(50)).toBe(403);
    expect(await versionsOf(uid)).toEqual([1, 405, 406, 407]);
  });
});

it('the present definition of a notifier stays, and older ones for as long as a message names one', async () => {
  const notifierOf = async (id: string, version: number) => {
    const uid = randomUUID();
    await store.rows(sql`INSERT INTO notifiers (id, uid, enabled, kinds, filter, channel, version, updated_at)
      VALUES (${id}, ${uid}, true, '{failed}', '{}', 'webhook', ${version}, now())`);
    await store.rows(sql`INSERT INTO schedule_versions (schedule_uid, version, schedule_id, change, at, definition)
      SELECT ${uid}, v, '', 'updated', ${isoInstant(dayAgo(OLD))}::timestamptz, '{}' FROM generate_series(1, ${version}::int) AS v`);
    return uid;
  };
  const [quiet, telling, gone] = [
    await notifierOf('quiet', 3),
    await notifierOf('telling', 2),
    await notifierOf('gone', 2),
  ];
  await endedRun(store, { endedAt: dayAgo(1), scheduledFor: dayAgo(OLD), scheduleUid: telling });
  await store.rows(sql`DELETE FROM notifiers WHERE id = 'gone'`);

  await dropAll();
  expect([await versionsOf(quiet), await versionsOf(telling), await versionsOf(gone)]).toEqual([[3], [1, 2], []]);
});
