import { setTimeout as sleep } from 'node:timers/promises';
import { ONE_OFF_KEYS } from '../../src/store/runs/idempotency-keys.ts';
import { DAY_MS } from '../../src/core/instant.ts';
import { callApi } from '../../test/support/calls.ts';
import { copyStatement } from './copy-rows.ts';
import { iso, makePastDays } from './history/day-partitions.ts';
import { daysOf } from './history/seed-history.ts';
import type { BenchDatabase } from './processes/postgres.ts';
import { putSchedules, seedRestingSchedules } from './schedules.ts';

/** The scope of the small team. */
export const SMALL_TEAM = 'small.';

interface TeamSizes {
  /** Schedules of all teams, and how many of them are the small team's. */
  schedules: number;
  small: number;
  /** Ended runs of all teams. */
  runs: number;
  days: number;
  /** Of a target that is never called again. */
  url: string;
  log: (line: string) => void;
}

/** One of so many rows of each table is the small team's, whatever the table. */
const SHARE = 1_000;
/** Of so many runs, one is a one-off run, one a message and one fired by hand. */
const KINDS = 10;
/** Open runs, which wait for a worker. */
const OPEN = 10_000;
/** Entries of the audit, and episodes of alerts. */
const NOTED = 100_000;

/** Fills a database as a large team leaves it that shares it with a small one. A daemon must be running. */
export async function seedTeams(database: BenchDatabase, daemonUrl: string, sizes: TeamSizes): Promise<void> {
  const { schedules, small, url, log } = sizes;
  const days = daysOf(sizes.days);
  await makePastDays(database, [...days, (days.at(-1) ?? 0) + DAY_MS]);
  await seedRestingSchedules(database, daemonUrl, { count: schedules - small, url });
  await putSchedules(daemonUrl, ownSchedules(small, url));
  log(`${schedules.toLocaleString('en')} schedules`);
  await seedEndedRuns(database, daemonUrl, sizes);
  log(`${sizes.runs.toLocaleString('en')} ended runs`);
  await seedOpenRuns(database, daemonUrl);
  await seedNotes(database);
  await database.calm();
}

/** Once a year, so that they rest. */
function ownSchedules(count: number, url: string) {
  return Array.from({ length: count }, (_, index) => ({
    id: `${SMALL_TEAM}job-${index}`,
    description: `Closes the books of customer ${index}`,
    cron: `${index % 60} 3 1 1 *`,
    enabled: index % 10 !== 0,
    labels: { tenth: `${index % 10}` },
    target: { type: 'http', url },
  }));
}

/** Copies of one real run of each kind, spread over all days: of any day the small team has some. */
async function seedEndedRuns(database: BenchDatabase, daemonUrl: string, sizes: TeamSizes): Promise<void> {
  const target = { type: 'http', url: sizes.url };
  const fired = await ended(daemonUrl, 'schedules/resting-0/fire', {});
  const oneOff = await ended(daemonUrl, 'runs', { target, key: `${SMALL_TEAM}first` });
  await listRunsToMake(database, sizes);
  const moments = ['scheduled_for', 'due_at', 'finished_at', 'ended_at', 'created_at', 'updated_at'];
  const copies = (others: Record<string, string>) =>
    copyStatement((text) => database.query(text), 'history', {
      ...Object.fromEntries(moments.map((column) => [column, 'new.at'])),
      ...{ id: 'new.id', status: 'new.status', trigger: 'new.trigger' },
      ...others,
    });
  const ofSchedules = await copies({ schedule_uid: 'new.uid', schedule_id: 'new.schedule_id' });
  const ofNone = await copies({
    key: `CASE new.trigger WHEN 'api' THEN new.team || new.n END`,
    notifier_id: `CASE new.trigger WHEN 'notify' THEN new.team || 'bell' END`,
  });
  await database.query(`WITH new AS (SELECT b.*, s.uid FROM bench_runs b JOIN schedules s ON s.id = b.schedule_id
      WHERE b.trigger NOT IN ('api', 'notify') ORDER BY b.n DESC)
    ${ofSchedules} WHERE t.id = '${fired}'`);
  await database.query(`WITH new AS (SELECT * FROM bench_runs WHERE trigger IN ('api', 'notify') ORDER BY n DESC)
    ${ofNone} WHERE t.id = '${oneOff}'`);
  await database.query(`INSERT INTO run_keys (scope, key, body_hash, run_id)
    SELECT '${ONE_OFF_KEYS}', team || n, '', id FROM bench_runs WHERE trigger = 'api'`);
  await database.query('DROP TABLE bench_runs');
}

/** In a table of its own, the newest first. */
async function listRunsToMake(database: BenchDatabase, { runs, schedules, small, days }: TeamSizes): Promise<void> {
  const stepSeconds = (days * DAY_MS) / runs / 1000;
  // Each thousand has a kind: so both teams have all kinds.
  const thousand = `n / ${SHARE}`;
  await database.query(`CREATE TABLE bench_runs AS
    SELECT n::int, at, ${idAt('at')} AS id, CASE WHEN n % ${SHARE} = 0 THEN '${SMALL_TEAM}' ELSE 'other.' END AS team,
      CASE WHEN n % ${SHARE} = 0 THEN '${SMALL_TEAM}job-' || ${thousand} % ${small}
        ELSE 'resting-' || n % ${schedules - small} END AS schedule_id,
      CASE ${thousand} % ${KINDS} WHEN 1 THEN 'api' WHEN 2 THEN 'notify' WHEN 3 THEN 'manual' ELSE 'schedule' END AS trigger,
      CASE (${thousand} + n) % 40 WHEN 0 THEN 'failed' WHEN 1 THEN 'skipped' ELSE 'succeeded' END AS status
    FROM generate_series(0, ${runs - 1}) AS n, LATERAL (SELECT date_trunc('milliseconds', timestamptz '${iso(Date.now())}'
      - make_interval(secs => (n + 1) * ${stepSeconds})) AS at) AS a`);
}

/** An id of a run or an episode of that moment. */
function idAt(at: string): string {
  return `(lpad(to_hex((extract(epoch FROM ${at}) * 1000)::bigint), 12, '0') || '7'
        || substr(replace(gen_random_uuid()::text, '-', ''), 14))::uuid`;
}

async function seedOpenRuns(database: BenchDatabase, daemonUrl: string): Promise<void> {
  const target = { type: 'pull', queue: 'other.work' };
  const { id } = (await callApi(`${daemonUrl}/api/v1/runs`, { target, key: 'other.open' })) as { id: string };
  const copies = await copyStatement((text) => database.query(text), 'runs', {
    id: `overlay(gen_random_uuid()::text placing substr(t.id::text, 1, 15) from 1)::uuid`,
    key: 'new.team || new.n',
    lane: `replace(t.lane, 'other.', new.team)`,
  });
  await database.query(`WITH new AS MATERIALIZED (SELECT 'open' || n AS n,
      CASE WHEN n % ${SHARE} = 0 THEN '${SMALL_TEAM}' ELSE 'other.' END AS team FROM generate_series(1, ${OPEN}) AS n),
    keys AS (INSERT INTO run_keys (scope, key, body_hash, run_id)
      SELECT '${ONE_OFF_KEYS}', team || n, '', gen_random_uuid() FROM new)
    ${copies} WHERE t.id = '${id}'`);
}

/** The audit, and alerts, of the schedules of both. */
async function seedNotes(database: BenchDatabase): Promise<void> {
  const names = `SELECT n, CASE WHEN n % ${SHARE} = 0 THEN '${SMALL_TEAM}job-' || n / ${SHARE} ELSE 'resting-' || n END AS id,
      clock_timestamp() - make_interval(secs => n) AS at FROM generate_series(1, ${NOTED}) AS n`;
  const entries = await copyStatement((text) => database.query(text), 'audit', {
    at: 'new.at',
    id: 'gen_random_uuid()',
    schedule_id: 'new.id',
    subject: 'new.id',
  });
  await database.query(`WITH new AS (${names}) ${entries}
    WHERE (t.at, t.id) = (SELECT at, id FROM audit WHERE action = 'schedule.fire' LIMIT 1)`);
  await database.query(`INSERT INTO alerts (id, schedule_uid, schedule_id, kind, since, broken_at, until)
    SELECT ${idAt('n.at')}, s.uid, s.id, 'failed', n.at, n.at, CASE WHEN n % 2 = 0 THEN n.at END FROM (${names}) AS n JOIN schedules s ON s.id = n.id`);
}

/** The id of the run that a call has made, once it has ended. */
async function ended(daemonUrl: string, path: string, body: object): Promise<string> {
  const { id } = (await callApi(`${daemonUrl}/api/v1/${path}`, body)) as { id: string };
  const status = async () => ((await callApi(`${daemonUrl}/api/v1/runs/${id}`)) as { status: string }).status;
  while ((await status()) !== 'succeeded') await sleep(50);
  return id;
}
