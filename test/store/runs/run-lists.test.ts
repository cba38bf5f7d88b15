import { randomUUID } from 'node:crypto';
import { type SQL, sql } from 'drizzle-orm';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { owns, sees } from '../../../src/core/access/scope.ts';
import { DAY_MS, dayOf } from '../../../src/core/instant.ts';
import {
  RUN_STATUSES,
  RUN_TRIGGERS,
  type RunStatus,
  type RunTrigger,
  isEnd,
  isOfSchedule,
  randomRunId,
} from '../../../src/core/runs/run.ts';
import { systemClock } from '../../../src/runtime/clock.ts';
import { type Database, openDatabase } from '../../../src/postgres/database.ts';
import type { Executor } from '../../../src/postgres/executor.ts';
import { rowsOf } from '../../../src/postgres/sql/rows.ts';
import { createPartition } from '../../../src/postgres/history-partitions.ts';
import { ONE_OFF_KEYS } from '../../../src/store/runs/idempotency-keys.ts';
import { pageOfLabelled } from '../../../src/store/runs/search/labelled-runs.ts';
import { type Labels, labelled } from '../../../src/store/schedules/search/schedule-conditions.ts';
import { listRuns } from '../../../src/store/runs/search/find-runs.ts';
import { matchingRuns } from '../../../src/store/runs/search/matching-runs.ts';
import { pageInScope } from '../../../src/store/runs/search/runs-in-scope.ts';
import type { RunFilter } from '../../../src/store/runs/search/run-pages.ts';
import { type TestDatabase, createMigrated } from '../../support/postgres/cluster.ts';
import { runIdAt } from '../../support/pending-runs.ts';
import { type PlanNode, rowsIn } from '../../support/postgres/plans.ts';
import { createRandom } from '../../chaos/random.ts';

/** The same in every run. */
const random = createRandom(7, 'run-pages');

const NOW = systemClock.now();
/** A busy machine takes seconds for so many rows. */
const SEED_LIMIT_MS = 60_000;
const SCOPE = ['billing.', 'ops.night-'];
/** With a partition each. What ended before stands in the default one; a page is planned for all of them, which is most of its time. */
const DAYS = 6;

let own: TestDatabase;
let database: Database;
beforeAll(async () => {
  own = await createMigrated();
  database = openDatabase(own.url, 1);
  for (let day = 1; day <= DAYS; day += 1) {
    await database.run((db) => createPartition(db, dayOf(NOW) - day * DAY_MS));
  }
});
afterAll(async () => {
  await database.close();
  await own.drop();
});

const allRuns: PageOf = (db, filter) => listRuns(db, { ...filter, scope: null });

type PageOf = (db: Executor, filter: RunFilter) => Promise<{ id: string }[]>;

interface Listed {
  id: string;
  scheduledFor: number;
  /** Where it has ended. */
  endedAt: number;
  uid: string;
  status: RunStatus;
  trigger: RunTrigger;
}

describe('among runs of all kinds', () => {
  const uids = Array.from({ length: 4 }, () => randomUUID());
  let runs: Listed[];

  beforeAll(async () => {
    runs = Array.from({ length: 900 }, (_, index) => {
      const trigger = random.pick(RUN_TRIGGERS);
      // Some of the same moment, on both sides of midnights, and some still to come.
      const day = Math.floor(-9 + random.next() * 12);
      const scheduledFor = dayOf(NOW) + day * DAY_MS + (random.next() < 0.3 ? 0 : index * 60_000);
      return {
        id: randomRunId(scheduledFor),
        scheduledFor,
        // On any day, so that neighbours in the list stand in different partitions.
        endedAt: random.next() < 0.5 ? scheduledFor : NOW - Math.floor(random.next() * 9 * DAY_MS),
        uid: isOfSchedule({ trigger }) ? random.pick(uids) : randomUUID(),
        status: random.pick(RUN_STATUSES),
        trigger,
      };
    });
    // A schedule has one planned run of a moment.
    const taken = new Set<string>();
    runs = runs.filter(({ trigger, uid, scheduledFor }) => {
      if (!['schedule', 'catchUp', 'backfill'].includes(trigger)) return true;
      const fire = `${uid} ${scheduledFor}`;
      return !taken.has(fire) && taken.add(fire);
    });
    await insertRuns(runs);
  });
  afterAll(async () => {
    await empty();
  });

  test('every filter finds all matching ones, newest first, page by page', async () => {
    const subset = <T>(values: readonly T[]) => {
      const some = values.filter(() => random.next() < 0.3);
      return random.next() < 0.4 || some.length === 0 ? undefined : some;
    };
    for (let round = 0; round < 40; round += 1) {
      const from = random.next() < 0.3 ? NOW - Math.floor(random.next() * 9) * DAY_MS : undefined;
      const to = random.next() < 0.3 ? NOW - Math.floor(random.next() * 9 - 10) * DAY_MS : undefined;
      const filter = {
        scheduleUids: subset(uids),
        statuses: subset(RUN_STATUSES),
        triggers: subset(RUN_TRIGGERS),
        ids: random.next() < 0.2 ? runs.filter(() => random.next() < 0.5).map(({ id }) => id) : undefined,
        from,
        to,
      };
      const ids = expected(runs, filter);
      // Page by page, but not by hundreds of pages.
      const limit = random.pick(ids.length > 40 ? [50, 501] : [1, 7, 50]);
      expect([filter, await allPages(runs, { ...filter, limit })]).toEqual([filter, ids]);
    }
  });

  test('and those of labelled schedules, by asking a few one by one, or by walking through the newest runs first', async () => {
    await insertSchedules(uids.map((uid, n) => ({ uid, labels: { team: n < 3 ? 'a' : 'b', n: `${n}` } })));
    for (let round = 0; round < 25; round += 1) {
      const [labels, having] = random.pick([
        [[['team', 'a']], uids.slice(0, 3)],
        [[['n', '1']], uids.slice(1, 2)],
        [
          [
            ['team', 'a'],
            ['n', '3'],
          ],
          [],
        ],
      ] as [Labels, string[]][]);
      const among = random.next() < 0.2 ? uids.slice(1) : undefined;
      const filter = {
        scheduleUids: among,
        statuses:
          random.next() < 0.5 ? undefined : [...new Set([random.pick(RUN_STATUSES), random.pick(RUN_STATUSES)])],
        to: random.next() < 0.3 ? NOW - 5 * DAY_MS : undefined,
      };
      const bounds = random.pick([
        { few: 0, walked: 20 },
        { few: 0, walked: 5_000 },
        { few: 3, walked: 20 },
      ]);
      const scheduleUids = having.filter((uid) => among === undefined || among.some((one) => one === uid));
      const wanted = expected(runs, { ...filter, scheduleUids });
      const pages = (db: Executor, page: RunFilter) => {
        const read = (statement: SQL) => rowsOf<{ id: string }>(db)(statement);
        return pageOfLabelled(db, page, labels, { read, scope: null, ...bounds });
      };
      const limit = random.pick(wanted.length > 40 ? [50, 501] : [7, 50]);
      const found = await allPages(runs, { ...filter, limit }, pages);
      expect([filter, labels, bounds, found]).toEqual([filter, labels, bounds, wanted]);
    }
  });
});

describe('among very many plain ones', () => {
  const [big, other] = [randomUUID(), randomUUID()];
  const MANY = 20_000;

  beforeAll(async () => {
    // One a minute, the newest of them now: two weeks of a schedule that always succeeded.
    await database.run((db) =>
      db.execute(sql`INSERT INTO history (id, scheduled_for, schedule_uid, schedule_version, schedule_id, trigger, status, lane, priority,
          due_at, attempts, created_at, updated_at, finished_at, ended_at)
        SELECT ${runIdAt(sql`at`)}, at, ${big}::uuid, 1, 'big', 'schedule', 'succeeded', '', 1, at, 1, at, at, at, at
        FROM (SELECT date_trunc('minute', clock_timestamp()) - n * interval '1 minute' AS at FROM generate_series(1, ${MANY}::int) n) AS t`),
    );
    const old = dayOf(NOW) - 13 * DAY_MS;
    const rare = (index: number, status: RunStatus, trigger: RunTrigger) => {
      const scheduledFor = old + index * 1000;
      return {
        id: randomRunId(scheduledFor),
        scheduledFor,
        endedAt: scheduledFor,
        uid: other,
        status,
        trigger,
      };
    };
    await insertRuns([
      ...Array.from({ length: 60 }, (_, index) => rare(index, 'failed', 'schedule')),
      ...Array.from({ length: 60 }, (_, index) => rare(100 + index, 'succeeded', 'catchUp')),
      rare(300, 'unknown', 'manual'),
    ]);
    await database.run((db) => db.execute(sql`VACUUM ANALYZE runs, history`));
  });
  afterAll(() => empty());

  const limit = 50;
  const lists: [what: string, filter: RunFilter][] = [
    ['all', { limit }],
    ['what succeeded', { limit, statuses: ['succeeded'] }],
    ['what failed', { limit, statuses: ['failed'] }],
    ['what was abandoned: nothing', { limit, statuses: ['abandoned'] }],
    ['all that did not succeed', { limit, statuses: ['failed', 'unknown', 'abandoned', 'skipped', 'cancelled'] }],
    ['what is open: nothing', { limit, statuses: ['waiting', 'pending', 'running'] }],
    ['what was caught up', { limit, triggers: ['catchUp'] }],
    ['what was backfilled: nothing', { limit, triggers: ['backfill'] }],
    ['what was asked for', { limit, triggers: ['manual', 'api'] }],
    ['what was asked for and failed: nothing', { limit, triggers: ['manual'], statuses: ['failed'] }],
    ['one schedule', { limit, scheduleUids: [big] }],
    ['schedules that had the same id', { limit, scheduleUids: [other, big] }],
    ['what failed of one that never did', { limit, scheduleUids: [big], statuses: ['failed'] }],
    ['what was backfilled of one that never was', { limit, scheduleUids: [big], triggers: ['backfill'] }],
    ['what was fired by hand of one that never was', { limit, scheduleUids: [big], triggers: ['manual'] }],
    ['those before another', { limit, before: { scheduledFor: NOW - 5 * DAY_MS, id: randomUUID() } }],
    ['a period', { limit, from: NOW - 6 * DAY_MS, to: NOW - 5 * DAY_MS }],
  ];

  test.each(lists)('a page of %s reads no more than some pages', async (_what, filter) => {
    const { read } = await rowsRead((db) => allRuns(db, filter));
    expect(read).toBeLessThan(40 * limit);
  });
});

describe('among runs of several teams', () => {
  interface NamedRun extends Pick<Listed, 'id' | 'uid' | 'trigger' | 'status' | 'scheduledFor'> {
    /** Of its schedule, its key or its notifier. */
    name: string;
  }
  const names = ['billing.a', 'billing.b', 'ops.night-a', 'ops.day', 'shared.a', 'billing', 'hr.x', 'zeta'];
  const uidOf = new Map(names.map((name) => [name, randomUUID()]));
  let runs: NamedRun[];

  beforeAll(async () => {
    runs = Array.from({ length: 700 }, (_, index) => {
      const at = NOW - index * 900_000;
      const trigger = random.pick(RUN_TRIGGERS);
      const name = random.pick(names) + (trigger === 'api' ? `-${index}` : '');
      const uid = isOfSchedule({ trigger }) ? (uidOf.get(name) ?? '') : randomUUID();
      return { id: randomRunId(at), scheduledFor: at, uid, trigger, status: random.pick(RUN_STATUSES), name };
    });
    await insert(runs);
    await insertSchedules([...uidOf].map(([id, uid]) => ({ id, uid })));
  });
  afterAll(async () => {
    await empty();
  });

  const isSeen = ({ trigger, name }: NamedRun) => (trigger === 'notify' ? owns : sees)(SCOPE, name);

  test('a scope sees its own, by asking few schedules and keys, or by walking through the newest runs first', async () => {
    for (let round = 0; round < 60; round += 1) {
      const filter = randomFilter();
      const wanted = matching(filter).filter(isSeen).map(idOf);
      const bounds = random.pick([
        {},
        { fewSchedules: 0, walked: 20 },
        { fewKeys: 0, walked: 60 },
        { fewSchedules: 0, fewKeys: 0, walked: 5_000 },
        { fewSchedules: 0, fewKeys: 0, walked: 20 },
      ]);
      const pageOf = (db: Executor, page: RunFilter) =>
        pageInScope(
          db,
          page,
          { scope: SCOPE, use: 'read' },
          { ...bounds, read: (statement) => rowsOf<{ id: string }>(db)(statement) },
        );
      const limit = random.pick(wanted.length > 40 ? [50, 501] : [7, 50]);
      const found = await allPages(runs, { ...filter, limit }, pageOf);
      expect([filter, bounds, found]).toEqual([filter, bounds, wanted]);
    }
  });

  test('runs that are named by their ids are those that the scope sees', async () => {
    const ids = runs.map(idOf);
    const found = await database.run((db) => listRuns(db, { ids, limit: 1_000, scope: SCOPE }));
    expect(found.map(idOf)).toEqual(matching({}).filter(isSeen).map(idOf));
  });

  test('a bulk action finds and counts what the scope owns', async () => {
    for (const statuses of [
      ['failed', 'abandoned'],
      ['waiting', 'pending', 'running'],
    ] as const) {
      const wanted = matching({ statuses }).filter(({ name }) => owns(SCOPE, name));
      const found = await database.run((db) =>
        matchingRuns(
          db,
          { statuses, limit: 10, scope: SCOPE },
          { countTo: 1_000, scheduleIsThere: statuses.includes('failed' as never) },
        ),
      );
      expect(found).toEqual({ matched: wanted.length, ids: wanted.slice(0, 10).map(idOf) });
    }
    const shared = [uidOf.get('shared.a') ?? ''];
    const ofShared = await database.run((db) =>
      matchingRuns(
        db,
        { scheduleUids: shared, statuses: ['failed'], limit: 10, scope: SCOPE },
        { countTo: 1_000, scheduleIsThere: true },
      ),
    );
    expect(ofShared).toEqual({ matched: 0, ids: [] });
  });

  function randomFilter(): Omit<RunFilter, 'limit'> {
    const subset = <T>(values: readonly T[]) => {
      const some = values.filter(() => random.next() < 0.4);
      return random.next() < 0.4 || some.length === 0 ? undefined : some;
    };
    return {
      // As the API passes on what was not asked for.
      ...{ scheduleUids: undefined, ids: undefined, labels: undefined, unmet: undefined },
      statuses: subset(RUN_STATUSES),
      triggers: subset(RUN_TRIGGERS),
      from: random.next() < 0.3 ? NOW - 5 * DAY_MS : undefined,
      to: random.next() < 0.3 ? NOW - DAY_MS : undefined,
    };
  }

  function matching({ statuses, triggers, from = -Infinity, to = Infinity }: Omit<RunFilter, 'limit'>) {
    return runs.filter(
      ({ scheduledFor, status, trigger }) =>
        (statuses?.includes(status) ?? true) &&
        (triggers?.includes(trigger) ?? true) &&
        scheduledFor >= from &&
        scheduledFor < to,
    );
  }

  async function insert(all: readonly NamedRun[]): Promise<void> {
    const columns = sql`id, scheduled_for, schedule_uid, schedule_version, schedule_id, trigger, status, lane, priority, due_at, attempts,
      created_at, updated_at, key, notifier_id`;
    const values = sql`id, at, uid, 1, CASE WHEN trigger IN ('api', 'notify') THEN '' ELSE name END, trigger, status, '', 1, at, 1, at, at,
      CASE trigger WHEN 'api' THEN name END, CASE trigger WHEN 'notify' THEN name END`;
    const given = (some: readonly NamedRun[]) => {
      const rows = some.map((run) => ({ ...run, at: new Date(run.scheduledFor).toISOString() }));
      return sql`jsonb_to_recordset(${JSON.stringify(rows)}::jsonb)
        AS r(id uuid, at timestamptz, uid uuid, trigger text, status text, name text)`;
    };
    const statements = [
      sql`INSERT INTO runs (${columns}, ready) SELECT ${values}, true FROM ${given(all.filter(({ status }) => !isEnd(status)))}`,
      sql`INSERT INTO history (${columns}, finished_at, ended_at) SELECT ${values}, at, at FROM ${given(all.filter(({ status }) => isEnd(status)))}`,
      sql`INSERT INTO run_keys (scope, key, body_hash, run_id) SELECT ${ONE_OFF_KEYS}::uuid, name, '', id
        FROM ${given(all.filter(({ trigger }) => trigger === 'api'))}`,
    ];
    for (const statement of statements) await database.run((db) => db.execute(statement));
  }
});

describe('among very many of others', () => {
  const MANY = 20_000;
  const OPEN = 4_000;
  /** Newest first; the scope's own are the oldest of all. */
  const ownIds: string[] = [];

  beforeAll(async () => {
    const few = Array.from({ length: 5 }, (_, n) => ({ id: `small.${n}`, uid: randomUUID() }));
    const others = Array.from({ length: 300 }, (_, n) => ({ id: `other.${n}`, uid: randomUUID() }));
    await insertSchedules([...few, ...others]);
    const ended = (uids: readonly { id: string; uid: string }[], count: number, ageMinutes: number) =>
      sql`INSERT INTO history (id, scheduled_for, schedule_uid, schedule_version, schedule_id, trigger, status, lane, priority,
          due_at, attempts, created_at, updated_at, finished_at, ended_at)
        SELECT ${runIdAt(sql`at`)}, at, uid, 1, s.id, 'schedule', CASE WHEN n % 2 = 0 THEN 'failed' ELSE 'succeeded' END, '', 1,
          at, 1, at, at, at, at
        FROM generate_series(0, ${count - 1}::int) n
        JOIN (SELECT (row_number() OVER () - 1)::int AS nth, o.* FROM jsonb_to_recordset(${JSON.stringify(uids)}::jsonb)
          AS o(id text, uid uuid)) s ON s.nth = n % ${uids.length}::int,
        LATERAL (SELECT date_trunc('minute', clock_timestamp()) - (n / 4 + ${ageMinutes}::int) * interval '1 minute' AS at) t
        ON CONFLICT DO NOTHING RETURNING id`;
    const seed = (statement: SQL) => database.run((db) => rowsOf<{ id: string }>(db)(statement), SEED_LIMIT_MS);
    await seed(ended(others, MANY, 0));
    const rows = await seed(ended(few, 30, MANY / 4));
    ownIds.push(...rows.map(idOf).sort().reverse());
    for (const statement of othersBesideSchedules()) await seed(statement);
    await seed(sql`VACUUM ANALYZE history, runs, schedule_versions, run_keys`);
  });

  test.each([
    ['all', {}],
    ['the failed', { statuses: ['failed' as const] }],
    ['the planned', { triggers: ['schedule' as const] }],
    ['a period’s', { from: NOW - 19 * DAY_MS }],
  ])('a page of %s of a small scope reads little more than its runs', async (_, filter) => {
    const limit = 20;
    const { found, read } = await rowsRead((db) => listRuns(db, { ...filter, limit, scope: ['small.'] }));
    expect(found.length).toBeGreaterThan(10);
    expect(ownIds).toEqual(expect.arrayContaining(found.map(idOf)));
    expect(read).toBeLessThan(80 * limit);
  });

  /** Keys and messages, as many as runs of schedules; and open one-off runs of one target, which are of one definition. */
  function othersBesideSchedules(): SQL[] {
    const at = sql`SELECT n, date_trunc('minute', clock_timestamp()) - n * interval '10 seconds' AS at`;
    return [
      sql`INSERT INTO run_keys (scope, key, body_hash, run_id) SELECT ${ONE_OFF_KEYS}::uuid, 'other.' || n, '', gen_random_uuid()
        FROM generate_series(1, ${MANY}::int) n`,
      sql`INSERT INTO history (id, scheduled_for, schedule_uid, schedule_version, schedule_id, trigger, status, lane, priority,
          due_at, attempts, created_at, updated_at, finished_at, ended_at, notifier_id)
        SELECT ${runIdAt(sql`at`)}, at, ${randomUUID()}::uuid, 1, '', 'notify', 'failed', '', 1, at, 1, at, at, at, at, 'other.bell'
        FROM (${at} FROM generate_series(1, ${MANY}::int) n) t`,
      sql`INSERT INTO runs (id, scheduled_for, schedule_uid, schedule_version, schedule_id, trigger, status, lane, priority, due_at,
          ready, attempts, created_at, updated_at)
        SELECT ${runIdAt(sql`at`)}, at, ${randomUUID()}::uuid, 1, '', 'api', 'pending', '', 1, at, true, 0, at, at
        FROM (${at} FROM generate_series(1, ${OPEN}::int) n) t`,
    ];
  }
});

test('the schedules of a label are found by the index of labels', async () => {
  const many = Array.from({ length: 3_000 }, (_, n) => ({ uid: randomUUID(), labels: { odd: `${n}` } }));
  await insertSchedules(many);
  await database.run((db) => db.execute(sql`VACUUM ANALYZE schedules, schedule_versions`));
  const plan = await database.run((db) => db.execute(sql`EXPLAIN ${labelled([['odd', '77']], [])}`));
  expect(JSON.stringify(plan)).toContain('schedule_versions_labels');
});

/** Over all statements that the work takes. */
async function rowsRead<T>(work: (db: Executor) => Promise<T>): Promise<{ found: T; read: number }> {
  let read = 0;
  const found = await database.run((db) => {
    const execute = async (statement: SQL) => {
      const [row] = await db.execute(sql`EXPLAIN (ANALYZE, FORMAT JSON) ${statement}`);
      read += rowsIn((row?.['QUERY PLAN'] as [{ Plan: PlanNode }])[0].Plan);
      return db.execute(statement);
    };
    return work({ execute } as unknown as Executor);
  });
  return { found, read };
}

async function allPages(
  runs: readonly Pick<Listed, 'id' | 'scheduledFor'>[],
  filter: RunFilter,
  pageOf: PageOf = allRuns,
): Promise<string[]> {
  const found: string[] = [];
  for (let before: RunFilter['before']; ;) {
    const page = (await database.run((db) => pageOf(db, { ...filter, before }))).map(idOf);
    found.push(...page);
    before = runs.find(({ id }) => id === page.at(-1));
    if (page.length < filter.limit || found.length > runs.length) return found;
  }
}

async function empty(): Promise<void> {
  for (const table of ['runs', 'history', 'run_keys', 'schedules', 'schedule_versions'])
    await database.run((db) => db.execute(sql`DELETE FROM ${sql.raw(table)}`), SEED_LIMIT_MS);
}

function idOf({ id }: { id: string }): string {
  return id;
}

function expected(runs: readonly Listed[], filter: Omit<RunFilter, 'limit'>): string[] {
  const { scheduleUids, statuses, triggers, ids, from = -Infinity, to = Infinity } = filter;
  return runs
    .filter(
      ({ id, uid, status, trigger, scheduledFor }) =>
        (scheduleUids?.includes(uid) ?? true) &&
        (statuses?.includes(status) ?? true) &&
        (triggers?.includes(trigger) ?? true) &&
        (ids?.includes(id) ?? true) &&
        scheduledFor >= from &&
        scheduledFor < to,
    )
    .toSorted((a, b) => b.scheduledFor - a.scheduledFor || (a.id < b.id ? 1 : -1))
    .map(({ id }) => id);
}

async function insertSchedules(
  given: readonly { uid: string; id?: string; labels?: Record<string, string> }[],
): Promise<void> {
  const all = given.map((one) => ({ id: one.uid, labels: {}, ...one }));
  const rows = sql`jsonb_to_recordset(${JSON.stringify(all)}::jsonb) AS g(uid uuid, id text, labels jsonb)`;
  for (const statement of [
    sql`INSERT INTO schedules (uid, id, version, enabled, timing, zoned, overlap, lane, priority, created_at, updated_at)
      SELECT uid, id, 2, true, '{}', false, 'allow', '', 1, now(), now() FROM ${rows}`,
    // The version before had other labels.
    sql`INSERT INTO schedule_versions (schedule_uid, version, schedule_id, change, at, definition)
      SELECT uid, v, id, 'updated', now(), jsonb_build_object('labels', CASE v WHEN 2 THEN labels ELSE '{"team": "a", "n": "1"}' END)
      FROM ${rows}, generate_series(1, 2) AS v`,
  ])
    await database.run((db) => db.execute(statement));
}

async function insertRuns(runs: readonly Listed[]): Promise<void> {
  const columns = sql`id, scheduled_for, schedule_uid, schedule_version, schedule_id, trigger, status, lane, priority, due_at, attempts,
    created_at, updated_at`;
  const values = sql`id, at, uid, 1, 's', trigger, status, '', 1, at, 1, at, at`;
  const given = (some: readonly Listed[]) => {
    const iso = (at: number) => new Date(at).toISOString();
    const rows = some.map((run) => ({ ...run, at: iso(run.scheduledFor), ended: iso(run.endedAt) }));
    return sql`jsonb_to_recordset(${JSON.stringify(rows)}::jsonb)
      AS r(id uuid, at timestamptz, ended timestamptz, uid uuid, trigger text, status text)`;
  };
  const open = given(runs.filter(({ status }) => !isEnd(status)));
  const ended = given(runs.filter(({ status }) => isEnd(status)));
  await database.run((db) =>
    db.execute(sql`INSERT INTO runs (${columns}, ready) SELECT ${values}, at <= clock_timestamp() FROM ${open}`),
  );
  await database.run((db) =>
    db.execute(
      sql`INSERT INTO history (${columns}, finished_at, ended_at) SELECT ${values}, ended, ended FROM ${ended}`,
    ),
  );
}
