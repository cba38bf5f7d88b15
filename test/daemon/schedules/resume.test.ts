// @module-tag long
import { randomUUID } from 'node:crypto';
import { chmod, mkdtemp, realpath, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { isoInstant } from '../../../src/core/instant.ts';
import { plannedRunId } from '../../../src/core/runs/run.ts';
import { openDatabase } from '../../../src/postgres/database.ts';
import { listDueSchedules, skipDueIfUnmoved } from '../../../src/store/schedules/skip-to-now.ts';
import { type Api, startApi } from '../../api/api.ts';
import { firelock } from '../../cli/cli.ts';
import { serverPid } from '../../local-postgres/user-process.ts';
import { eachTest, sqlOfTest, storeOfTest } from '../../support/of-test.ts';
import { runCommand, spawnDaemon, startDaemon } from '../../support/daemon.ts';
import { notThroughPooler } from '../../support/postgres/pooler.ts';
import { insertRuns } from '../../support/run-rows.ts';
import { until } from '../../support/until.ts';
import { LONG } from '../../support/runner/long.ts';

const database = eachTest(storeOfTest);
const sql = eachTest(() => sqlOfTest(database.url));
let api: Api;

beforeEach(async () => {
  api = await startApi(database.url);
});

afterEach(() => api.stop());

const run = (args: readonly string[]) => firelock(args, { databaseUrl: database.url });
const resume = () => run(['resume', '--from-now']);
/** As a process of its own. */
const start = (args: readonly string[], variables: Record<string, string> = {}) =>
  runCommand(database.url, args, variables);

/** The only number of the line that begins so. */
function countIn({ out }: { out: string }, beginning: string): number {
  const line = out.split('\n').find((one) => one.startsWith(beginning)) ?? '';
  return Number(/: (\d+)/.exec(line)?.[1] ?? NaN);
}

interface ScheduleRow {
  uid: string;
  next: Date | null;
  [column: string]: unknown;
}

const TARGET = { type: 'http', url: 'http://127.0.0.1:9/nobody' };
const put = async (id: string, cron: string): Promise<ScheduleRow> => {
  const answer = await api.call('PUT', `/api/v1/schedules/${id}`, { cron, target: TARGET });
  expect(answer.status).toBe(201);
  return schedule(id);
};
async function schedule(id: string): Promise<ScheduleRow> {
  const [row] = await sql<ScheduleRow[]>`
    SELECT *, next_occurrence_at AS next FROM schedules WHERE id = ${id}`;
  if (!row) throw new Error(`there is no schedule ${id}`);
  return row;
}
const rewind = (id: string, to: Date) => sql`
  UPDATE schedules SET next_occurrence_at = ${to}, next_fire_at = ${to} WHERE id = ${id}`;
const runsOf = (id: string) =>
  sql<Record<string, unknown>[]>`SELECT * FROM all_runs WHERE schedule_id = ${id} ORDER BY scheduled_for`;
const everything = async () => ({
  schedules: await sql`SELECT * FROM schedules ORDER BY uid`,
  runs: await sql`SELECT * FROM all_runs ORDER BY id`,
});

/** New Year, since it does not become due while a test looks at it (but once a year). */
const YEARLY = '0 0 1 1 *';
const newYear = (year: number) => new Date(Date.UTC(year, 0, 1));
const thisYear = new Date().getUTCFullYear();

describe('resume --from-now', () => {
  test('ends a pause that is over, and skips the schedule’s fires that are due since', async () => {
    await put('paused', YEARLY);
    const tomorrow = new Date(Date.now() + 86_400_000).toISOString();
    await api.call('PATCH', '/api/v1/schedules/paused', { enabled: false, pauseUntil: tomorrow });
    const until = newYear(thisYear - 1);
    await sql`UPDATE schedule_versions SET at = ${newYear(thisYear - 3)},
      definition = definition || jsonb_build_object('pauseUntil', ${until.getTime()}::bigint) WHERE version = 2`;
    await sql`UPDATE schedules SET pause_until = ${until}, updated_at = ${newYear(thisYear - 3)}`;
    const answer = await resume();
    expect(answer).toMatchObject({ code: 0, err: '' });
    expect(countIn(answer, 'fires skipped')).toBe(2);
    expect(await schedule('paused')).toMatchObject({
      enabled: true,
      version: 3,
      next: newYear(thisYear + 1),
    });
    expect(await runsOf('paused')).toMatchObject([{ status: 'skipped', schedule_version: 3, coalesced: 1 }]);
  });

  test('a skipped run counts under the limit of its schedule', async () => {
    await api.call('PUT', '/api/v1/limits/few', { maxRunning: 1 });
    await put('limited', YEARLY);
    await api.call('PATCH', '/api/v1/schedules/limited', { limit: 'few' });
    await rewind('limited', newYear(thisYear - 3));
    expect(await resume()).toMatchObject({ code: 0, err: '' });
    expect(await runsOf('limited')).toMatchObject([{ status: 'skipped', limit_id: 'few', admitted_at: null }]);
  });

  test('records a schedule’s due fires as one skipped run and moves its cursor on', async () => {
    const { uid } = await put('yearly', YEARLY);
    await rewind('yearly', newYear(thisYear - 3));
    await sql`UPDATE schedules SET locked_by = ${randomUUID()}, locked_at = clock_timestamp()`;
    const answer = await resume();
    expect(answer).toMatchObject({ code: 0, err: '' });
    expect(countIn(answer, 'schedules moved to their next fire')).toBe(1);
    expect(countIn(answer, 'fires skipped')).toBe(4);
    expect(await schedule('yearly')).toMatchObject({
      next: newYear(thisYear + 1),
      next_fire_at: newYear(thisYear + 1),
      last_fire_at: null,
      locked_by: null,
      locked_at: null,
      version: 1,
    });
    expect(await runsOf('yearly')).toMatchObject([
      {
        id: plannedRunId(uid, newYear(thisYear).getTime()),
        scheduled_for: newYear(thisYear),
        schedule_version: 1,
        trigger: 'catchUp',
        status: 'skipped',
        reason: 'missed',
        attempts: 0,
        coalesced: 3,
        coalesced_from: newYear(thisYear - 3),
        claimed_by: null,
        handed_off_at: null,
        finished_at: expect.any(Date) as Date,
        lane: 'http http://127.0.0.1:9',
      },
    ]);
    const read = await api.call('GET', '/api/v1/schedules/yearly/runs');
    expect(read.body).toMatchObject({ items: [{ status: 'skipped', reason: 'missed', attempts: 0 }] });
  });

  test('a fire due just now is skipped too, and not caught up', async () => {
    await put('secondly', '* * * * * *');
    const [now] = await sql<{ at: Date }[]>`SELECT date_trunc('second', clock_timestamp()) AS at`;
    const first = new Date((now?.at.getTime() ?? NaN) - 5_000);
    await rewind('secondly', first);
    const answer = await resume();
    const [recorded] = await runsOf('secondly');
    const newest = (recorded?.['scheduled_for'] as Date).getTime();
    expect(recorded).toMatchObject({
      trigger: 'schedule',
      coalesced: (newest - first.getTime()) / 1000,
      coalesced_from: first,
    });
    expect((await schedule('secondly')).next).toEqual(new Date(newest + 1000));
    expect(countIn(answer, 'fires skipped')).toBe((newest - first.getTime()) / 1000 + 1);
  });

  test('a fire that a caller had asked to skip is recorded as such, and counts for no other', async () => {
    await put('asked', YEARLY);
    await rewind('asked', newYear(thisYear - 2));
    await sql`UPDATE schedules SET has_skips = true WHERE id = 'asked'`;
    for (const year of [thisYear - 1, thisYear + 1])
      await sql`INSERT INTO skips (schedule_uid, fire_at, asked_at)
        SELECT uid, ${newYear(year)}, created_at FROM schedules WHERE id = 'asked'`;
    const answer = await resume();
    expect(countIn(answer, 'fires skipped')).toBe(3);
    expect(await runsOf('asked')).toMatchObject([
      { scheduled_for: newYear(thisYear - 1), reason: 'request', trigger: 'schedule', coalesced: 0 },
      {
        scheduled_for: newYear(thisYear),
        reason: 'missed',
        coalesced: 1,
        coalesced_from: newYear(thisYear - 2),
      },
    ]);
    expect(await sql`SELECT fire_at FROM skips`).toEqual([{ fire_at: newYear(thisYear + 1) }]);
    expect(await schedule('asked')).toMatchObject({ next: newYear(thisYear + 1), has_skips: true });
  });

  test('a single occurrence stands for no others', async () => {
    await put('once', YEARLY);
    await rewind('once', newYear(thisYear));
    await resume();
    expect(await runsOf('once')).toMatchObject([{ coalesced: 0, coalesced_from: null }]);
  });

  test('a day of missed seconds is counted one by one', async () => {
    await put('busy', '* * * * * *');
    await put('as-busy', '* * * * * *');
    const first = new Date(Math.floor(Date.now() / 1000) * 1000 - 86_400_000);
    await rewind('busy', first);
    await rewind('as-busy', first);
    expect((await resume()).code).toBe(0);
    for (const id of ['busy', 'as-busy']) {
      const [recorded, ...more] = await runsOf(id);
      expect(more).toEqual([]);
      const newest = (recorded?.['scheduled_for'] as Date).getTime();
      expect(newest - first.getTime()).toBeGreaterThanOrEqual(86_400_000);
      expect(recorded).toMatchObject({ coalesced: (newest - first.getTime()) / 1000, trigger: 'schedule' });
    }
  });

  test('leaves alone schedules that are paused, have ended, are in error, or are not due', async () => {
    for (const id of ['paused', 'ended', 'in-error', 'not-due']) await put(id, YEARLY);
    await api.call('PATCH', '/api/v1/schedules/paused', { enabled: false });
    await sql`UPDATE schedules SET next_occurrence_at = NULL, next_fire_at = NULL WHERE id = 'ended'`;
    await rewind('in-error', newYear(thisYear));
    await sql`UPDATE schedules SET error = 'no such zone', plan_failures = 3 WHERE id = 'in-error'`;
    const before = await everything();
    const answer = await resume();
    expect(answer.code).toBe(0);
    expect(answer.out).toContain('schedules not touched: 1 paused, 1 ended, 1 in error\n');
    expect(countIn(answer, 'schedules moved to their next fire')).toBe(0);
    expect(await everything()).toEqual(before);
  });

  test('names schedules whose fires it cannot count and goes on with the others', async () => {
    for (const id of ['broken', 'no-moment', 'sound']) await put(id, YEARLY);
    await rewind('broken', newYear(thisYear - 1));
    await sql`UPDATE schedules SET next_occurrence_at = '-infinity', next_fire_at = '-infinity' WHERE id = 'no-moment'`;
    await rewind('sound', newYear(thisYear - 1));
    await sql`UPDATE schedules SET timing = '{"cron":"at noon"}' WHERE id = 'broken'`;
    const before = await sql`SELECT * FROM schedules WHERE id <> 'sound' ORDER BY id`;
    const answer = await resume();
    expect(answer.code).toBe(0);
    expect(answer.out).toContain('schedule broken was not moved: ');
    expect(answer.out).toContain('schedule no-moment was not moved: ');
    expect(countIn(answer, 'schedules moved to their next fire')).toBe(1);
    expect((await schedule('sound')).next).toEqual(newYear(thisYear + 1));
    expect(await sql`SELECT * FROM schedules WHERE id <> 'sound' ORDER BY id`).toEqual(before);
    expect(await sql`SELECT DISTINCT schedule_id FROM all_runs`).toEqual([{ schedule_id: 'sound' }]);
  });

  test('takes more schedules than fit one batch', async () => {
    const items = Array.from({ length: 600 }, (_, index) => ({
      id: `s${index}`,
      cron: YEARLY,
      target: TARGET,
    }));
    expect((await api.call('POST', '/api/v1/schedules/batch', { items })).status).toBe(200);
    await sql`UPDATE schedules SET next_occurrence_at = ${newYear(thisYear)}, next_fire_at = ${newYear(thisYear)}`;
    expect(countIn(await resume(), 'schedules moved to their next fire')).toBe(600);
    expect(await sql`SELECT count(*)::int FROM all_runs WHERE status = 'skipped'`).toEqual([{ count: 600 }]);
    expect(await sql`SELECT DISTINCT next_fire_at FROM schedules`).toEqual([{ next_fire_at: newYear(thisYear + 1) }]);
  });

  test('a second time changes nothing', async () => {
    await put('yearly', YEARLY);
    await rewind('yearly', newYear(thisYear - 1));
    await resume();
    const before = await everything();
    const again = await resume();
    expect(again.code).toBe(0);
    expect(countIn(again, 'schedules moved to their next fire')).toBe(0);
    expect(countIn(again, 'fires skipped')).toBe(0);
    expect(await everything()).toEqual(before);
  });

  test('moves no schedule that was edited or planned since it was counted', async () => {
    const store = openDatabase(database.url, 1);
    try {
      for (const id of ['edited', 'planned', 'untouched']) {
        await put(id, YEARLY);
        await rewind(id, newYear(thisYear));
      }
      const page = { after: '00000000-0000-0000-0000-000000000000', limit: 10 };
      const due = await store.run((db) => listDueSchedules(db, Date.now(), page));
      expect(due).toHaveLength(3);
      await sql`UPDATE schedules SET version = 2 WHERE id = 'edited'`;
      await rewind('planned', newYear(thisYear + 1));
      const skips = due.map((one) => ({
        schedule: one,
        fires: [
          {
            scheduledFor: one.nextOccurrenceAt,
            dueAt: one.nextOccurrenceAt,
            trigger: 'catchUp' as const,
            skipped: 'missed' as const,
            coalesced: 0,
            coalescedFrom: null,
          },
        ],
        nextOccurrenceAt: null,
        nextFireAt: null,
      }));
      const moved = await store.transaction((tx) => skipDueIfUnmoved(tx, skips));
      expect([...moved]).toEqual([(await schedule('untouched')).uid]);
      expect(await sql`SELECT schedule_id FROM all_runs`).toEqual([{ schedule_id: 'untouched' }]);
    } finally {
      await store.close();
    }
  });

  test('interrupted in the middle of a long count it ends, and leaves that schedule as it was', async (context) => {
    notThroughPooler(context, 'what a session did last cannot be told there from what the test asks itself');
    await put('a-year-of-seconds', '* * * * * *');
    await rewind('a-year-of-seconds', newYear(thisYear - 1));
    const command = spawnDaemon({ DATABASE_URL: database.url }, 'resume', '--from-now');
    await until(async () => {
      const counting = await sql`SELECT FROM pg_stat_activity
        WHERE datname = current_database() AND application_name = 'firelock' AND state = 'idle'
          AND query LIKE 'SELECT -- listDueSchedules%'`;
      return counting.length > 0 || null;
    });
    command.signal('SIGINT');
    expect(await command.exited).toBe(1);
    expect(command.text.out).toMatch(/^interrupted; /);
    expect((await schedule('a-year-of-seconds')).next).toEqual(newYear(thisYear - 1));
  });
});

describe('while an instance lives', () => {
  const instance = (host: string, more: Record<string, unknown>) =>
    sql`INSERT INTO instances ${sql({
      id: randomUUID(),
      host,
      version: '0',
      zone_data: '0',
      started_at: new Date(0),
      ttl_seconds: 600,
      ...more,
    })}`;

  test('it is named, and nothing is changed', async () => {
    await put('yearly', YEARLY);
    await rewind('yearly', newYear(thisYear));
    await instance('living.example', { heartbeat_at: new Date() });
    await instance('left.example', { heartbeat_at: new Date(), died_at: new Date() });
    await instance('silent.example', { heartbeat_at: new Date(Date.now() - 700_000) });
    const before = await everything();
    const answer = await resume();
    expect(answer.code).toBe(1);
    expect(answer.out).toContain('on living.example');
    expect(answer.out).not.toMatch(/left|silent/);
    expect(await everything()).toEqual(before);
    await sql`UPDATE instances SET heartbeat_at = heartbeat_at - interval '600 seconds'`;
    expect((await resume()).code).toBe(0);
  });
});

describe('pending runs of the restored database', () => {
  const LOOKUP = { url: 'http://127.0.0.1:9/lookup', method: 'GET', headers: {} };

  beforeEach(async () => {
    for (const id of ['least', 'most', 'least-asked', 'most-asked']) {
      await put(id, YEARLY);
      const delivery = { delivery: id.startsWith('most') ? 'atMostOnce' : 'atLeastOnce' };
      const lookup = {
        target: {
          ...TARGET,
          method: 'POST',
          headers: {},
          secret: null,
          lookup: id.endsWith('asked') ? LOOKUP : null,
          cancel: null,
        },
      };
      await sql`UPDATE schedule_versions SET definition = definition || ${sql.json({ ...delivery, ...lookup })}
        WHERE schedule_id = ${id}`;
    }
    for (const [scheduleId, at] of [
      ['least', 1],
      ['most', 2],
      ['least-asked', 3],
      ['most-asked', 4],
    ] as const) {
      const { uid } = await schedule(scheduleId);
      const base = newYear(thisYear).getTime() + at * 1000;
      const dead = { claimed_by: randomUUID(), claimed_at: new Date(base), attempts: 1 };
      const kinds: Record<string, unknown>[] = [
        { key: 'unclaimed' },
        { key: 'claimed', ...dead },
        { key: 'started', ...dead, handoff_started_at: new Date(base) },
        { key: 'later', due_at: new Date(Date.now() + 3_600_000), attempts: 1 },
        { key: 'done', ...dead, status: 'succeeded' },
      ];
      for (const [index, more] of kinds.entries()) {
        const row = {
          id: plannedRunId(uid, base + index),
          scheduled_for: isoInstant(base + index),
          schedule_uid: uid,
          schedule_version: 1,
          schedule_id: scheduleId,
          trigger: 'schedule',
          status: 'pending',
          lane: 'http http://127.0.0.1:9',
          priority: 1,
          due_at: isoInstant(base + index),
          attempts: 0,
          created_at: isoInstant(base),
          updated_at: isoInstant(base),
          ...more,
        };
        await insertRuns(sql, [row]);
      }
    }
  });

  interface RunRow {
    schedule_id: string;
    key: string;
    status: string;
    error: { kind: string; message: string } | null;
    finished_at: Date | null;
    in_doubt_until: Date | null;
    due_at: Date;
    claimed_by: string | null;
    [column: string]: unknown;
  }

  const rows = async (scheduleId: string) => (await runsOf(scheduleId)) as unknown as RunRow[];
  const named = async (scheduleId: string, holds: (run: RunRow) => boolean) =>
    (await rows(scheduleId)).filter(holds).map(({ key }) => key);

  test('at-least-once ones go on as they are', async () => {
    const before = await rows('least');
    const answer = await resume();
    expect(answer.code).toBe(0);
    expect(await rows('least')).toEqual(before);
    // least: four; the others: those that are not due and unclaimed.
    expect(countIn(answer, 'pending runs that will be sent')).toBe(7);
  });

  test('at-most-once ones that may have been sent since are unknown, and say why', async () => {
    const answer = await resume();
    expect(countIn(answer, 'pending at-most-once runs')).toBe(3);
    expect(await named('most', ({ status }) => status === 'unknown')).toEqual(['unclaimed', 'claimed', 'started']);
    expect(await named('most', ({ status }) => status === 'pending')).toEqual(['later']);
    expect(await named('most', ({ status }) => status === 'succeeded')).toEqual(['done']);
    for (const { status, error, finished_at } of await rows('most')) {
      if (status !== 'unknown') continue;
      expect(error?.message).toContain('restored');
      expect(finished_at).not.toBeNull();
    }
    const { body } = await api.call('GET', '/api/v1/schedules/most/stats');
    expect(body).toMatchObject({ unknownRuns: 3, openRuns: 1 });
  });

  test('runs that waited for an earlier run may have been sent since as well', async () => {
    await sql`UPDATE runs SET status = 'waiting', overlap_guarded = true WHERE key = 'unclaimed'`;
    await resume();
    const unclaimed = async (id: string) => (await rows(id)).find(({ key }) => key === 'unclaimed');
    expect(await unclaimed('most')).toMatchObject({ status: 'unknown' });
    const asked = await unclaimed('most-asked');
    expect(asked).toMatchObject({ status: 'waiting' });
    expect(asked?.in_doubt_until).not.toBeNull();
    expect(await unclaimed('least')).toMatchObject({ status: 'waiting', in_doubt_until: null });
  });

  test('ends that this brings about are followed', async () => {
    await sql`UPDATE schedules SET after_uid = ${(await schedule('most')).uid}, after_on = '{unknown}' WHERE id = 'least'`;
    await resume();
    await api.applyEffects();
    const ended = (await rows('most')).filter(({ status }) => status === 'unknown').map(({ id }) => id);
    const parents = (await rows('least')).flatMap((run) => run['parent_run_id'] ?? []);
    expect(parents.sort()).toEqual(ended.sort());
    expect(ended).toHaveLength(3);
  });

  test('whose target has a lookup wait for it before anything is sent', async () => {
    const answer = await resume();
    expect(countIn(answer, 'pending runs whose target will first be asked')).toBe(6);
    for (const id of ['least-asked', 'most-asked']) {
      const isInDoubt = (run: RunRow) => run.in_doubt_until !== null;
      expect(await named(id, isInDoubt)).toEqual(['unclaimed', 'claimed', 'started']);
      expect(await named(id, ({ status }) => status === 'pending')).toEqual([
        'unclaimed',
        'claimed',
        'started',
        'later',
      ]);
      for (const { claimed_by, due_at, in_doubt_until } of (await rows(id)).filter(isInDoubt)) {
        expect([claimed_by, due_at]).toEqual([null, in_doubt_until]);
      }
    }
    // At most once a "no" counts only when nothing that was sent can arrive any more: time limit and lock's TTL.
    const [most] = await sql<{ wait: number }[]>`
      SELECT extract(epoch FROM in_doubt_until - updated_at)::float8 AS wait FROM all_runs
      WHERE schedule_id = 'most-asked' AND key = 'claimed'`;
    expect(most?.wait).toBe(30 + 120);
  });

  test('a second time changes nothing', async () => {
    await resume();
    const before = await everything();
    const again = await resume();
    expect([countIn(again, 'pending at-most-once'), countIn(again, 'pending runs whose target')]).toEqual([0, 0]);
    expect(await everything()).toEqual(before);
  });
});

test('works on the embedded PostgreSQL, and leaves it stopped', { tags: [LONG] }, async () => {
  const directory = await realpath(await mkdtemp(join(tmpdir(), 'firelock-resume-')));
  // As root the server runs as someone else, who has to get in.
  await chmod(directory, 0o755);
  const variables = { FIRELOCK_DATA_DIR: join(directory, 'data'), DATABASE_URL: '' };
  try {
    const daemon = await startDaemon({ FIRELOCK_DATA_DIR: variables.FIRELOCK_DATA_DIR });
    await daemon.ready();
    expect(await start(['resume', '--from-now'], variables)).toMatchObject({ code: 1 });
    daemon.signal('SIGTERM');
    expect(await daemon.exited).toBe(0);
    expect(await start(['resume', '--from-now'], variables)).toMatchObject({ code: 0, err: '' });
    expect(await serverPid(variables.FIRELOCK_DATA_DIR)).toBeUndefined();
  } finally {
    const pid = await serverPid(variables.FIRELOCK_DATA_DIR);
    if (pid !== undefined) process.kill(pid, 'SIGQUIT');
    await until(async () => ((await serverPid(variables.FIRELOCK_DATA_DIR)) === undefined ? true : null));
    await rm(directory, { recursive: true, force: true, maxRetries: 10 });
  }
});

test('a database out of reach is an error, without its password', async () => {
  const url = 'postgres://firelock:hidden-word@127.0.0.1:9/nowhere';
  const { code, out, err } = await start(['resume', '--from-now'], { DATABASE_URL: url });
  expect(code).toBe(1);
  expect(out + err).toContain('127.0.0.1:9');
  expect(out + err).not.toContain('hidden-word');
});

test.each([[['resume']], [['resume', '--from-then']], [['resume', '--from-now', 'please']], [['begin']]])(
  '%j is answered with a pointer to help, and exit code 64',
  async (args) => {
    const { code, out, err } = await run(args);
    expect([code, out]).toEqual([64, '']);
    expect(err).toMatch(/^firelock: [^]*\n--help lists commands and options\n$/);
  },
);

test('--version prints the version', async () => {
  const { code, out } = await start(['--version']);
  expect([code, out]).toEqual([0, expect.stringMatching(/^firelock \d+\.\d+\.\d+\n$/)]);
});

test('--help lists the commands', async () => {
  const { code, out, err } = await run(['--help']);
  expect([code, err]).toEqual([0, '']);
  expect(out).toMatch(/^ {2}resume .* after a restored backup/m);
});
