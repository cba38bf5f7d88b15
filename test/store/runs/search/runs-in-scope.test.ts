import { randomUUID } from 'node:crypto';
import { type SQL, sql } from 'drizzle-orm';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import {
  RUN_STATUSES,
  RUN_TRIGGERS,
  type RunStatus,
  type RunTrigger,
  isEnd,
  isOfSchedule,
  randomRunId,
} from '../../../../src/core/runs/run.ts';
import { owns, sees } from '../../../../src/core/access/scope.ts';
import { DAY_MS, dayOf } from '../../../../src/core/instant.ts';
import { systemClock } from '../../../../src/runtime/clock.ts';
import { type Database, openDatabase } from '../../../../src/postgres/database.ts';
import type { Executor } from '../../../../src/postgres/executor.ts';
import { createPartition } from '../../../../src/postgres/history-partitions.ts';
import { rowsOf } from '../../../../src/postgres/sql/rows.ts';
import { ONE_OFF_KEYS } from '../../../../src/store/runs/idempotency-keys.ts';
import { listRuns } from '../../../../src/store/runs/search/find-runs.ts';
import { matchingRuns } from '../../../../src/store/runs/search/matching-runs.ts';
import { pageInScope } from '../../../../src/store/runs/search/runs-in-scope.ts';
import type { RunFilter } from '../../../../src/store/runs/search/run-pages.ts';
import { runIdAt } from '../../../support/pending-runs.ts';
import { type TestDatabase, createMigrated } from '../../../support/postgres/cluster.ts';
import { type PlanNode, rowsIn } from '../../../support/postgres/plans.ts';
import { createRandom } from '../../../chaos/random.ts';

/** The same in every run. */
const random = createRandom(11, 'runs-in-scope');

const NOW = systemClock.now();
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

describe('among runs of several teams', () => {
  interface Listed {
    id: string;
    at: number;
    uid: string;
    trigger: RunTrigger;
    status: RunStatus;
    /** Of its schedule, its key or its notifier. */
    name: string;
  }
  const names = ['billing.a', 'billing.b', 'ops.night-a', 'ops.day', 'shared.a', 'billing', 'hr.x', 'zeta'];
  const uidOf = new Map(names.map((name) => [name, randomUUID()]));
  let runs: Listed[];

  beforeAll(async () => {
    runs = Array.from({ length: 700 }, (_, index) => {
      const at = NOW - index * 900_000;
      const trigger = random.pick(RUN_TRIGGERS);
      const name = random.pick(names) + (trigger === 'api' ? `-${index}` : '');
      const uid = isOfSchedule({ trigger }) ? (uidOf.get(name) ?? '') : randomUUID();
      return { id: randomRunId(at), at, uid, trigger, status: random.pick(RUN_STATUSES), name };
    });
    await insert(runs);
    await insertSchedules([...uidOf].map(([id, uid]) => ({ id, uid })));
  });
  afterAll(async () => {
    for (const table of ['runs', 'history', 'run_keys', 'schedules', 'schedule_versions'])
      await database.run((db) => db.execute(sql`DELETE FROM ${sql.raw(table)}`));
  });

  const isSeen = ({ trigger, name }: Listed) => (trigger === 'notify' ? owns : sees)(SCOPE, name);

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
      const found = await allPages({ ...filter, limit }, pageOf);
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
      ({ at, status, trigger }) =>
        (statuses?.includes(status) ?? true) &&
        (triggers?.includes(trigger) ?? true) &&
        at >= from &&
        at < to,
    );
  }

  async function allPages(
    filter: RunFilter,
    pageOf: (db: Executor, page: RunFilter) => Promise<{ id: string }[]>,
  ): Promise<string[]> {
    const found: string[] = [];
    for (let before: RunFilter['before']; ;) {
      const page = (await database.run((db) => pageOf(db, { ...filter, before }))).map(idOf);
      found.push(...page);
      const last = runs.find(({ id }) => id === page.at(-1));
      if (last) before = { id: last.id, scheduledFor: last.at };
      if (page.length < filter.limit || found.length > runs.length) return found;
    }
  }

  async function insert(all: readonly Listed[]): Promise<void> {
    const columns = sql`id, scheduled_for, schedule_uid, schedule_version, schedule_id, trigger, status, lane, priority, due_at, attempts,
      created_at, updated_at, key, notifier_id`;
    const values = sql`id, at, uid, 1, CASE WHEN trigger IN ('api', 'notify') THEN '' ELSE name END, trigger, status, '', 1, at, 1, at, at,
      CASE trigger WHEN 'api' THEN name END, CASE trigger WHEN 'notify' THEN name END`;
    const given = (some: readonly Listed[]) => {
      const rows = some.map((run) => ({ ...run, at: new Date(run.at).toISOString() }));
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
  /** A busy machine takes seconds for so many rows. */
  const SEED_LIMIT_MS = 60_000;
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
    const seed = (statement: SQL) =>
      database.run((db) => rowsOf<{ id: string }>(db)(statement), SEED_LIMIT_MS);
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
    let rowsRead = 0;
    const counting = (db: Executor) =>
      ({
        execute: async (statement: SQL) => {
          const [row] = await db.execute(sql`EXPLAIN (ANALYZE, FORMAT JSON) ${statement}`);
          rowsRead += rowsIn((row?.['QUERY PLAN'] as [{ Plan: PlanNode }])[0].Plan);
          return db.execute(statement);
        },
      }) as unknown as Executor;
    const found = await database.run((db) => listRuns(counting(db), { ...filter, limit, scope: ['small.'] }));
    expect(found.length).toBeGreaterThan(10);
    expect(ownIds).toEqual(expect.arrayContaining(found.map(idOf)));
    expect(rowsRead).toBeLessThan(80 * limit);
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

async function insertSchedules(given: readonly { id: string; uid: string }[]): Promise<void> {
  const rows = sql`jsonb_to_recordset(${JSON.stringify(given)}::jsonb) AS g(uid uuid, id text)`;
  for (const statement of [
    sql`INSERT INTO schedules (uid, id, version, enabled, timing, zoned, overlap, lane, priority, created_at, updated_at)
      SELECT uid, id, 2, true, '{}', false, 'allow', '', 1, now(), now() FROM ${rows}`,
    sql`INSERT INTO schedule_versions (schedule_uid, version, schedule_id, change, at, definition)
      SELECT uid, v, id, 'updated', now(), '{"labels": {}}' FROM ${rows}, generate_series(1, 2) AS v`,
  ])
    await database.run((db) => db.execute(statement));
}

function idOf({ id }: { id: string }): string {
  return id;
}
