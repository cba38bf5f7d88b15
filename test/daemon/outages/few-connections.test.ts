// @module-tag long
import { expect, it } from 'vitest';
import { type DaemonHere, daemonHere } from '../../support/daemon-here.ts';
import { putEverySecond } from '../../support/fires.ts';
import { receiverOfTest } from '../../support/of-test.ts';
import { THROUGH_POOLER } from '../../support/postgres/pooler.ts';
import { roleOfTest } from '../../support/postgres/role.ts';

const SCHEDULES = 100;
/** More than there are connections for the API. */
const CALLS = 20;

/** All fire at the same time, and answer calls that write and read. */
async function expectAllWork(daemons: readonly [DaemonHere, ...DaemonHere[]], calendars: string): Promise<void> {
  const receiver = await receiverOfTest();
  await putEverySecond(daemons[0], receiver, SCHEDULES);
  await receiver.arrived(2 * SCHEDULES);
  const calls = daemons.flatMap((daemon, at) =>
    Array.from({ length: CALLS }, async (_, call) => {
      const put = await daemon.call('PUT', `/api/v1/calendars/${calendars}-${at}-${call}`, {
        dates: ['2030-01-01'],
      });
      const { status } = await daemon.call('GET', '/api/v1/schedules');
      return [put.status, status];
    }),
  );
  expect(await Promise.all(calls)).toEqual(calls.map(() => [201, 200]));
  for (const daemon of daemons) expect((await daemon.call('GET', '/readyz')).status).toBe(200);
  await receiver.arrived(receiver.arrivals.length + 2 * SCHEDULES);
}

async function withLimit(limit: number, instances: number): Promise<void> {
  const { url, name, admin } = await roleOfTest();
  await admin.unsafe(`ALTER ROLE ${name} CONNECTION LIMIT ${limit}`);
  const first = await daemonHere(url);
  await expectAllWork([first], 'alone');
  const daemons: [DaemonHere, ...DaemonHere[]] = [first];
  // One after the other: the first has taken what it could.
  while (daemons.length < instances) daemons.push(await daemonHere(url));
  await expectAllWork(daemons, 'all');
  const [{ count } = { count: 0 }] = await admin<{ count: number }[]>`
    SELECT count(*)::int FROM pg_stat_activity WHERE usename = ${name}`;
  expect(count).toBeLessThanOrEqual(limit);
}

it.skipIf(THROUGH_POOLER).each([
  [20, 3],
  [8, 1],
  [4, 1],
])('on a server that gives %i connections, this many instances with default settings work: %i', withLimit);
