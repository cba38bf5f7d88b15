import { sql } from 'drizzle-orm';
import postgres from 'postgres';
import { beforeEach, describe, expect, it, onTestFinished } from 'vitest';
import type { FirelockEvent } from '../../src/core/events.ts';
import type { Definition } from '../../src/core/schedules/schedule.ts';
import { completeRun, heartbeatRun } from '../../src/operations/runs/act-on-runs.ts';
import { type ExpiryDeps, createExpiry } from '../../src/recovery/expiry.ts';
import { systemClock } from '../../src/runtime/clock.ts';
import { createEventBus } from '../../src/runtime/event-bus.ts';
import type { Loop } from '../../src/runtime/loop/loop.ts';
import type { Wake } from '../../src/runtime/loop/wake.ts';
import type { Database } from '../../src/postgres/database.ts';
import { QueryTimeout } from '../../src/postgres/errors.ts';
import { claimPullRuns } from '../../src/store/queues/pull-claims.ts';
import { createHttpTarget } from '../../src/targets/http.ts';
import { createTargetRegistry } from '../../src/targets/target.ts';
import { instanceOfTest, receiverOfTest, storeOfTest, eachTest } from '../support/of-test.ts';
import type { Answer } from '../support/receiver.ts';
import { changeRun, changeRunIn } from '../support/run-rows.ts';
import { until } from '../support/until.ts';
import { LONG } from '../support/runner/long.ts';
import { targetAt } from '../support/targets.ts';

const AT_ONCE = { maxAttempts: 5, minBackoffSeconds: 0, maxBackoffSeconds: 0 };
const NOBODY = '00000000-0000-0000-0000-000000000000';

const store = eachTest(storeOfTest);
const receiver = eachTest(() => receiverOfTest((arrival, response) => answer(arrival, response)));
const instance = eachTest(() => instanceOfTest(store));
let answer: Answer;

beforeEach(() => {
  answer = (_, response) => response.writeHead(202).end('{}');
});

/** The loop, and what it told. */
interface Expiring {
  loop: Loop;
  events: FirelockEvent[];
  /** Which loops it woke, in order. */
  woken: string[];
  /** Until it has looked twice from now on, so that one look began after this call. */
  looked: () => Promise<void>;
}

function expiring(overrides: Partial<ExpiryDeps> = {}): Expiring {
  const events: FirelockEvent[] = [];
  const woken: string[] = [];
  const bus = createEventBus();
  bus.subscribe((event) => void events.push(event));
  const targets = createTargetRegistry([
    createHttpTarget({ clock: systemClock, version: 'test', connectionsPerOrigin: 1 }),
  ]);
  const loop = createExpiry({
    database: store.database,
    clock: systemClock,
    events: bus,
    targets,
    graceSeconds: 0,
    wake: recordingWake(woken),
    ...overrides,
  });
  void loop.start();
  onTestFinished(async () => {
    await loop.stop();
    await targets.close();
  });
  return {
    loop,
    events,
    woken,
    looked: async () => {
      const wanted = loop.passes() + 2;
      await until(() => {
        loop.wake();
        return loop.passes() > wanted || null;
      });
    },
  };
}

/** The instance's own, and what was woken. */
function recordingWake(woken: string[]): Wake {
  const { wake } = instance.pipeline;
  const recorded = (name: keyof Wake) => () => {
    woken.push(name);
    wake[name]();
  };
  return {
    effects: recorded('effects'),
    dispatch: recorded('dispatch'),
    workers: recorded('workers'),
    admission: recorded('admission'),
    alerts: recorded('alerts'),
  };
}

const OF_W1 = { attempt: 1, workerId: 'w1' };

interface Row {
  id: string;
  status: string;
  attempts: number;
  failures: number;
  lookups: number;
  claimed_by: string | null;
  claimed_at: string | null;
  handoff_started_at: string | null;
  handed_off_at: string | null;
  finished_at: string | null;
  due_at: string;
  in_doubt_until: string | null;
  expires_at: string | null;
  worker_id: string | null;
  error: { kind: string; message: string } | null;
}
const row = async (id: string) => {
  const [found] = await store.rows<Row>(sql`SELECT * FROM all_runs WHERE id = ${id}`);
  if (!found) throw new Error(`there is no run ${id}`);
  return found;
};
const reaches = (id: string, status: string) =>
  until(async () => {
    const found = await row(id);
    return found.status === status ? found : null;
  });
const log = (id: string) =>
  store.rows<{ attempt: number; outcome: string; instance_id: string; status_code: number | null }>(
    sql`SELECT (entry->>'attempt')::int AS attempt, entry->>'outcome' AS outcome, entry->>'instanceId' AS instance_id,
      (entry->>'statusCode')::int AS status_code, entry->'error'->>'kind' AS error
    FROM all_runs, jsonb_array_elements(attempt_log) AS entry WHERE id = ${id} ORDER BY 1`,
  );
const expiredIn = (events: readonly FirelockEvent[]) =>
  events.flatMap((event) => (event.type === 'runsExpired' ? event.runs : []));
/** As if time had passed. */
const rewind = (...ids: string[]) =>
  store.rows(
    sql`UPDATE runs SET expires_at = clock_timestamp() - interval '1 second' WHERE id::text = ANY (string_to_array(${ids.join(',')}, ','))`,
  );

/** A run that its target has accepted, and whose completion is awaited. */
async function accepted(definition: Partial<Definition> = {}): Promise<string> {
  await instance.start();
  await instance.put('one', { url: receiver.url, completion: 'callback', ...definition });
  const { id } = await instance.fire('one');
  await reaches(id, 'running');
  return id;
}

/** Runs of a queue, leased to a worker. */
async function leased(count: number, given: { maxAttempts?: number; leaseSeconds?: number } = {}) {
  const { maxAttempts = 5, leaseSeconds = 60 } = given;
  const asked = Array.from({ length: count }, () => ({ queue: 'q', retry: { ...AT_ONCE, maxAttempts } }));
  const ids = (await instance.accept(...asked)).map((one) => one.id);
  await claim(leaseSeconds, count);
  return ids;
}
const claim = (leaseSeconds: number, max: number) =>
  store.database.transaction((tx) =>
    claimPullRuns(tx, {
      queue: 'q',
      instanceId: instance.id,
      asks: [{ workerId: 'w1', max, leaseSeconds, scope: null }],
    }),
  );
const only = ([id]: string[]) => {
  if (id === undefined) throw new Error('nothing was recorded');
  return id;
};

describe('an expired lease', () => {
  it('is a failure, and the run waits for the next claim after its backoff', async () => {
    const id = only(await leased(1));
    await rewind(id);
    const { events, woken } = expiring();
    const found = await reaches(id, 'pending');
    expect(found).toMatchObject({
      attempts: 1,
      failures: 1,
      claimed_by: null,
      claimed_at: null,
      handoff_started_at: null,
      handed_off_at: null,
      finished_at: null,
      expires_at: null,
      worker_id: 'w1',
      error: {
        kind: 'expired',
        message: expect.stringMatching(/^the lease of worker w1 ran out at 20/) as string,
      },
    });
    expect(await log(id)).toEqual([
      { attempt: 1, outcome: 'unknown', instance_id: instance.id, status_code: null, error: 'expired' },
    ]);
    await until(() => expiredIn(events).length > 0 || null);
    expect(expiredIn(events)).toMatchObject([
      {
        runId: id,
        scheduleId: null,
        attempt: 1,
        workerId: 'w1',
        settlement: { status: 'pending', durationMs: null, inDoubt: false },
      },
    ]);
    expect(woken).toEqual(['dispatch', 'workers']);
    await claim(60, 1);
    expect(await row(id)).toMatchObject({ status: 'running', attempts: 2 });
  });

  it('fails the run with its last attempt, and those that depend on it with that', async () => {
    await instance.start();
    const [parent = '', child = ''] = (
      await instance.accept(
        { ref: 'a', queue: 'q', retry: { ...AT_ONCE, maxAttempts: 1 } },
        { dependsOn: ['a'], url: receiver.url },
      )
    ).map(({ id }) => id);
    await claim(60, 1);
    await rewind(parent);
    const { events } = expiring();
    expect(await reaches(parent, 'failed')).toMatchObject({
      failures: 1,
      error: { kind: 'expired' },
      expires_at: null,
      claimed_by: instance.id,
    });
    await reaches(child, 'failed');
    const [one] = expiredIn(events);
    expect(one?.settlement.durationMs).toBeGreaterThanOrEqual(0);
  });

  it('has no effect before its time', async () => {
    const id = only(await leased(1));
    const { looked, events } = expiring();
    await looked();
    expect(await row(id)).toMatchObject({ status: 'running', failures: 0 });
    expect(expiredIn(events)).toEqual([]);
  });

  it('is found whatever became of the definition, which then counts as at least once', async () => {
    const id = only(await leased(1));
    await store.rows(sql`DELETE FROM schedule_versions`);
    await rewind(id);
    expiring();
    expect(await reaches(id, 'pending')).toMatchObject({ failures: 1 });
  });

  it('for a row without a claimant is logged without a name', async () => {
    const id = only(await leased(1));
    await store.rows(
      sql`UPDATE runs SET claimed_by = NULL, claimed_at = NULL, handoff_started_at = NULL WHERE id = ${id}`,
    );
    await rewind(id);
    expiring();
    await reaches(id, 'pending');
    expect(await log(id)).toMatchObject([{ attempt: 1, instance_id: NOBODY }]);
  });

  it('is found among all others, more than one batch of them', async () => {
    const ids: string[] = [];
    for (let batch = 0; batch < 6; batch += 1) ids.push(...(await leased(100)));
    await rewind(...ids);
    const { events } = expiring();
    await until(() => expiredIn(events).length === 600 || null);
    const [left] = await store.rows<{ count: number }>(
      sql`SELECT count(*)::int FROM all_runs WHERE status <> 'pending' OR failures <> 1`,
    );
    expect(left?.count).toBe(0);
  });

  it('for a row that cannot be written keeps no other from being settled', async () => {
    const ids = await leased(5);
    const [bad = '', ...good] = ids;
    await store.rows(sql`UPDATE runs SET failures = 2147483647 WHERE id = ${bad}`);
    await rewind(...ids);
    const { events } = expiring();
    for (const id of good) await reaches(id, 'pending');
    await until(() => events.some(({ type }) => type === 'expiryRefused') || null);
    expect(events.find(({ type }) => type === 'expiryRefused')).toMatchObject({ runId: bad });
    expect(await row(bad)).toMatchObject({ status: 'running' });
  });
});

describe('a completion that does not come', () => {
  it('leads to another attempt under its id', async () => {
    const id = await accepted({ retry: AT_ONCE });
    await rewind(id);
    expiring();
    await receiver.arrived(2);
    expect(await reaches(id, 'running')).toMatchObject({ failures: 1 });
    expect(receiver.arrivals.map(({ body }) => [body.runId, body.attempt])).toEqual([
      [id, 1],
      [id, 2],
    ]);
    expect((await log(id))[0]).toEqual({
      attempt: 1,
      outcome: 'unknown',
      instance_id: instance.id,
      status_code: 202,
      error: 'expired',
    });
  });

  it('for a later attempt replaces its log entry', async () => {
    answer = ({ body }, response) => response.writeHead(body.attempt === 1 ? 503 : 202).end();
    const id = await accepted({ retry: { ...AT_ONCE, maxAttempts: 2 } });
    expect(await log(id)).toMatchObject([{ outcome: 'transient' }, { attempt: 2, outcome: 'accepted' }]);
    await rewind(id);
    expiring();
    expect(await reaches(id, 'failed')).toMatchObject({ failures: 2, error: { kind: 'expired' } });
    expect(await log(id)).toMatchObject([
      { attempt: 1, outcome: 'transient', status_code: 503 },
      { attempt: 2, outcome: 'unknown', status_code: 202, error: 'expired' },
    ]);
  });

  it('ends the run as unknown under at most once, until a late report of its target', async () => {
    const id = await accepted({ delivery: 'atMostOnce' });
    await instance.put('after', {
      url: `${receiver.url}/after`,
      cron: null,
      after: { scheduleId: 'one', on: ['unknown'] },
    });
    await rewind(id);
    const { events } = expiring();
    expect(await reaches(id, 'unknown')).toMatchObject({
      failures: 0,
      error: {
        kind: 'expired',
        message: expect.stringMatching(/^no completion or heartbeat came by 20/) as string,
      },
    });
    await receiver.arrived(2);
    expect(receiver.arrivals.map(({ path }) => path)).toEqual(['/', '/after']);
    expect(expiredIn(events)).toMatchObject([{ workerId: null, settlement: { status: 'unknown' } }]);
    const word = { status: 'succeeded', attempt: 1, workerId: null, result: null, error: null } as const;
    expect(await completeRun(instance.deps, id, word)).toMatchObject({
      run: { status: 'succeeded', error: null },
    });
  });

  it.each(['atLeastOnce', 'atMostOnce'] as const)(
    'leads to a lookup first if the target has one (%s)',
    async (delivery) => {
      answer = ({ path }, response) => {
        if (path === '/lookup') response.end('{"executionId":"e1","status":"succeeded"}');
        else response.writeHead(202).end('{}');
      };
      const lookup = { url: `${receiver.url}/lookup`, method: 'GET', headers: {} } as const;
      const target = targetAt(receiver.url);
      const id = await accepted({
        delivery,
        retry: { ...AT_ONCE, maxAttempts: 1 },
        target: { ...target, lookup },
      });
      await rewind(id);
      const { events } = expiring();
      const found = await reaches(id, 'succeeded');
      expect(found).toMatchObject({ attempts: 2 });
      expect(receiver.arrivals.map(({ path }) => path)).toEqual(['/', '/lookup']);
      expect(expiredIn(events)).toMatchObject([{ settlement: { status: 'pending', inDoubt: true } }]);
    },
  );
});

describe('a run whose report arrives at that moment', () => {
  async function endAbandoned(id: string): Promise<void> {
    const client = postgres(store.url, { max: 1, onnotice: () => undefined });
    try {
      await changeRun(client, id, { status: 'abandoned' });
    } finally {
      await client.end();
    }
  }

  /** Another transaction that has the run's row, and ends after the loop has looked. */
  async function whileLocked(
    write: (tx: postgres.TransactionSql) => Promise<unknown>,
    meanwhile: () => Promise<unknown>,
  ): Promise<void> {
    const client = postgres(store.url, { max: 1, onnotice: () => undefined });
    try {
      await client.begin(async (tx) => {
        await write(tx);
        await meanwhile();
      });
    } finally {
      await client.end();
    }
  }

  it('goes on after a heartbeat that was being written, and no other waits for that', { tags: [LONG] }, async () => {
    const [id = '', other = ''] = await leased(2);
    await rewind(id, other);
    await whileLocked(
      (tx) => tx`UPDATE runs SET expires_at = clock_timestamp() + interval '1 hour' WHERE id = ${id}`,
      async () => {
        const { looked } = expiring();
        await reaches(other, 'pending');
        await looked();
      },
    );
    const { looked } = expiring();
    await looked();
    expect(await row(id)).toMatchObject({ status: 'running', failures: 0, attempts: 1 });
    expect(await log(id)).toEqual([]);
  });

  it('has ended if that was being written', { tags: [LONG] }, async () => {
    const id = only(await leased(1));
    await rewind(id);
    await whileLocked(
      (tx) => changeRunIn(tx, id, { status: 'succeeded', expires_at: null }),
      async () => {
        const { looked } = expiring();
        await looked();
      },
    );
    const { looked, events } = expiring();
    await looked();
    expect(await row(id)).toMatchObject({ status: 'succeeded' });
    expect(expiredIn(events)).toEqual([]);
  });

  it.each([
    ['goes on', 'running', (id: string) => heartbeatRun(instance.deps, id, { ...OF_W1, progress: null })],
    [
      'has ended it',
      'succeeded',
      (id: string) => completeRun(instance.deps, id, { ...OF_W1, status: 'succeeded', result: null, error: null }),
    ],
    ['finds it ended', 'abandoned', (id: string) => endAbandoned(id)],
  ])('between the look and the write %s', async (_, status, meanwhile) => {
    const id = only(await leased(1));
    await rewind(id);
    let came = 0;
    const interrupted: Database = {
      ...store.database,
      transaction: async (work, limitMs) => {
        await meanwhile(id);
        came += 1;
        return store.database.transaction(work, limitMs);
      },
    };
    const { looked, events } = expiring({ database: interrupted });
    await looked();
    expect(came).toBe(1);
    expect(await row(id)).toMatchObject({ status, failures: 0, attempts: 1 });
    expect(await log(id)).toEqual([]);
    expect(expiredIn(events)).toEqual([]);
  });

  it('is found by all instances: one of them expires it', async () => {
    const ids = await leased(50);
    await rewind(...ids);
    const both = [expiring(), expiring()];
    await until(() => both.flatMap(({ events }) => expiredIn(events)).length >= 50 || null);
    for (const { looked } of both) await looked();
    expect(both.flatMap(({ events }) => expiredIn(events))).toHaveLength(50);
    const [worst] = await store.rows<{ failures: number }>(sql`SELECT max(failures) AS failures FROM all_runs`);
    expect(worst?.failures).toBe(1);
  });
});

describe('while no report could arrive for some time', () => {
  /** As half of its lease is over then. */
  const restOfGrace = (id: string) => store.rows(sql`UPDATE runs SET lease_seconds = 0.001 WHERE id = ${id}`);

  it('a run gets some of its lease once an instance works again, and expires after that', async () => {
    const [long = ''] = await leased(1, { leaseSeconds: 3600 });
    await rewind(long);
    const [short = ''] = await leased(1, { leaseSeconds: 0.001 });
    const { looked } = expiring({ graceSeconds: 3600 });
    await reaches(short, 'pending');
    await looked();
    expect(await row(long)).toMatchObject({ status: 'running', failures: 0 });
    await restOfGrace(long);
    await reaches(long, 'pending');
  });

  it('and once the database is back', async () => {
    let away = false;
    const database: Database = {
      ...store.database,
      run: (work, limitMs) => (away ? Promise.reject(new QueryTimeout(1)) : store.database.run(work, limitMs)),
    };
    const [long = '', other = ''] = await leased(2, { leaseSeconds: 2 });
    const { loop, looked, events } = expiring({ database, graceSeconds: 3600 });
    await looked();
    // The grace of its start is over; their lease is longer than what follows.
    await rewind(other);
    await reaches(other, 'pending');
    await store.rows(sql`UPDATE runs SET lease_seconds = 3600 WHERE id = ${long}`);
    away = true;
    await until(() => {
      loop.wake();
      return events.some(({ type }) => type === 'loopFailed') || null;
    });
    await rewind(long);
    const [short = ''] = await leased(1, { leaseSeconds: 0.001 });
    away = false;
    await reaches(short, 'pending');
    await looked();
    expect(await row(long)).toMatchObject({ status: 'running', failures: 0 });
    await restOfGrace(long);
    await reaches(long, 'pending');
  });

  it('a row without a lease gets nothing', async () => {
    const id = only(await leased(1));
    await store.rows(sql`UPDATE runs SET lease_seconds = NULL WHERE id = ${id}`);
    await rewind(id);
    expiring({ graceSeconds: 3600 });
    expect(await reaches(id, 'pending')).toMatchObject({ failures: 1 });
  });
});
