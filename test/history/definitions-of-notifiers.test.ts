import { randomUUID } from 'node:crypto';
import { sql } from 'drizzle-orm';
import { expect, it } from 'vitest';
import { isoInstant } from '../../src/core/instant.ts';
import { createDefinitionWalk } from '../../src/history/definition-walk.ts';
import { systemClock } from '../../src/runtime/clock.ts';
import { storeOfTest } from '../support/of-test.ts';
import { dayAgo, endedRun } from '../support/history.ts';

const DAYS = 30;
const OLD = 40;

it('the present definition of a notifier stays, and older ones for as long as a message names one', async () => {
  const store = await storeOfTest();
  const notifierOf = async (id: string, version: number) => {
    const uid = randomUUID();
    await store.rows(sql`INSERT INTO notifiers (id, uid, enabled, kinds, filter, channel, version, updated_at)
      VALUES (${id}, ${uid}, true, '{failed}', '{}', 'webhook', ${version}, now())`);
    await store.rows(sql`INSERT INTO schedule_versions (schedule_uid, version, schedule_id, change, at, definition)
      SELECT ${uid}, v, '', 'updated', ${isoInstant(dayAgo(OLD))}::timestamptz, '{}' FROM generate_series(1, ${version}::int) AS v`);
    return uid;
  };
  const versionsOf = async (uid: string) =>
    (
      await store.rows<{ version: number }>(
        sql`SELECT version FROM schedule_versions WHERE schedule_uid = ${uid} ORDER BY version`,
      )
    ).map(({ version }) => version);
  const [quiet, telling, gone] = [
    await notifierOf('quiet', 3),
    await notifierOf('telling', 2),
    await notifierOf('gone', 2),
  ];
  await endedRun(store, { endedAt: dayAgo(1), scheduledFor: dayAgo(OLD), scheduleUid: telling });
  await store.rows(sql`DELETE FROM notifiers WHERE id = 'gone'`);

  const walk = createDefinitionWalk(store.database, systemClock, 1_000);
  while (await walk.step(dayAgo(DAYS)));
  expect([await versionsOf(quiet), await versionsOf(telling), await versionsOf(gone)]).toEqual([
    [3],
    [1, 2],
    [],
  ]);
});
