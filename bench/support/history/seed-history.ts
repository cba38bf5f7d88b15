import { setTimeout as sleep } from 'node:timers/promises';
import postgres from 'postgres';
import { DAY_MS } from '../../../src/core/instant.ts';
import { callApi } from '../../../test/support/calls.ts';
import { iso, makePastDays } from './day-partitions.ts';
import type { BenchDatabase } from '../processes/postgres.ts';
import { type ScheduleItem, putSchedules } from '../schedules.ts';

interface HistorySize {
  /** Whole days before today; what there is of today comes on top. */
  days: number;
  /** Schedules with a run every ten minutes, beside one with a run every five seconds. */
  schedules: number;
  /** Schedules with a run a day, which go on firing. */
  daily?: number;
}

export const BIG = 'big';
export const SMALL = 'small-7';
export const DAILY = 'job-7';

const EVERY_MS = 600_000;
const BIG_EVERY_MS = 5_000;

interface HistoryOptions {
  /** As daysOf() has them. */
  days: readonly number[];
  schedules: number;
  daily?: number;
  /** Of the target. */
  url: string;
  log: (line: string) => void;
}

/** The first moments of all whole days, the oldest first. */
export function daysOf(days: number): number[] {
  const today = Math.floor(Date.now() / DAY_MS) * DAY_MS;
  return Array.from({ length: days }, (_, index) => today - (days - index) * DAY_MS);
}

/**
 * Ended runs of these days and of today, as a daemon leaves them. One must be running, and must not keep history for less than
 * these days.
 */
export async function seedHistory(
  database: BenchDatabase,
  daemonUrl: string,
  { days, schedules, daily = 0, url, log }: HistoryOptions,
): Promise<void> {
  const today = (days.at(-1) ?? 0) + DAY_MS;
  await makePastDays(database, [...days, today]);
  await seedSchedules(database, daemonUrl, { days: days.length, schedules, daily }, url);
  await seedOneOff(database, daemonUrl, url);
  await seedDays(database.url, [...days, today], log);
}

/** Two days at a time, the oldest first: they go to tables of their own. */
async function seedDays(url: string, days: readonly number[], log: (line: string) => void): Promise<void> {
  const connection = { synchronous_commit: 'off', work_mem: '128MB' };
  const sql = postgres(url, { max: AT_ONCE, connection, onnotice: () => undefined });
  const waiting = [...days.entries()];
  const seedInTurn = async () => {
    for (let next = waiting.shift(); next; next = waiting.shift()) {
      const [index, day] = next;
      const startedAt = performance.now();
      const traits = { backfilled: index === Math.floor((days.length - 1) / 2), unknown: index < 2 };
      const until = Math.min(day + DAY_MS, Date.now() - 60_000);
      await sql.unsafe(runsStatement(day, until, traits));
      const seconds = (performance.now() - startedAt) / 1000;
      if (index % 5 === 0) log(`${iso(day).slice(0, 10)} took ${seconds.toFixed(1)} s`);
    }
  };
  try {
    await Promise.all(Array.from({ length: AT_ONCE }, seedInTurn));
  } finally {
    await sql.end({ timeout: 5 });
  }
}

const AT_ONCE = 2;

/** Paused, so that they rest; and as old as their runs. */
async function seedSchedules(
  database: BenchDatabase,
  daemonUrl: string,
  { days, schedules, daily = 0 }: HistorySize,
  url: string,
): Promise<void> {
  const target = { type: 'http', url };
  const small = Array.from({ length: schedules }, (_, index) => ({
    id: `small-${index + 1}`,
    cron: `${(index + 1) % 60} */10 * * * *`,
    enabled: false,
    payload: { customer: index },
    labels: { kind: 'small', tenth: `${index % 10}`, number: `${index + 1}` },
    target,
  }));
  await putSchedules(daemonUrl, [{ id: BIG, cron: '*/5 * * * * *', enabled: false, target }, ...small]);
  await putSchedules(daemonUrl, dailySchedules(daily, target));
  const ago = `interval '${days + 1} days'`;
  await database.query(`UPDATE schedules SET created_at = created_at - ${ago}, updated_at = updated_at - ${ago}`);
  await database.query(`UPDATE schedule_versions SET at = at - ${ago}`);
  await database.query(`CREATE TABLE bench_seeds AS SELECT uid, id, lane,
    CASE WHEN id = '${BIG}' THEN 0 WHEN id LIKE 'job-%' THEN -2 ELSE split_part(id, '-', 2)::int END AS number
    FROM schedules`);
}

const ZONES = ['UTC', 'Europe/Berlin', 'America/New_York', 'Asia/Tokyo'];

/** A tenth of them at two o'clock; the others at any minute of the day, in several zones. */
function dailySchedules(count: number, target: object): ScheduleItem[] {
  return Array.from({ length: count }, (_, index) => ({
    id: `job-${index}`,
    description: `Closes the books of customer ${index}`,
    cron: index % 10 === 0 ? '0 2 * * *' : `${index % 60} ${Math.floor(index / 60) % 24} * * *`,
    timezone: ZONES[index % ZONES.length],
    labels: { kind: 'daily', team: `team-${index % 50}`, customer: `${index}` },
    target,
  }));
}

/** One real one-off run, whose definition the seeded ones have in common. */
async function seedOneOff(database: BenchDatabase, daemonUrl: string, url: string): Promise<void> {
  const made = (await callApi(`${daemonUrl}/api/v1/runs`, { target: { type: 'http', url } })) as {
    id: string;
  };
  while (((await callApi(`${daemonUrl}/api/v1/runs/${made.id}`)) as { status: string }).status !== 'succeeded') {
    await sleep(50);
  }
  await database.query(
    `INSERT INTO bench_seeds SELECT schedule_uid, '', lane, -1 FROM all_runs WHERE id = '${made.id}'`,
  );
}

/**
 * All runs of a day, in the order of time. What became of each follows from its id: 0.5 % failed, 0.2 % skipped, 0.1 %
 * cancelled, 0.02 % abandoned; 1 % are one-off runs, 0.5 % were caught up and 0.1 % fired by hand. Some kinds are rare
 * and far back, as what lists find last: unknown ones on the two oldest days, backfilled ones on one in the middle.
 */
function runsStatement(day: number, until: number, traits: { backfilled: boolean; unknown: boolean }): string {
  const start = `timestamptz '${iso(day)}'`;
  return `INSERT INTO history (id, scheduled_for, schedule_uid, schedule_version, schedule_id, trigger, status, reason, lane,
      priority, due_at, attempts, failures, claimed_by, claimed_at, first_claimed_at, handed_off_at, finished_at, ended_at, lateness_ms,
      result_status_code, result_body, error, attempt_log, created_at, updated_at)
    SELECT (lpad(to_hex(f.ms), 12, '0') || '7' || substr(h, 1, 3) || substr('89ab', 1 + (get_byte(f.sha, 1) & 3), 1)
        || substr(h, 5, 15))::uuid,
      f.at, f.uid, 1, f.id, f.trigger, f.status,
      CASE f.status WHEN 'skipped' THEN 'missed' WHEN 'cancelled' THEN 'request' WHEN 'abandoned' THEN 'maxRecoveries' END,
      f.lane, 1, f.at, f.attempts, CASE WHEN f.status = 'failed' THEN f.attempts ELSE 0 END,
      CASE WHEN f.attempts > 0 THEN uuid '0194f5a0-0000-7000-8000-000000000001' END,
      f.began, f.began, CASE WHEN f.status IN ('succeeded', 'failed') THEN f.ended END, f.ended, f.ended,
      CASE WHEN f.attempts > 0 THEN 5 + get_byte(f.sha, 24) / 2 END,
      CASE f.status WHEN 'succeeded' THEN 204 WHEN 'failed' THEN 500 END,
      CASE f.status WHEN 'succeeded' THEN '' WHEN 'failed' THEN 'out of order' END,
      CASE f.status WHEN 'failed' THEN '${REJECTED}'::jsonb END,
      CASE WHEN f.status IN ('failed', 'unknown') THEN (SELECT jsonb_agg(${attemptOf('f')} ORDER BY n)
        FROM generate_series(1, f.attempts) AS n) END,
      f.at, f.ended
    FROM (
      SELECT e.*, encode(e.sha, 'hex') AS h, CASE WHEN e.attempts > 0 THEN e.at + interval '6 milliseconds' END AS began,
        e.at + make_interval(secs => 0.01 + get_byte(e.sha, 25) / 1000.0) AS ended
      FROM (
        SELECT k.*, CASE k.status WHEN 'succeeded' THEN 1 WHEN 'unknown' THEN 1 WHEN 'failed' THEN 3 ELSE 0 END AS attempts
        FROM (
          SELECT s.*,
            CASE WHEN s.number = -1 THEN 'api' ${traits.backfilled ? `WHEN s.kind < 655 THEN 'backfill'` : ''}
              WHEN s.kind < 983 THEN 'catchUp' WHEN s.kind < 1049 THEN 'manual' ELSE 'schedule' END AS trigger,
            CASE WHEN s.fate < 328 THEN 'failed' WHEN s.fate < 459 THEN 'skipped' WHEN s.fate < 525 THEN 'cancelled'
              WHEN s.fate < 538 THEN 'abandoned' ${traits.unknown ? `WHEN s.fate < 546 THEN 'unknown'` : ''}
              ELSE 'succeeded' END AS status
          FROM (
            SELECT t.*, get_byte(t.sha, 20) * 256 + get_byte(t.sha, 21) AS fate,
              get_byte(t.sha, 22) * 256 + get_byte(t.sha, 23) AS kind
            FROM (
              SELECT m.*, (extract(epoch FROM m.at) * 1000)::bigint AS ms,
                sha256(uuid_send(m.uid) || int8send((extract(epoch FROM m.at) * 1000)::bigint)) AS sha
              FROM (${momentsOf(start)}) AS m WHERE m.at < timestamptz '${iso(until)}'
            ) AS t
          ) AS s
        ) AS k
      ) AS e
    ) AS f ORDER BY f.at`;
}

/** When which schedule fires on a day. */
function momentsOf(start: string): string {
  const ofSchedules = (everyMs: number, condition: string) => `SELECT b.uid, b.id, b.lane, b.number,
      ${start} + make_interval(secs => n * ${everyMs / 1000} + CASE WHEN b.number > 0 THEN b.number % 60 ELSE 0 END) AS at
    FROM bench_seeds b, generate_series(0, ${DAY_MS / everyMs - 1}) AS n WHERE ${condition}`;
  return `${ofSchedules(EVERY_MS, 'b.number > 0')} UNION ALL ${ofSchedules(BIG_EVERY_MS, 'b.number = 0')}
    UNION ALL ${ofSchedules(27_000, 'b.number = -1')}
    UNION ALL SELECT b.uid, b.id, b.lane, b.number, ${start} + make_interval(secs => abs(hashtext(b.id)) % 86400) AS at
      FROM bench_seeds b WHERE b.number = -2`;
}

const REJECTED = '{"kind": "http", "message": "the target answered 500", "statusCode": 500}';

/** A plain success has none. */
function attemptOf(run: string): string {
  const ms = (at: string) => `(extract(epoch FROM ${run}.${at}) * 1000)::bigint`;
  return `jsonb_build_object('attempt', n, 'instanceId', '0194f5a0-0000-7000-8000-000000000001',
    'startedAt', ${ms('began')}, 'finishedAt', ${ms('ended')}, 'outcome', CASE WHEN ${run}.status = 'unknown' THEN 'unknown'
      WHEN n < ${run}.attempts THEN 'transient' ELSE 'rejected' END,
    'statusCode', CASE ${run}.status WHEN 'failed' THEN 500 END,
    'error', CASE ${run}.status WHEN 'failed' THEN '${REJECTED}'::jsonb END, 'recovery', false, 'lookup', NULL)`;
}
