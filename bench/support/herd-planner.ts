import { NO_SHARES } from '../../src/core/access/scope.ts';
import { PlanTurns, takeFireLocks } from '../../src/flow/tick.ts';
import { sql } from 'drizzle-orm';
import type { Calendars } from '../../src/core/exclusions/exclusion.ts';
import { Planner } from '../../src/flow/plan.ts';
import { createCalendarReader } from '../../src/flow/plan-inputs.ts';
import { recordIntents } from '../../src/flow/record-intent.ts';
import { CALENDAR_KIND } from '../../src/operations/calendars/calendar-changes.ts';
import { putNamed } from '../../src/operations/named-changes.ts';
import { changeSchedules } from '../../src/operations/schedules/schedule-changes.ts';
import { type Database, openDatabase } from '../../src/postgres/database.ts';
import { migrate } from '../../src/postgres/migrate.ts';
import { systemClock, createDatabaseClock } from '../../src/runtime/clock.ts';
import { createEventBus } from '../../src/runtime/event-bus.ts';
import { createLease } from '../../src/runtime/instance-lease.ts';
import { readCalendars } from '../../src/store/calendars/calendar-histories.ts';
import { registerUnlessObserving } from '../../src/store/instances/instances.ts';
import { createHttpTarget } from '../../src/targets/http.ts';
import { createTargetRegistry } from '../../src/targets/target.ts';
import { definitionOf } from '../../test/support/pipeline.ts';
import { SECRETS } from '../../test/support/secrets.ts';
import { openServer } from './processes/postgres.ts';
import { type Timing, DEFAULT_TIMING } from '../../src/core/timing/timing.ts';
import { timingText } from '../../src/core/schedules/stored-definition.ts';
import { instants, texts } from '../../src/postgres/sql/arrays.ts';
import { rowsOf } from '../../src/postgres/sql/rows.ts';
import { copyStatement } from './copy-rows.ts';

/** Milliseconds for the whole herd: locked and planned; the same and its runs recorded. */
export interface Planned {
  planned: number;
  recorded: number;
}

export interface HerdPlanner {
  database: Database;
  server: string;
  calendars(): Calendars;
  /** Plans all that is due, as of a moment, with nothing sent. */
  plan(count: number, now: number): Promise<Planned>;
  close(): Promise<void>;
}

const RETENTION_DAYS = 4_000;
const nothing = () => undefined;
const WAKE = { effects: nothing, dispatch: nothing, workers: nothing, admission: nothing, alerts: nothing };

/** A database of its own, with the stages 2 to 4 of one instance. */
export async function openHerdPlanner(kinds: readonly DayKind[], count: number): Promise<HerdPlanner> {
  const server = await openServer();
  const own = await server.createDatabase();
  await migrate(own.url);
  const database = openDatabase(own.url, 4);
  await seed(database, kinds, count);
  const lease = createLease(systemClock, 3_600);
  lease.renew(lease.moment());
  const { instanceId } = lease;
  const instance = { id: instanceId, host: 'bench', version: 'bench', zoneData: 'bench', ttlSeconds: 3_600 };
  await database.run((db) => registerUnlessObserving(db, instance));
  const common = {
    database,
    clock: systemClock,
    events: createEventBus(),
    lease,
    scopeShares: NO_SHARES,
    commits: { note: nothing },
  };
  const deps = {
    ...common,
    databaseClock: createDatabaseClock(systemClock),
    lockTtlSeconds: 120,
    planTurns: new PlanTurns(NO_SHARES, 1),
  };
  const dispatcher = { reserve: () => false, unreserve: nothing, accept: nothing };
  const planner = new Planner({
    ...{ clock: systemClock, retentionDays: RETENTION_DAYS },
    readCalendars: createCalendarReader(database),
  });
  const known = await database.run((db) => readCalendars(db, ['holidays'], Date.UTC(2020, 0, 1)));
  return {
    database,
    server: `PostgreSQL ${server.version}, ${server.durability}`,
    calendars: () => known.histories,
    plan: async (expected, now) => {
      const measured = { planned: 0, recorded: 0 };
      for (let fires = 0; fires < expected;) {
        const start = performance.now();
        const due = await takeFireLocks(deps, planner.walking());
        const round = await planner.round(due.locked, now);
        const planned = performance.now();
        await recordIntents({ ...common, dispatcher, wake: WAKE }, round, due.now);
        measured.planned += planned - start;
        measured.recorded += performance.now() - start;
        const made = round.planned.reduce((sum, { plan }) => sum + plan.fires.length, 0);
        if (made !== due.locked.length || made === 0)
          throw new Error(`${made} fires of ${due.locked.length}`);
        fires += made;
      }
      return measured;
    },
    close: async () => {
      await database.close();
      await own.drop();
      await server.stop();
    },
  };
}

async function seed(database: Database, kinds: readonly DayKind[], count: number): Promise<void> {
  const events = createEventBus();
  const targets = createTargetRegistry([
    createHttpTarget({ clock: systemClock, version: 'bench', connectionsPerOrigin: 1 }),
  ]);
  const deps = { database, targets, events, retentionDays: RETENTION_DAYS, secrets: SECRETS, wake: WAKE };
  const holidays = [2022, 2023, 2024, 2025, 2026].flatMap((year) =>
    ['01-01', '04-06', '05-01', '05-25', '10-03', '12-24/26', '12-31'].map((day) =>
      day.includes('/') ? `${year}-12-24/${year}-12-26` : `${year}-${day}`,
    ),
  );
  for (const dates of [holidays.slice(0, 10), holidays.slice(0, 20), holidays])
    await putNamed({ ...deps, scope: null }, CALENDAR_KIND, 'holidays', () => ({
      content: { description: null, validUntil: null, dates },
    }));
  await database.run((db) =>
    db.execute(
      sql`UPDATE calendar_versions SET at = '2020-01-01Z'::timestamptz + make_interval(days => version)`,
    ),
  );
  const decide = () => definitionOf({ url: 'http://127.0.0.1:9/' });
  await changeSchedules(deps, [{ id: 'first', by: null, scope: null, decide }]);
  await copySchedules(database, 'first', kinds, count);
  await targets.close();
}

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
async function copySchedules(database: Database, first: string, kinds: readonly DayKind[], count: number) {
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
