// @module-tag attack
// @module-tag long
import { setTimeout } from 'node:timers/promises';
import postgres from 'postgres';
import { expect, it, onTestFinished } from 'vitest';
import { type Daemon, readyDaemon } from '../support/daemon.ts';
import { endedRuns, expectArrived, expectEverySecondPlanned, pauseAll, putEverySecond } from '../support/fires.ts';
import { createMigratedDatabase } from '../support/postgres/migrated-database.ts';
import { startReceiver } from '../support/receiver.ts';
import { openConnection } from './raw-connection.ts';

const SCHEDULES = 200;
const SECONDS = 10;
/** Of each kind. */
const SOCKETS = 250;

const BODY =
  'PUT /api/v1/schedules/s0 HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: 200000\r\n\r\n{';
/** How each kind of connection begins. The last one has sent a whole request, and only stays. */
const KINDS = [
  'GET /api/v1/schedules HTTP/1.1\r\nHost: localhost\r\n',
  BODY,
  '',
  'GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n',
];

it('a thousand connections that drip headers and bodies, or stay silent, delay none of two hundred fires a second', async () => {
  const database = await createMigratedDatabase();
  onTestFinished(() => database.drop());
  const sql = postgres(database.url, { max: 1, onnotice: () => undefined });
  onTestFinished(() => sql.end());
  const receiver = await startReceiver();
  onTestFinished(() => receiver.close());
  const daemon = await readyDaemon(database.url);
  await putEverySecond(daemon, receiver, SCHEDULES);
  const drips = await openAll(daemon);
  await receiver.arrived(receiver.arrivals.length + SECONDS * SCHEDULES);
  await pauseAll(daemon, SCHEDULES);

  const runs = await endedRuns(sql);
  expect(await expectEverySecondPlanned(sql)).toBe(runs.length);
  expect(runs.length).toBeGreaterThan(SECONDS * SCHEDULES);
  expectArrived(receiver, runs);
  expect(new Set(runs.map(({ status, attempts }) => `${status} ${attempts}`))).toEqual(new Set(['succeeded 1']));

  // Those that have not said what they want by now are told so, and let go; those that only stay may.
  const [headers = [], , silent = [], idle = []] = drips;
  for (const { received, closed } of [...headers, ...silent]) {
    await closed();
    expect(received()).toMatch(/^HTTP\/1\.1 408 [^]*application\/problem\+json/);
  }
  for (const { received, socket } of idle)
    expect([received().slice(0, 12), socket.destroyed]).toEqual(['HTTP/1.1 200', false]);
  expect((await daemon.call('GET', '/readyz')).status).toBe(200);
  expect(daemon.log().filter(({ level }) => level >= 50)).toEqual([]);
});

type Connection = Awaited<ReturnType<typeof openConnection>>;

/** By kind, each from an address of its own. Those that have begun a request go on with it, byte by byte. */
async function openAll(daemon: Daemon): Promise<Connection[][]> {
  const kinds: Connection[][] = [];
  for (const [kind, beginning] of KINDS.entries()) {
    const localAddress = `127.0.0.${2 + kind}`;
    const connections = await Promise.all(
      Array.from({ length: SOCKETS }, () => openConnection(daemon.url, { beginning, localAddress })),
    );
    kinds.push(connections);
    if (kind < 2) void drip(connections);
  }
  return kinds;
}

async function drip(connections: readonly Connection[]): Promise<void> {
  for (;;) {
    const open = connections.filter(({ socket }) => socket.writable);
    if (open.length === 0) return;
    for (const { socket } of open) socket.write('x');
    await setTimeout(1000);
  }
}
