import { randomUUID } from 'node:crypto';
import { afterEach, expect, test } from 'vitest';
import { sql } from 'drizzle-orm';
import { isoInstant } from '../../../src/core/instant.ts';
import { randomRunId } from '../../../src/core/runs/run.ts';
import { openDatabase } from '../../../src/postgres/database.ts';
import { ALL_CHECKS, checkOnSnapshot } from '../../../src/store/verify/check-on-snapshot.ts';
import { insertRuns } from '../../support/run-rows.ts';
import { SCHEDULE, TARGET, sharedApi } from '../api.ts';

const api = sharedApi();
/** Of the schedule `victim`, of whose rows each test breaks one. */
let uid: string;
afterEach(async () => {
  const tables =
    'schedules, schedule_versions, runs, history, limits, connections, calendars, schedule_calendars, instances, effects, run_dependencies';
  await api.sql.unsafe(
    tables
      .split(', ')
      .map((table) => `DELETE FROM ${table}`)
      .join(';'),
  );
});

const LONG_AGO = Date.now() - 3_600_000;
const before = isoInstant(LONG_AGO);

/** A healthy installation: nothing is violated. */
async function healthy(): Promise<void> {
  await api.call('PUT', '/api/v1/limits/few', { maxRunning: 1 });
  await api.call('PUT', '/api/v1/calendars/closed', { dates: ['2090-01-01'] });
  await api.call('PUT', '/api/v1/connections/system', { url: 'https://example.com' });
  await api.call('PUT', '/api/v1/schedules/parent', {
    ...SCHEDULE,
    target: { type: 'http', connection: 'system', url: '/' },
  });
  const after = { after: { scheduleId: 'parent' }, target: TARGET, limit: 'few' };
  await api.call('PUT', '/api/v1/schedules/child', after);
  await api.call('PUT', '/api/v1/schedules/victim', {
    ...SCHEDULE,
    exclude: { calendars: ['closed'] },
    overlap: 'queue',
  });
  const [found] = await api.sql<{ uid: string }[]>`SELECT uid FROM schedules WHERE id = 'victim'`;
  uid = found?.uid ?? '';
  await api.sql`UPDATE schedules SET planned_through = clock_timestamp() WHERE uid = ${uid}`;
  await record({ status: 'succeeded', handed_off_at: before });
}

/** Inserts a run of the victim, as the daemon leaves it if nothing else is said. */
async function record(row: Record<string, unknown>): Promise<string> {
  const at = LONG_AGO + Math.floor(Math.random() * 1_000_000);
  const run = {
    id: randomRunId(at),
    scheduled_for: isoInstant(at),
    schedule_uid: uid,
    schedule_version: 1,
    schedule_id: 'victim',
    trigger: 'schedule',
    status: 'pending',
    lane: 'http https://example.com',
    priority: 1,
    due_at: before,
    attempts: 1,
    created_at: before,
    updated_at: before,
    ...row,
  };
  await insertRuns(api.sql, [run]);
  return run.id;
}

const run = (statement: string) => api.sql.unsafe(statement);

/** What breaks a row, and what is said of it; nothing else may be said. */
const BREAKS: Record<string, { how: () => Promise<unknown>; said: RegExp; count?: number }> = {
  dueSchedulesArePlanned: {
    how: () => run(`UPDATE schedules SET next_fire_at = '${before}' WHERE id = 'victim'`),
    said: /^schedule victim: was due at /,
  },
  enabledSchedulesWake: {
    how: () => run(`UPDATE schedules SET next_fire_at = NULL WHERE id = 'victim'`),
    said: /^schedule victim: has an occurrence at .* and no next fire$/,
  },
  cursorsAreNotAhead: {
    how: () => run(`UPDATE schedules SET planned_through = clock_timestamp() + interval '2 h' WHERE id = 'victim'`),
    said: /^schedule victim: is not planned before .*: `firelock resume --from-now` sets it back$/,
  },
  pausesEnd: {
    how: () => run(`UPDATE schedules SET enabled = false, pause_until = '${before}' WHERE id = 'victim'`),
    said: /^schedule victim: was to be enabled at /,
  },
  definitionsAreThere: {
    how: () => run(`UPDATE schedules SET version = 7 WHERE id = 'victim'`),
    said: /^schedule victim: has no version 7$/,
  },
  followedSchedulesExist: {
    how: () => run(`UPDATE schedules SET after_uid = '${randomUUID()}' WHERE id = 'child'`),
    said: /^schedule child: follows a schedule that does not exist$/,
  },
  namedLimitsExist: {
    how: () => run(`DELETE FROM limits`),
    said: /^schedule child: names the limit few, which does not exist$/,
  },
  namedConnectionsExist: {
    how: async () => {
      await record({ lane: 'http connection system' });
      await run(`DELETE FROM connections`);
    },
    said: /^(schedule parent|run \S+ of schedule victim): has the lane http connection system, and there is no such connection$/,
    count: 2,
  },
  lanesFollowConnections: {
    how: async () => {
      await run(`UPDATE schedules SET lane = 'http connection system' WHERE id = 'victim'`);
      await run(`UPDATE schedules SET lane = 'http https://example.com' WHERE id = 'parent'`);
    },
    said: /^schedule (victim: has the lane http connection system, and names no|parent: has the lane http https:\S+, and names the) connection( system)?$/,
    count: 2,
  },
  namedCalendarsExist: {
    how: () => run(`DELETE FROM calendars`),
    said: /^schedule victim: excludes the calendar closed, which does not exist$/,
  },
  calendarsAreApplied: {
    how: () => run(`UPDATE calendars SET version = version + 1, updated_at = '${before}'`),
    said: /^calendar closed: version \d+: next fires follow version \d+$/,
  },
  oneRunForEachFire: {
    how: async () => {
      const at = isoInstant(LONG_AGO);
      for (let copy = 0; copy < 2; copy += 1)
        await record({ id: randomRunId(LONG_AGO), scheduled_for: at, status: 'failed', reason: null });
    },
    said: /^schedule victim: has 2 runs for /,
  },
  runsAreInOneTable: {
    how: async () => {
      const id = await record({ trigger: 'manual' });
      await record({ trigger: 'manual', id, scheduled_for: await momentOf(id), status: 'failed' });
    },
    said: /^run \S+ of schedule victim: is open and ended$/,
  },
  cursorsCoverRuns: {
    how: () => run(`UPDATE schedules SET planned_through = NULL WHERE id = 'victim'`),
    said: /^run \S+ of schedule victim: is for .*; its schedule counts as planned up to nothing$/,
  },
  idsTellTheirMoment: {
    how: () => record({ trigger: 'manual', status: 'failed', id: randomRunId(LONG_AGO - 1), scheduled_for: before }),
    said: /^run \S+ of schedule victim: is for /,
  },
  endedRunsAddUp: {
    how: () => record({ status: 'succeeded', handed_off_at: null }),
    said: /^run \S+ of schedule victim: succeeded and was never handed off$/,
  },
  limitsAreKept: {
    how: async () => {
      await run(`UPDATE limits SET updated_at = '${before}'`);
      const admitted = { trigger: 'manual', limit_id: 'few', admitted_at: isoInstant(LONG_AGO + 1000) };
      for (let copy = 0; copy < 2; copy += 1) await record(admitted);
    },
    said: /^limit few: 2 runs are under way, of 1$/,
  },
  oneActiveRun: {
    how: async () => {
      await run(`UPDATE schedules SET updated_at = '${isoInstant(LONG_AGO - 1)}' WHERE id = 'victim'`);
      for (let copy = 0; copy < 2; copy += 1) await record({ overlap_guarded: true });
    },
    said: /^schedule victim: 2 runs are active$/,
  },
  openDependenciesAddUp: {
    how: () => record({ trigger: 'api', status: 'waiting', open_dependencies: 2 }),
    said: /^run \S+ of schedule victim: waits for 2 runs, of which 0 are not counted$/,
  },
  silentInstancesAreDeclaredDead: {
    how: () =>
      run(`INSERT INTO instances (id, host, version, zone_data, started_at, heartbeat_at)
        VALUES ('${randomUUID()}', 'h', '1', '1', '${before}', '${before}')`),
    said: /^instance \S+: is silent since /,
  },
  claimsHaveHolders: {
    how: () => record({ claimed_by: randomUUID(), claimed_at: before }),
    said: /^run \S+ of schedule victim: is claimed by \S+, which is not alive$/,
  },
  runningRunsExpire: {
    how: async () => {
      await record({ status: 'running', expires_at: before });
      await record({ status: 'running', expires_at: null });
    },
    said: /^run \S+ of schedule victim: (was to expire at|never expires)/,
    count: 2,
  },
  boundsAreJudged: {
    how: async () => {
      const id = await record({});
      await run(`UPDATE runs SET next_bound = 'start', bound_at = '${before}' WHERE id = '${id}'`);
    },
    said: /^run \S+ of schedule victim: is not judged by its bound start, which passed at /,
  },
  dueRunsAreReady: {
    how: async () => {
      const id = await record({});
      await run(`UPDATE runs SET ready = false WHERE id = '${id}'`);
    },
    said: /^run \S+ of schedule victim: is due since .* and cannot be claimed$/,
  },
  waitingRunsWaitForSomething: {
    how: () => record({ status: 'waiting', overlap_guarded: true }),
    said: /^run \S+ of schedule victim: waits for nothing$/,
  },
  endsAreCounted: {
    how: async () => {
      const ended = await record({ status: 'failed' });
      const waiting = await record({ trigger: 'api', status: 'waiting', open_dependencies: 1 });
      await run(`INSERT INTO run_dependencies VALUES ('${waiting}', '${ended}', 0, NULL)`);
    },
    said: /^run \S+: waits for run \S+, which has ended$/,
  },
  effectsAreDone: {
    how: () =>
      run(`INSERT INTO effects (kind, schedule_uid, schedule_version, schedule_id, trigger, status, finished_at, attempt, error)
        VALUES ('followers', '${uid}', 1, 'victim', 'schedule', 'failed', '${isoInstant(LONG_AGO - 60_000)}', 1, 'refused')`),
    said: /^effect \d+ \(followers\): of .* is not applied: refused$/,
  },
};

async function momentOf(id: string): Promise<string> {
  const [row] = await api.sql<{ at: Date }[]>`SELECT scheduled_for AS at FROM runs WHERE id = ${id}`;
  return isoInstant(row?.at.getTime() ?? 0);
}

interface Verified {
  ok: boolean;
  checks: { name: string; complete: boolean; violations: number; examples: string[] }[];
}

async function verify(): Promise<Verified> {
  const { status, body } = await api.call('GET', '/api/v1/verify');
  expect(status).toBe(200);
  return body as unknown as Verified;
}

test('every check has a row that breaks it, and a healthy installation violates none', async () => {
  expect(Object.keys(BREAKS).sort()).toEqual(ALL_CHECKS.map(({ name }) => name).sort());
  await healthy();
  const { ok, checks } = await verify();
  expect(checks.filter(({ violations, complete }) => violations > 0 || !complete)).toEqual([]);
  expect([ok, checks.length]).toEqual([true, ALL_CHECKS.length]);
});

test.for(Object.entries(BREAKS))('%s: that violation, and no other', async ([name, { how, said, count = 1 }]) => {
  await healthy();
  await how();
  const { ok, checks } = await verify();
  const violated = checks.filter(({ violations }) => violations > 0);
  expect(violated.map((check) => [check.name, check.violations])).toEqual([[name, count]]);
  for (const example of violated[0]?.examples ?? []) expect(example).toMatch(said);
  expect(ok).toBe(false);
});

test('work that maintenance holds back is no violation', async () => {
  await healthy();
  await run(`UPDATE schedules SET next_fire_at = '${before}' WHERE id = 'victim'`);
  await api.call('POST', '/api/v1/maintenance', { on: true, dispatch: 'hold' });
  expect((await verify()).ok).toBe(true);
  await api.call('POST', '/api/v1/maintenance', { on: false });
  expect((await verify()).ok).toBe(false);
});

test('a check that takes too long is stopped, says so, and leaves the others alone', async () => {
  const database = openDatabase(api.databaseUrl, 1);
  const slow = {
    name: 'slow',
    holds: '',
    found: sql`SELECT 'x' AS name, 'y' AS fault FROM pg_sleep(3600)`,
  };
  const quick = { ...slow, name: 'quick', found: sql`SELECT 'x' AS name, 'y' AS fault` };
  const times = [0, 29_900, 29_900];
  const results = await database.transaction((tx) => checkOnSnapshot(tx, () => times.shift() ?? 29_900, [slow, quick]));
  await database.close();
  expect(results).toMatchObject([
    { name: 'slow', complete: false, violations: 0, examples: [] },
    { name: 'quick', complete: true, violations: 1, examples: ['x: y'] },
  ]);
});

test('it reads only, on one snapshot', async () => {
  const database = openDatabase(api.databaseUrl, 1);
  const writing = {
    name: 'w',
    holds: '',
    found: sql`SELECT 'x' AS name, nextval('effects_id_seq')::text AS fault`,
  };
  const settings = {
    name: 's',
    holds: '',
    found: sql`SELECT current_setting('transaction_isolation') AS name, current_setting('transaction_read_only') AS fault`,
  };
  const look = (check: typeof writing) => database.transaction((tx) => checkOnSnapshot(tx, () => 0, [check]));
  expect((await look(settings))[0]?.examples).toEqual(['repeatable read: on']);
  await expect(look(writing)).rejects.toThrow();
  await database.close();
});
