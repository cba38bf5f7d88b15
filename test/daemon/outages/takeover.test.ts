// @module-tag long
import type { ServerResponse } from 'node:http';
import { beforeEach, expect, it } from 'vitest';
import { eachTest, databaseOfTest, receiverOfTest, sqlOfTest } from '../../support/of-test.ts';
import { type Daemon, readyDaemon } from '../../support/daemon.ts';
import { type RunRow, endedRuns, summed } from '../../support/fires.ts';
import { notThroughPooler } from '../../support/postgres/pooler.ts';
import type { Arrival } from '../../support/receiver.ts';
import { until } from '../../support/until.ts';

/** The defaults, scaled down; four handoffs at once, of which a target that does not answer gets half. */
const SCALED = {
  FIRELOCK_HEARTBEAT_INTERVAL_SECONDS: '1',
  FIRELOCK_INSTANCE_TTL_SECONDS: '4',
  FIRELOCK_RECOVERY_INTERVAL_SECONDS: '1',
  FIRELOCK_DISPATCH_CONCURRENCY: '4',
};
const UNDER_WAY = 2;
const FIRES = 12;

const database = eachTest(databaseOfTest);
const receiver = eachTest(() =>
  receiverOfTest((_, response) => {
    if (holding) owed.push(response);
    else response.end('{}');
  }),
);
const sql = eachTest(() => sqlOfTest(database.url));
/** What the receiver owes an answer, while it holds answers back. */
let owed: ServerResponse[];
let holding: boolean;

beforeEach(() => {
  [owed, holding] = [[], true];
});

const start = (): Promise<Daemon> => readyDaemon(database.url, SCALED);
const runs = () => sql<RunRow[]>`SELECT * FROM all_runs ORDER BY created_at, id`;

function answerAll(): void {
  holding = false;
  for (const response of owed.splice(0)) response.end('{}');
}

interface Victim {
  daemon: Daemon;
  instanceId: string;
  runs: RunRow[];
  /** With the receiver, which does not answer. What else the victim has claimed waits for a slot, or goes back after a while. */
  underWay: Set<string>;
}

/** A daemon with handoffs under way and claims ahead of them, half of each to be handed off at most once. */
async function startVictim(): Promise<Victim> {
  const daemon = await start();
  for (const [id, delivery] of [
    ['again', 'atLeastOnce'],
    ['once', 'atMostOnce'],
  ]) {
    const target = { type: 'http', url: receiver.url };
    const put = await daemon.call('PUT', `/api/v1/schedules/${id}`, { cron: '0 0 1 1 *', target, delivery });
    expect(put.status).toBe(201);
  }
  for (let fire = 0; fire < FIRES; fire += 1) {
    const id = fire % 2 === 0 ? 'again' : 'once';
    expect((await daemon.call('POST', `/api/v1/schedules/${id}/fire`)).status).toBe(202);
  }
  const arrivals = await receiver.arrived(UNDER_WAY);
  const underWay = new Set(arrivals.map(({ body }) => body.runId));
  expect(underWay.size).toBe(UNDER_WAY);
  const claimedAhead = await until(async () => {
    const rows = await runs();
    return rows.filter(({ id, claimed_by }) => claimed_by !== null && !underWay.has(id))[0] ?? null;
  });
  const all = await runs();
  expect(all).toHaveLength(FIRES);
  return { daemon, instanceId: claimedAhead.claimed_by ?? '', runs: all, underWay };
}

const arrivalsOf = (run: RunRow): Arrival[] => receiver.arrivals.filter(({ body }) => body.runId === run.id);

/**
 * What became of the victim's runs when it could not finish them: each is accounted for, none arrived under another id.
 * Answers the counts that must follow.
 */
function expectTakenOver({ runs, underWay }: Victim, ended: readonly RunRow[]): Counted {
  expect(ended.map(({ id }) => id).sort()).toEqual(runs.map(({ id }) => id).sort());
  const lost = ended.filter(({ lost_at }) => lost_at !== null);
  expect(lost.map(({ id }) => id)).toEqual(expect.arrayContaining([...underWay]));
  // Also what it had claimed ahead.
  expect(lost.length).toBeGreaterThan(UNDER_WAY);
  for (const run of ended) {
    const sent = underWay.has(run.id);
    const again = run.schedule_id === 'again';
    const [first, second, ...others] = arrivalsOf(run);
    expect(others).toEqual([]);
    if (run.lost_at === null) {
      expect(run).toMatchObject({ status: 'succeeded', recoveries: 0, failures: 0 });
      expect(second).toBeUndefined();
      continue;
    }
    if (sent && !again) {
      expect(run).toMatchObject({ status: 'unknown', attempts: 1, recoveries: 0 });
      expect(second).toBeUndefined();
      continue;
    }
    expect(run).toMatchObject({ status: 'succeeded', recoveries: 1, failures: 0 });
    // On a busy machine a claim may be handed back before it is sent: its number is used up.
    expect(run.attempts).toBeGreaterThanOrEqual(2);
    const recovered = sent ? second : first;
    expect(recovered?.headers['idempotency-key']).toBe(run.id);
    expect(recovered?.body).toMatchObject({ attempt: run.attempts, recovery: { recoveries: 1 } });
    if (sent) expect(first?.body).toMatchObject({ attempt: 1, recovery: null });
    else expect(second).toBeUndefined();
  }
  const unknown = ended.filter(({ status }) => status === 'unknown').length;
  return { lost: lost.length, recovered: lost.length - unknown, unknown };
}

const endOf = (run: RunRow) => ({ ...run, attempt_log: null });

type Counted = Record<'lost' | 'recovered' | 'unknown', number>;

/** What the daemons counted since they started is what stands in the rows. */
async function expectCountedAs(daemons: [Daemon, ...Daemon[]], expected: Counted): Promise<void> {
  const { body } = await daemons[0].call('GET', '/api/v1/stats');
  expect(body).toMatchObject({
    totalRuns: FIRES,
    openRuns: 0,
    lostRuns: expected.lost,
    recoveredRuns: expected.recovered,
    unknownRuns: expected.unknown,
  });
  for (const [name, value] of Object.entries(expected)) {
    expect({ [name]: await summed(daemons, `firelock_runs_${name}_total`) }).toEqual({ [name]: value });
  }
}

it('another daemon continues what a killed one had under way and had claimed ahead, under the same ids', async () => {
  const victim = await startVictim();
  const other = await start();
  victim.daemon.signal('SIGKILL');
  expect(await victim.daemon.exited).toBe('SIGKILL');
  answerAll();

  const ended = await endedRuns(sql);
  await expectCountedAs([other], expectTakenOver(victim, ended));
  expect((await other.logged(/^silent instances declared dead/))['instanceIds']).toEqual([victim.instanceId]);
  const lost = await other.logged(/^lost runs found/);
  expect(lost).toMatchObject({ found: 'orphaned', instances: [victim.instanceId] });
});

it('another daemon does what a stopping one had claimed ahead before that one is gone, and nothing counts as lost', async () => {
  const victim = await startVictim();
  const other = await start();
  victim.daemon.signal('SIGTERM');
  holding = false;
  // Those under way are not answered yet: the daemon that has them is still there.
  await until(async () => {
    const done = (await runs()).filter(({ status }) => status === 'succeeded');
    return done.length === FIRES - UNDER_WAY || null;
  });
  const [left] = await sql<{ died_at: Date | null }[]>`
    SELECT died_at FROM instances WHERE id = ${victim.instanceId}`;
  expect(left?.died_at).toBeNull();
  expect(receiver.arrivals).toHaveLength(FIRES);
  answerAll();
  expect(await victim.daemon.exited).toBe(0);

  const ended = await endedRuns(sql);
  for (const run of ended) {
    expect(run).toMatchObject({ status: 'succeeded', recoveries: 0, failures: 0, lost_at: null });
    expect(arrivalsOf(run)).toHaveLength(1);
    expect(arrivalsOf(run)[0]?.body.recovery).toBeNull();
  }
  await expectCountedAs([other], { lost: 0, recovered: 0, unknown: 0 });
});

it('an idle daemon takes up what another hands back without waiting for its next look', async (context) => {
  notThroughPooler(context, 'LISTEN hears nothing there');
  const victim = await startVictim();
  // Nothing but being told makes this one look within the minute.
  const other = await readyDaemon(database.url, {
    FIRELOCK_TICK_INTERVAL_MS: '60000',
    FIRELOCK_HEARTBEAT_INTERVAL_SECONDS: '60',
    FIRELOCK_INSTANCE_TTL_SECONDS: '122',
    FIRELOCK_RECOVERY_INTERVAL_SECONDS: '60',
  });
  const looks = () => summed([other], 'firelock_tick_duration_seconds_count');
  await until(async () => (await looks()) > 0 || null);
  const before = await looks();
  holding = false;
  victim.daemon.signal('SIGTERM');
  await receiver.arrived(FIRES);
  // However long that took: its own next look was still to come.
  expect(await looks()).toBe(before);
  answerAll();
  expect(await victim.daemon.exited).toBe(0);
  expect(await summed([other], 'firelock_handoffs_total{target="http",outcome="accepted"}')).toBe(FIRES - UNDER_WAY);
});

it('a daemon that was frozen for longer than its time to live goes on under a new id and sends nothing that it had claimed', async () => {
  const victim = await startVictim();
  const other = await start();
  victim.daemon.signal('SIGSTOP');
  // Those that the frozen one has under way stay unanswered: they are of its old claims.
  holding = false;
  const ended = await endedRuns(sql);
  const counted = expectTakenOver(victim, ended);
  const arrived = receiver.arrivals.length;

  victim.daemon.signal('SIGCONT');
  const replaced = await victim.daemon.logged(/continues under a new id$/);
  expect(replaced['previousId']).toBe(victim.instanceId);
  answerAll();
  await until(() => {
    const late = victim.daemon.log().filter(({ msg }) => msg.startsWith('an outcome came too late'));
    return late.length === UNDER_WAY || null;
  });
  await victim.daemon.ready();
  expect(receiver.arrivals).toHaveLength(arrived);
  // A late answer is noted in the log of attempts, and changes nothing else.
  expect((await runs()).map(endOf)).toEqual(expect.arrayContaining(ended.map(endOf)));
  await expectCountedAs([other, victim.daemon], counted);

  // It works: with the other one gone it is the only one that can.
  other.signal('SIGTERM');
  expect(await other.exited).toBe(0);
  expect((await victim.daemon.call('POST', '/api/v1/schedules/again/fire')).status).toBe(202);
  await receiver.arrived(arrived + 1);
  const fresh = (await endedRuns(sql)).find(({ id }) => !ended.some((run) => run.id === id));
  expect(fresh).toMatchObject({ status: 'succeeded', attempts: 1, claimed_by: replaced['instanceId'] });
});
