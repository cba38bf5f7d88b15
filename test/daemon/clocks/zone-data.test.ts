// @module-tag long
import postgres from 'postgres';
import { expect, it, onTestFinished } from 'vitest';
import { eachTest, databaseOfTest } from '../../support/of-test.ts';
import { type Daemon, readyDaemon } from '../../support/daemon.ts';
import { until } from '../../support/until.ts';

const database = eachTest(databaseOfTest);
const OWN = process.versions['tz'] ?? '';
/** A Node with older zone data, as far as it says so itself. */
const OLDER = {
  NODE_OPTIONS:
    "--import=data:text/javascript,Object.defineProperty(process,'versions',{value:{...process.versions,tz:'2020a'}})",
};

it('living instances that differ in their zone data are reported everywhere, once, until they agree again', async () => {
  const daemon = await readyDaemon(database.url);
  await until(async () => ((await versionsOf(daemon)) === 1 ? true : null));
  expect(await warningsOf(daemon)).toEqual([]);

  const older = await readyDaemon(database.url, OLDER);
  for (const one of [daemon, older]) {
    await until(async () => ((await versionsOf(one)) === 2 ? true : null));
    expect(await warningsOf(one)).toEqual([
      expect.stringMatching(new RegExp(`\\(2020a, ${OWN}\\).*finish the rollout`)),
    ]);
    expect(await one.logged(/different time zone data/)).toMatchObject({
      level: 40,
      zoneData: ['2020a', OWN],
    });
  }
  const { body } = await daemon.call('GET', '/api/v1/instances');
  const { items } = body as { items: { zoneData: string; alive: boolean }[] };
  expect(items.map(({ zoneData, alive }) => ({ zoneData, alive }))).toEqual([
    { zoneData: '2020a', alive: true },
    { zoneData: OWN, alive: true },
  ]);

  older.signal('SIGTERM');
  expect(await older.exited).toBe(0);
  expect(await daemon.logged(/same time zone data again/)).toMatchObject({ level: 30, zoneData: OWN });
  expect([await versionsOf(daemon), await warningsOf(daemon)]).toEqual([1, []]);
  expect(daemon.log().filter(({ msg }) => msg.includes('time zone data'))).toHaveLength(2);
});

it('a rollout moves the stored next fires to where the newer data put them, and again when the last older one has left', async () => {
  const sql = postgres(database.url, { max: 1 });
  onTestFinished(() => sql.end());
  const recorded = async () => (await sql<{ version: string }[]>`SELECT version FROM zone_data`)[0]?.version;
  const older = await readyDaemon(database.url, OLDER);
  await until(async () => ((await recorded()) === '2020a' ? true : null));
  const right = await putYearly(older);
  const planByOlderData = () => sql`UPDATE schedules SET next_occurrence_at = next_occurrence_at + interval '1 hour',
    next_fire_at = next_fire_at + interval '1 hour'`;
  await planByOlderData();

  const newer = await readyDaemon(database.url);
  expect(await newer.logged(/next fires were moved/)).toMatchObject({ level: 30, count: 1, zoneData: OWN });
  for (const one of [older, newer]) expect(await nextFireOf(one)).toBe(right);
  expect([await movedBy(older), await movedBy(newer)]).toEqual([0, 1]);
  // Not the end of it: the older one still plans.
  expect(await recorded()).toBe('2020a');
  await planByOlderData();

  older.signal('SIGTERM');
  expect(await older.exited).toBe(0);
  await until(async () => ((await recorded()) === OWN ? true : null));
  expect(await nextFireOf(newer)).toBe(right);
  expect(await movedBy(newer)).toBe(2);
});

/** Half a year from now, in a zone. */
async function putYearly(daemon: Daemon): Promise<string> {
  const cron = `0 9 15 ${((new Date().getUTCMonth() + 6) % 12) + 1} *`;
  const definition = {
    cron,
    timezone: 'Europe/Berlin',
    target: { type: 'http', url: 'http://127.0.0.1:9/' },
  };
  expect((await daemon.call('PUT', '/api/v1/schedules/yearly', definition)).status).toBe(201);
  return nextFireOf(daemon);
}

async function nextFireOf(daemon: Daemon): Promise<string> {
  const { body } = await daemon.call('GET', '/api/v1/schedules/yearly');
  return (body as { nextFireAt: string }).nextFireAt;
}

async function movedBy(daemon: Daemon): Promise<number> {
  const { body } = await daemon.call('GET', '/metrics');
  return Number(/^firelock_cursors_moved_total (\d+)$/m.exec(String(body))?.[1]);
}

async function versionsOf(daemon: Daemon): Promise<number> {
  const { body } = await daemon.call('GET', '/metrics');
  return Number(/^firelock_zone_data_versions (\d+)$/m.exec(String(body))?.[1]);
}

async function warningsOf(daemon: Daemon): Promise<string[]> {
  const { status, body } = await daemon.call('GET', '/readyz');
  expect(status).toBe(200);
  return (body as { warnings: string[] }).warnings;
}
