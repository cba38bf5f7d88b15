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
import { type DayKind, copySchedules } from './day-herds.ts';
import { openServer } from './processes/postgres.ts';

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
