import { callApi, sendGood } from '../../test/support/calls.ts';
import { copyStatement } from './copy-rows.ts';
import type { BenchDatabase } from './processes/postgres.ts';

const BATCH = 1000;
const DELETES_AT_ONCE = 4;

export type ScheduleItem = { id: string } & Record<string, unknown>;

/** Creates schedules over the API, a thousand a call, so many calls at once. */
export async function putSchedules(daemonUrl: string, items: readonly ScheduleItem[], callsAtOnce = 1): Promise<void> {
  let next = 0;
  const putInTurn = async () => {
    while (next < items.length) {
      const some = items.slice(next, (next += BATCH));
      await callApi(`${daemonUrl}/api/v1/schedules/batch`, { items: some });
    }
  };
  await Promise.all(Array.from({ length: callsAtOnce }, putInTurn));
}

export async function deleteSchedules(daemonUrl: string, ids: readonly string[]): Promise<void> {
  const waiting = [...ids];
  const deleteInTurn = async () => {
    for (let id = waiting.pop(); id !== undefined; id = waiting.pop()) {
      await sendGood(`${daemonUrl}/api/v1/schedules/${id}`, 'DELETE');
    }
  };
  await Promise.all(Array.from({ length: DELETES_AT_ONCE }, deleteInTurn));
}

const AT_ONCE = 100_000;
/** Copies are spread over so many hours from the hour of the one that is copied. */
const HOURS = 10;

/**
 * Makes so many daily schedules, none of them due within the next ten hours: one over the API, the others its copies
 * by SQL, whatever columns there are. A daemon must be running, and may stop afterwards.
 */
export async function seedRestingSchedules(
  database: BenchDatabase,
  daemonUrl: string,
  { count, url }: { count: number; url: string },
): Promise<void> {
  const hour = (new Date().getUTCHours() + 11) % 24;
  const firstCron = `0 ${hour} * * *`;
  const first: ScheduleItem = { id: 'resting-0', cron: firstCron, target: { type: 'http', url } };
  await putSchedules(daemonUrl, [first]);
  const cron = `(n % 60 || ' ' || (${hour} + n / 60 % ${HOURS}) % 24 || ' * * *')`;
  const later = `make_interval(hours => n / 60 % ${HOURS}, mins => n % 60)`;
  const copies = await copyStatement((statement) => database.query(statement), 'schedules', {
    uid: 'new.uid',
    id: `'resting-' || n`,
    timing: `replace(t.timing, '${firstCron}', ${cron})`,
    next_occurrence_at: `t.next_occurrence_at + ${later}`,
    next_fire_at: `t.next_fire_at + ${later}`,
  });
  const versions = await copyStatement((statement) => database.query(statement), 'schedule_versions', {
    schedule_uid: 'new.uid',
    schedule_id: `'resting-' || n`,
    definition: `jsonb_set(t.definition, '{cron}', to_jsonb(${cron}))`,
  });
  for (let from = 1; from < count; from += AT_ONCE) {
    const to = Math.min(count, from + AT_ONCE) - 1;
    await database.query(`WITH new AS MATERIALIZED (
        SELECT n::int, gen_random_uuid() AS uid FROM generate_series(${from}, ${to}) AS n),
      made AS (${copies} WHERE t.id = 'resting-0')
      ${versions} WHERE t.schedule_id = 'resting-0'`);
  }
}
