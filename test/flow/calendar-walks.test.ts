// @module-tag attack
// @module-tag long
import { sql } from 'drizzle-orm';
import { beforeEach, describe, expect, it, onTestFinished, vi } from 'vitest';
import type { FirelockEvent } from '../../src/core/events.ts';
import { LATEST } from '../../src/core/instant.ts';
import { createCalendarWatch } from '../../src/operations/calendars/calendar-changes.ts';
import { moveNextFires } from '../../src/operations/calendars/move-next-fires.ts';
import { type MoveProgress, noProgress } from '../../src/operations/calendars/walk-progress.ts';
import { systemClock } from '../../src/runtime/clock.ts';
import { createEventBus } from '../../src/runtime/event-bus.ts';
import { readCalendars } from '../../src/store/calendars/calendar-histories.ts';
import { putDates } from '../support/named.ts';
import { FAR } from '../support/of-test.ts';
import { until } from '../support/until.ts';
import { UNAPPLIED, dayToExclude, editCalendar, putOwing } from '../volume/leave.ts';
import { type Volume, volumeOfTest } from '../volume/volume.ts';

let volume: Volume;
let told: FirelockEvent[];

beforeEach(async () => {
  volume = await volumeOfTest(FAR);
  told = [];
});

const deps = (retentionDays = 30) => {
  const events = createEventBus();
  events.subscribe((event) => void told.push(event));
  return { database: volume.store.database, events, clock: systemClock, retentionDays };
};
const count = async (statement: Parameters<Volume['store']['rows']>[0]) =>
  (await volume.store.rows<{ count: number }>(statement))[0]?.count ?? 0;
const runs = () => count(sql`SELECT count(*)::int FROM all_runs`);
/** Those whose next fire has left the day that is excluded: they fire in a year. */
const moved = () =>
  count(sql`SELECT count(*)::int FROM schedules WHERE next_occurrence_at > now() + interval '30 days'`);
const unapplied = () => count(UNAPPLIED);
/** So many steps, by whoever holds this progress. */
const walk = (progress: MoveProgress, steps: number, waits = false) =>
  moveNextFires(deps(), 'holidays', { mayGoOn: () => (steps -= 1) >= 0, waits, progress });
const walker = (limit = 500, edition = '') => ({ ...noProgress(), limit, edition, version: 2 });
const present = async () => {
  const { editions } = await volume.store.database.run((db) => readCalendars(db, ['holidays'], LATEST));
  return editions.get('holidays');
};

describe('an edit of a calendar that owes two hundred and fifty schedules a fire', () => {
  beforeEach(async () => {
    await putOwing(volume, 250);
    await editCalendar(volume, [dayToExclude()]);
  });

  it('moves all next fires first; what is owed follows a hundred schedules at a time, each once', async () => {
    const progress = walker(100, await present());
    await walk(progress, 2);
    expect([await moved(), await runs()]).toEqual([250, 0]);
    await walk(progress, 1);
    expect(await runs()).toBe(100);
    await walk(progress, 1);
    expect([await runs(), await unapplied()]).toEqual([200, 1]);
    expect(await walk(progress, 9)).toBe(true);
    expect([await runs(), await unapplied()]).toEqual([250, 0]);
    // Once more, as if it had died before it could note that.
    await volume.store.rows(sql`UPDATE calendars SET applied_version = 1`);
    expect(await walk(walker(), 9)).toBe(true);
    expect(await runs()).toBe(250);
  });

  it('is walked along by one at a time, and whoever comes next goes on where that one has ended', async () => {
    const first = walker();
    await walk(first, 2);
    expect([await moved(), await runs()]).toEqual([250, 100]);
    // One elsewhere keeps away; the watch of another instance does not even ask.
    expect(await walk(walker(), 9)).toBe(false);
    const watch = createCalendarWatch(deps());
    await watch.start();
    await until(() => watch.passes() > 1 || null);
    expect(await runs()).toBe(100);
    // As if the first one had died a while ago.
    await volume.store.rows(sql`UPDATE calendar_walks SET until = now()`);
    await until(async () => ((await unapplied()) === 0 ? true : null));
    await watch.stop();
    expect(await runs()).toBe(250);
    // It looked at none of them again.
    expect(told).toContainEqual({
      ...{ type: 'nextFiresMoved', calendarId: 'holidays', version: 2, schedules: 0, moved: 0 },
    });
    expect(told.filter(({ type }) => type === 'nextFiresMoved')).toHaveLength(1);
    expect(await walk(first, 9)).toBe(true);
  });

  it('is given over to a later edit, whose walk records what is owed by both', async () => {
    const first = walker();
    await walk(first, 2);
    await editCalendar(volume, [dayToExclude(), '2090-01-01']);
    const second = { ...noProgress(), version: 3 };
    await walk(second, 1);
    expect(await walk({ ...walker(), version: 3 }, 9)).toBe(false);
    expect(await walk(second, 9)).toBe(true);
    expect([await runs(), await unapplied()]).toEqual([250, 0]);
  });

  it('records nothing that is older than what history keeps', async () => {
    const kept = moveNextFires(deps(0), 'holidays', {
      mayGoOn: () => true,
      waits: false,
      progress: walker(),
    });
    expect(await kept).toBe(true);
    expect([await moved(), await runs(), await unapplied()]).toEqual([250, 0, 0]);
  });

  it('is answered once its time is over, and what is left is done behind the answer, from where the call was', async () => {
    const others = deps();
    const slow = { ...others, database: longAfter(others.database, 8) };
    const calendar = await putDates(slow, [dayToExclude(), '2090-01-02']);
    expect(calendar.appliedVersion).toBeLessThan(calendar.version);
    expect([await moved(), await runs()]).toEqual([250, 100]);
    // Nobody holds it any more: the next instance that looks goes on.
    expect(await walk({ ...noProgress(), version: 3 }, 9)).toBe(true);
    expect([await runs(), await unapplied()]).toEqual([250, 0]);
    expect(told).toContainEqual({
      ...{ type: 'nextFiresMoved', calendarId: 'holidays', version: 3, schedules: 0, moved: 0 },
    });
  });

  it('records what it can where the database refuses one, and where another transaction has one', async () => {
    await volume.store.rows(sql`CREATE FUNCTION refuse() RETURNS trigger LANGUAGE plpgsql AS
      'BEGIN IF new.schedule_id = ''s7'' THEN RAISE check_violation; END IF; RETURN new; END'`);
    await volume.store.rows(sql`CREATE TRIGGER refuse BEFORE INSERT ON runs FOR EACH ROW EXECUTE FUNCTION refuse()`);
    const first = walker();
    await volume.store.database.transaction(async (tx) => {
      await tx.execute(sql`SELECT FROM schedules WHERE id = 's8' FOR UPDATE`);
      expect(await walk(first, 9)).toBe(false);
      expect(await runs()).toBe(248);
    });
    expect(told.filter(({ type }) => type === 'nextFiresNotMoved')).toMatchObject([{ scheduleId: 's7' }]);
    // Whoever takes over learns that some were left, and looks for them once more.
    await volume.store.rows(sql`DROP TRIGGER refuse ON runs`);
    await volume.store.rows(sql`UPDATE calendar_walks SET until = now()`);
    expect(await walk(walker(), 20)).toBe(true);
    expect([await runs(), await unapplied()]).toEqual([250, 0]);
  });
});

it.each([
  ['1', 0],
  ['30', 1],
])('what is owed since two days ago is not recorded where the retention is %s day(s): %i', async (days, made) => {
  volume = await volumeOfTest({ settings: { FIRELOCK_RETENTION_DAYS: days } });
  await putOwing(volume, 1);
  await editCalendar(volume, [dayToExclude(2)]);
  const { calendarWatch } = volume.workers;
  await calendarWatch.start();
  await until(async () => ((await unapplied()) === 0 ? true : null));
  await calendarWatch.stop();
  expect(await runs()).toBe(made);
});

/** Time passes with its work: ten seconds after so many pieces. */
function longAfter(database: Volume['store']['database'], pieces: number): typeof database {
  const clock = vi.spyOn(systemClock, 'monotonic');
  onTestFinished(() => clock.mockRestore());
  const spend = () => {
    pieces -= 1;
    if (pieces < 0) clock.mockImplementation(() => performance.now() + 10_000);
  };
  return {
    ...database,
    run: (work, limitMs) => (spend(), database.run(work, limitMs)),
    transaction: (work, limitMs) => (spend(), database.transaction(work, limitMs)),
  };
}
