import { afterEach, beforeEach, expect, it, vi } from 'vitest';
import { type TestDatabase, createDatabase } from '../support/cluster.ts';
import { type Daemon, readyDaemon } from '../support/daemon.ts';
import { until } from '../support/until.ts';

vi.setConfig({ testTimeout: 90_000 });

let database: TestDatabase;
beforeEach(async () => {
  database = await createDatabase();
});
afterEach(() => database.drop());

const OWN = process.versions['tz'] ?? '';
/** A Node with older zone data, as far as it says so itself. */
const OLDER = {
  NODE_OPTIONS:
    "--import=data:text/javascript,Object.defineProperty(process,'versions',{value:{...process.versions,tz:'2020a'}})",
};

it('living instances that differ in their zone data are told everywhere, once, until they are one again', async () => {
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

async function versionsOf(daemon: Daemon): Promise<number> {
  const { body } = await daemon.call('GET', '/metrics');
  return Number(/^firelock_zone_data_versions (\d+)$/m.exec(String(body))?.[1]);
}

async function warningsOf(daemon: Daemon): Promise<string[]> {
  const { status, body } = await daemon.call('GET', '/readyz');
  expect(status).toBe(200);
  return (body as { warnings: string[] }).warnings;
}
