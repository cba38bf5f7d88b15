// @module-tag long
import { globSync } from 'node:fs';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { eachTest, databaseOfTest, receiverOfTest, sqlOfTest } from '../../support/of-test.ts';
import { type Daemon, type Variables, readyDaemon } from '../../support/daemon.ts';
import { endedRuns, expectArrived, expectEverySecondPlanned, pauseAll, putEverySecond } from '../../support/fires.ts';
import { until } from '../../support/until.ts';

const SCALED = {
  FIRELOCK_HEARTBEAT_INTERVAL_SECONDS: '1',
  FIRELOCK_INSTANCE_TTL_SECONDS: '4',
  FIRELOCK_RECOVERY_INTERVAL_SECONDS: '1',
};
const SCHEDULES = 10;
const TWO_SECONDS_OF_FIRES = 2 * SCHEDULES;

/** Debian's package libfaketime. */
const [LIBRARY] = globSync('/usr/lib/*/faketime/libfaketime.so.1');
const NO_LIBRARY = 'needs libfaketime (Debian: apt-get install libfaketime)';

const database = eachTest(databaseOfTest);
const receiver = eachTest(receiverOfTest);
const sql = eachTest(() => sqlOfTest(database.url));
let directory: string;

beforeEach(async () => {
  directory = await mkdtemp(join(tmpdir(), 'firelock-clocks-'));
});

afterEach(async () => {
  await rm(directory, { recursive: true, force: true });
});

const start = (variables: Variables = {}): Promise<Daemon> => readyDaemon(database.url, { ...SCALED, ...variables });

interface Clock {
  variables: Variables;
  /** From now on it is wrong by so much, also in a process that runs. */
  set(seconds: number): Promise<void>;
}

/** A wall clock that is wrong. The monotonic clock stays right, as it does when a user sets a machine's time. */
async function wrongClock(name: string, seconds: number): Promise<Clock> {
  const file = join(directory, name);
  const set = (by: number) => writeFile(file, by < 0 ? String(by) : `+${by}`);
  await set(seconds);
  return {
    variables: {
      LD_PRELOAD: LIBRARY ?? '',
      FAKETIME_TIMESTAMP_FILE: file,
      FAKETIME_NO_CACHE: '1',
      FAKETIME_DONT_FAKE_MONOTONIC: '1',
    },
    set,
  };
}

/** What the daemon's own log says of its clock, as the difference to this process's: by that the test knows that it is wrong. */
function offByHours(daemon: Daemon): number {
  const last = daemon.log().at(-1);
  // No negative zero.
  return Math.round((Date.parse(String(last?.['time'])) - Date.now()) / 3_600_000) + 0;
}

const more = (fires: number) => receiver.arrived(receiver.arrivals.length + fires);

async function leave(...daemons: Daemon[]): Promise<void> {
  for (const daemon of daemons) daemon.signal('SIGTERM');
  for (const { exited } of daemons) expect(await exited).toBe(0);
}

/** Each second once, none early; what is written down of it is in the database's time. */
async function expectEachOnce(daemon: Daemon): Promise<void> {
  await pauseAll(daemon, SCHEDULES);
  const runs = await endedRuns(sql);
  expect(await expectEverySecondPlanned(sql)).toBe(runs.length);
  expectArrived(receiver, runs);
  expect(receiver.arrivals).toHaveLength(runs.length);
  for (const run of runs) expect(run).toMatchObject({ status: 'succeeded', failures: 0 });
  const inAnotherTime = await sql`SELECT * FROM all_runs WHERE NOT (lateness_ms BETWEEN 0 AND 60000)
    OR NOT (finished_at BETWEEN scheduled_for AND clock_timestamp())
    OR NOT (handoff_started_at BETWEEN scheduled_for AND finished_at)`;
  expect([...inAnotherTime]).toEqual([]);
}

describe('wall clocks that are wrong', () => {
  it('by an hour in either direction make no fire early, late, doubled or lost, with a right one beside them or without', async (context) => {
    if (LIBRARY === undefined) context.skip(NO_LIBRARY);
    const right = await start();
    const fast = await start((await wrongClock('fast', 3600)).variables);
    const slow = await start((await wrongClock('slow', -3600)).variables);
    expect([right, fast, slow].map(offByHours)).toEqual([0, 1, -1]);
    await putEverySecond(slow, receiver, SCHEDULES);
    await more(TWO_SECONDS_OF_FIRES);
    await leave(right);
    await more(TWO_SECONDS_OF_FIRES);
    await leave(fast);
    await more(TWO_SECONDS_OF_FIRES);
    const again = await start((await wrongClock('again', 3600)).variables);
    await leave(slow);
    await more(TWO_SECONDS_OF_FIRES);
    await expectEachOnce(again);
    const dead = [right, fast, slow, again].flatMap((daemon) =>
      daemon.log().filter(({ msg }) => /declared dead|went back|lost/.test(msg)),
    );
    expect(dead).toEqual([]);
  });

  it('that are set while the daemon runs stop it for a beat at most, and it keeps its id', async (context) => {
    if (LIBRARY === undefined) context.skip(NO_LIBRARY);
    const right = await start();
    const clock = await wrongClock('stepping', 0);
    const stepping = await start(clock.variables);
    await putEverySecond(stepping, receiver, SCHEDULES);
    await more(TWO_SECONDS_OF_FIRES);
    for (const seconds of [3600, -3600, 5, 0]) {
      await clock.set(seconds);
      await more(TWO_SECONDS_OF_FIRES);
      await stepping.ready();
    }
    await leave(right);
    await clock.set(-3600);
    await more(TWO_SECONDS_OF_FIRES);
    await expectEachOnce(stepping);
    expect(offByHours(stepping)).toBe(-1);
    const registered = stepping.log().filter(({ msg }) => msg === 'registered as an instance');
    expect(registered).toHaveLength(1);
    expect(stepping.log().filter(({ msg }) => /declared dead|went back|lost/.test(msg))).toEqual([]);
  });
});

it('an event loop that is blocked for longer than the time to live comes back under a new id, and no fire is lost', async () => {
  const blocked = await start({ NODE_OPTIONS: '--inspect=127.0.0.1:0' });
  const other = await start();
  await putEverySecond(blocked, receiver, SCHEDULES);
  await more(TWO_SECONDS_OF_FIRES);

  const turns = await blockUntil(blocked, () => other.logged(/^silent instances declared dead/));
  expect(turns).toBe('blocked');
  const replaced = await blocked.logged(/continues under a new id$/);
  const [deaths] = other.log().filter(({ msg }) => msg.startsWith('silent instances declared dead'));
  expect(deaths?.['instanceIds']).toEqual([replaced['previousId']]);
  await blocked.ready();
  await more(TWO_SECONDS_OF_FIRES);
  await leave(other);
  await more(TWO_SECONDS_OF_FIRES);
  await pauseAll(blocked, SCHEDULES);

  const runs = await endedRuns(sql);
  expect(await expectEverySecondPlanned(sql)).toBe(runs.length);
  expectArrived(receiver, runs);
  for (const run of runs) expect(run).toMatchObject({ status: 'succeeded', failures: 0 });
  await leave(blocked);
});

/** Keeps the process's event loop from turning until the work is done, by its inspector. Resolves with what the blocking said in the end. */
async function blockUntil(daemon: Daemon, work: () => Promise<unknown>): Promise<unknown> {
  const url = await until(() => daemon.lines.map((line) => /ws:\/\/\S+/.exec(line)?.[0]).find(Boolean) ?? null);
  const end = join(directory, 'unblock');
  // Looks at a file rather than at a clock; waits in between, so that it takes no processor time from others.
  const expression = `{
    const { existsSync } = process.getBuiltinModule('node:fs');
    const lock = new Int32Array(new SharedArrayBuffer(4));
    while (!existsSync(${JSON.stringify(end)})) Atomics.wait(lock, 0, 0, 20);
    'blocked';
  }`;
  const socket = new WebSocket(url);
  await new Promise((resolve) => socket.addEventListener('open', resolve, { once: true }));
  const answered = new Promise<string>((resolve) =>
    socket.addEventListener('message', ({ data }) => resolve(String(data)), { once: true }),
  );
  socket.send(JSON.stringify({ id: 1, method: 'Runtime.evaluate', params: { expression } }));
  await work();
  await writeFile(end, '');
  const answer = JSON.parse(await answered) as { result: { result: { value?: unknown } } };
  socket.close();
  return answer.result.result.value;
}
