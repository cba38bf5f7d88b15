import { sql } from 'drizzle-orm';
import { DEFAULT_TIMING, type Timing } from '../../src/core/timing/timing.ts';
import { timingText } from '../../src/core/schedules/stored-definition.ts';
import type { Database } from '../../src/postgres/database.ts';
import { instants, texts } from '../../src/postgres/sql/arrays.ts';
import { rowsOf } from '../../src/postgres/sql/rows.ts';
import { copyStatement } from './copy-rows.ts';

/** What a plain cron is compared with. */
export const DAY_KINDS = {
  plain: {},
  weekdays: { exclude: { dates: [], calendars: [], weekdays: ['sat', 'sun'] } },
  calendar: { exclude: { dates: [], calendars: ['holidays'], weekdays: ['sat', 'sun'] } },
  every: { cron: '0 9 * * MON', every: { n: 2, unit: 'week', from: '2021-12-27' } },
  'pick of week': pick('week', [1, -1]),
  'pick of month': pick('month', [-1]),
  'pick of year': pick('year', [5, 50, -5]),
  next: { cron: '0 9 * * SAT,MON', ...moving('next') },
  previous: { cron: '0 9 * * SAT,MON', ...moving('previous') },
} as const satisfies Record<string, Partial<Timing>>;

export type DayKind = keyof typeof DAY_KINDS;

function pick(of: 'week' | 'month' | 'year', nth: number[]) {
  return {
    exclude: { dates: [], calendars: ['holidays'], weekdays: ['sat', 'sun'] as const },
    pick: { of, nth },
  };
}

function moving(onExcluded: 'next' | 'previous') {
  return {
    exclude: { dates: [], calendars: ['holidays'], weekdays: ['sat', 'sun'] as const },
    onExcluded,
  };
}

/** All of a herd at 09:00, or each schedule at a second of its own. */
export type Hours = 'same' | 'spread';

export function timingOfKind(kind: DayKind, hours: Hours, index: number): Timing {
  const { cron = '0 9 * * *', ...rule }: Partial<Timing> = DAY_KINDS[kind];
  const days = String(cron).slice('0 9 '.length);
  const time = `${index % 60} ${Math.floor(index / 60) % 60} ${Math.floor(index / 3600) % 23}`;
  const timed = hours === 'same' ? String(cron) : `${time} ${days}`;
  const none = { everySeconds: null, at: null, after: null };
  return { ...DEFAULT_TIMING, ...none, timezone: 'Europe/Berlin', ...rule, cron: timed };
}

/** Copies of the schedule `first`, as `KIND INDEX`: they rest until they are made due. */
export async function copySchedules(
  database: Database,
  first: string,
  kinds: readonly DayKind[],
  count: number,
) {
  const query = (statement: string) =>
    database.run((db) => rowsOf<Record<string, unknown>>(db)(sql.raw(statement)));
  for (const kind of kinds) {
    const statement = await copyStatement(query, 'schedules', {
      uid: 'gen_random_uuid()',
      id: `'${kind} ' || n`,
      enabled: 'false',
      created_at: `'2021-01-01Z'`,
    });
    await query(
      `WITH new AS (SELECT n FROM generate_series(0, ${count - 1}) AS n) ${statement} WHERE t.id = '${first}'`,
    );
  }
}

/** One herd, and no other schedule, is due: each at its own moment. */
export async function makeHerdDue(
  database: Database,
  kind: DayKind,
  { timings, moments }: { timings: readonly Timing[]; moments: readonly number[] },
): Promise<void> {
  await database.run((db) => db.execute(sql`DELETE FROM runs`));
  await database.run((db) => db.execute(sql`UPDATE schedules SET enabled = false WHERE enabled`));
  const ids = moments.map((_, index) => `${kind} ${index}`);
  await database.run((db) =>
    db.execute(sql`UPDATE schedules s SET enabled = true, timing = d.timing, next_occurrence_at = d.at, next_fire_at = d.at,
      planned_through = NULL, locked_by = NULL, locked_at = NULL
    FROM unnest(${texts(ids)}, ${texts(timings.map(timingText))}, ${instants(moments)}) AS d(id, timing, at) WHERE s.id = d.id`),
  );
  await database.run((db) => db.execute(sql`VACUUM ANALYZE schedules`));
  await database.run((db) => db.execute(sql`VACUUM ANALYZE runs`));
}
