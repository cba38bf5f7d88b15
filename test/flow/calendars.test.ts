import { sql } from 'drizzle-orm';
import { beforeEach, describe, expect, it } from 'vitest';
import type { FirelockEvent } from '../../src/core/events.ts';
import { isoInstant } from '../../src/core/instant.ts';
import { CALENDAR_KIND, createCalendarWatch } from '../../src/operations/calendars/calendar-changes.ts';
import { moveNextFires } from '../../src/operations/calendars/move-next-fires.ts';
import { type MoveProgress, noProgress } from '../../src/operations/calendars/walk-progress.ts';
import { removeNamed } from '../../src/operations/named-changes.ts';
import { resumeFromNow } from '../../src/operations/resume.ts';
import { systemClock } from '../../src/runtime/clock.ts';
import { createEventBus } from '../../src/runtime/event-bus.ts';
import { readCalendars } from '../../src/store/calendars/calendar-histories.ts';
import { CALENDAR_ROWS, changeLockedCalendar, dropReplacedBefore } from '../../src/store/calendars/calendar-rows.ts';
import { lockNamed } from '../../src/store/names/named-rows.ts';
import { putDates } from '../support/named.ts';
import { eachTest, instanceOfTest, receiverOfTest, storeOfTest } from '../support/of-test.ts';
import { heldTransaction } from '../support/pending-runs.ts';
import { until } from '../support/until.ts';

const store = eachTest(storeOfTest);
const receiver = eachTest(receiverOfTest);
const instance = eachTest(() => instanceOfTest(store));

const DAY = 86_400_000;
const date = (at: number) => isoInstant(at).slice(0, 10);
const BEGAN = Date.now();
/** Today and the days around it, whatever the time is. */
const theseDays = () => `${date(BEGAN - DAY)}/${date(BEGAN + 2 * DAY)}`;
const afterThem = () => Date.parse(date(BEGAN + 3 * DAY));
const events = () => ({ database: store.database, events: createEventBus(), retentionDays: 30 });
const put = (dates: string[], id = 'holidays') => putDates(events(), dates, id);

/** Edits a calendar as an instance does that dies before it has moved anything. */
async function putAndDie(dates: string[], id = 'holidays') {
  return store.database.transaction(async (tx) => {
    const current = await lockNamed(tx, CALENDAR_ROWS, { id });
    if (!current) throw new Error(`there is no calendar ${id}`);
    return changeLockedCalendar(tx, current, { description: null, validUntil: null, dates }, { movesFires: true });
  });
}

/** `EVERY_SECOND` on days that a calendar does not exclude. */
const everySecond = (calendars = ['holidays']) => ({
  cron: '* * * * * *',
  exclude: { dates: [], calendars },
  url: receiver.url,
});

async function editionOf(id: string): Promise<string> {
  const { editions } = await store.database.run((db) => readCalendars(db, [id], BEGAN));
  return editions.get(id) ?? '';
}

async function rowOf(id: string) {
  const [row] = await store.rows<{
    next_occurrence_at: string | null;
    next_fire_at: string | null;
    planned_through: string | null;
  }>(sql`SELECT * FROM schedules WHERE id = ${id}`);
  if (!row) throw new Error(`there is no ${id}`);
  const at = (text: string | null) => (text === null ? null : Date.parse(text));
  return { next: at(row.next_occurrence_at), due: at(row.next_fire_at), planned: at(row.planned_through) };
}

async function firesOf(id: string): Promise<number[]> {
  const rows = await store.rows<{ at: string }>(
    sql`SELECT scheduled_for AS at FROM all_runs WHERE schedule_id = ${id} ORDER BY scheduled_for`,
  );
  return rows.map(({ at }) => Date.parse(at));
}

const fires = (id: string, after: number) =>
  until(async () => {
    const found = (await firesOf(id)).filter((at) => at > after);
    return found.length > 0 ? found : null;
  });

const appliedVersions = () =>
  store.rows<{ applied_version: number; version: number }>(sql`SELECT applied_version, version FROM calendars`);

it('an edit ends the fires at its own moment, and a second one begins them again: none is lost, none is too many', async () => {
  await put([]);
  await instance.start();
  await instance.put('often', everySecond());
  await fires('often', 0);
  const on = await put([theseDays()]);
  expect([on.version, on.appliedVersion]).toEqual([2, 2]);
  // What occurred just before it is planned first.
  await until(async () => ((await rowOf('often')).due === afterThem() ? true : null));
  expect((await rowOf('often')).next).toBe(afterThem());
  const off = await put([]);
  await fires('often', off.updatedAt);
  const all = await firesOf('often');
  const seconds = (from: number, to: number) =>
    Array.from({ length: Math.floor((to - from) / 1000) + 1 }, (_, index) => from + index * 1000);
  const [first = 0] = all;
  const before = all.filter((at) => at <= on.updatedAt);
  const after = all.filter((at) => at > on.updatedAt);
  expect(before).toEqual(seconds(first, Math.floor(on.updatedAt / 1000) * 1000));
  const second = Math.floor(off.updatedAt / 1000) * 1000 + 1000;
  expect(after).toEqual(seconds(second, after.at(-1) ?? 0));
});

it('a calendar that is being edited delays only its users, and earlier plans are made again', async () => {
  await put([]);
  await instance.put('user', everySecond());
  await instance.put('other', { cron: '* * * * * *', url: receiver.url });
  const { next } = await rowOf('user');
  const letGo = await heldTransaction(store.database, (tx) => lockNamed(tx, CALENDAR_ROWS, { id: 'holidays' }));
  await instance.start();
  await fires('other', 0);
  const fenced = (event: FirelockEvent) => event.type === 'fireLocks' && event.outcome === 'fenced';
  await until(() => instance.events.some(fenced) || null);
  expect(await firesOf('user')).toEqual([]);
  await letGo();
  const [first] = await fires('user', 0);
  expect(first).toBe(next);
});

it('the planner itself follows an edit that did not reach its cursors: days added, and days removed', async () => {
  await put([theseDays()]);
  await put([], 'others');
  await instance.put('behind', everySecond());
  await instance.put('ahead', everySecond(['others']));
  expect((await rowOf('behind')).next).toBe(afterThem());
  const back = await putAndDie([]);
  const away = await putAndDie([theseDays()], 'others');
  await store.rows(sql`UPDATE schedules SET next_fire_at = clock_timestamp() WHERE id = 'behind'`);
  await instance.start();
  const [first = 0] = await fires('behind', 0);
  expect(first).toBe(Math.floor(back.updatedAt / 1000) * 1000 + 1000);
  await until(async () => ((await rowOf('ahead')).next === afterThem() ? true : null));
  expect((await firesOf('ahead')).filter((at) => at > away.updatedAt)).toEqual([]);
});

it('an edit of a schedule first plans the days that its calendar released, though its cursor does not know that edit yet', async () => {
  await put([theseDays()]);
  await instance.put('edited', everySecond());
  const edit = await putAndDie([]);
  const second = Math.floor(edit.updatedAt / 1000) * 1000 + 1000;
  await until(() => (Date.now() > second + 100 ? true : null));
  const { version } = await instance.put('edited', { ...everySecond(), cron: '0 0 1 1 *' });
  expect(version).toBe(2);
  expect((await firesOf('edited'))[0]).toBe(second);
});

it('any instance finishes an edit: also for schedules in error and for those with no fire left, not for paused ones', async () => {
  await put([]);
  await put([], 'second');
  const at = afterThem() + DAY / 2;
  const once = {
    cron: null,
    at,
    exclude: { dates: [], calendars: ['holidays', 'second'] },
    url: receiver.url,
  };
  const daily = { ...everySecond(), cron: '0 12 * * *' };
  await instance.put('once', once);
  await instance.put('daily', daily);
  await instance.put('broken', daily);
  await instance.put('paused', { ...daily, enabled: false });
  const before = await rowOf('paused');
  const retryAt = Date.now() + 3_600_000;
  await store.rows(sql`UPDATE schedules SET error = 'test', next_fire_at = ${isoInstant(retryAt)} WHERE id = 'broken'`);
  await putAndDie([`${date(Date.now())}/${date(at)}`]);
  await store.rows(sql`UPDATE calendars SET updated_at = updated_at - interval '1 minute'`);
  const told: FirelockEvent[] = [];
  const bus = createEventBus();
  bus.subscribe((event) => void told.push(event));
  const watch = createCalendarWatch({ ...events(), clock: systemClock, events: bus });
  await watch.start();
  try {
    const applied = () => told.find(({ type }) => type === 'nextFiresMoved') ?? null;
    expect(await until(applied)).toMatchObject({
      calendarId: 'holidays',
      version: 2,
      schedules: 3,
      moved: 3,
    });
    const next = at + DAY;
    expect(await rowOf('once')).toMatchObject({ next: null, due: null });
    expect(await rowOf('daily')).toMatchObject({ next, due: next });
    expect(await rowOf('broken')).toMatchObject({ next, due: retryAt });
    expect(await rowOf('paused')).toEqual(before);
    expect(await appliedVersions()).toContainEqual({ version: 2, applied_version: 2 });
    // The one moment is given back.
    expect((await put([])).appliedVersion).toBe(3);
    expect(await rowOf('once')).toMatchObject({ next: at, due: at });
  } finally {
    await watch.stop();
  }
});

describe('the next fires of the users of an edited calendar', () => {
  const ids = ['a', 'b', 'c', 'd', 'e', 'f'];
  const told: FirelockEvent[] = [];
  const bus = createEventBus();
  bus.subscribe((event) => void told.push(event));
  const deps = () => ({ database: store.database, events: bus, retentionDays: 30 });
  const moved = async () => {
    const rows = await Promise.all(ids.map(async (id) => ((await rowOf(id)).next === afterThem() ? id : '')));
    return rows.join('');
  };
  const move = (progress: MoveProgress, pages: number) =>
    moveNextFires(deps(), 'holidays', { mayGoOn: () => (pages -= 1) >= 0, waits: false, progress });

  beforeEach(async () => {
    told.length = 0;
    await put([]);
    await instance.putMany(ids, { ...everySecond(), cron: '0 0 * * *' });
    await putAndDie([theseDays()]);
  });

  it('are moved page by page, and a walk that was broken off goes on where it was', async () => {
    const progress = { ...noProgress(), edition: await editionOf('holidays'), limit: 2 };
    expect(await move(progress, 1)).toBe(false);
    expect(await moved()).toHaveLength(2);
    expect(await move(progress, 9)).toBe(true);
    expect(await moved()).toBe('abcdef');
    // None was seen to twice.
    expect(told).toMatchObject([{ type: 'nextFiresMoved', schedules: 6, moved: 6 }]);
  });

  it('begin anew with the next edit, and find what is moved done', async () => {
    const progress = { ...noProgress(), edition: await editionOf('holidays'), limit: 2 };
    await move(progress, 1);
    await putAndDie([theseDays(), date(BEGAN - 40 * DAY)]);
    expect(await move(progress, 9)).toBe(true);
    expect(told).toMatchObject([{ type: 'nextFiresMoved', version: 3, schedules: 6, moved: 4 }]);
  });

  it('are moved also where one row is refused: that one is named, and keeps the calendar from being applied', async () => {
    await store.rows(sql`CREATE FUNCTION refuse() RETURNS trigger LANGUAGE plpgsql AS
      'BEGIN IF new.id = ''c'' THEN RAISE check_violation; END IF; RETURN new; END'`);
    await store.rows(sql`CREATE TRIGGER refuse BEFORE UPDATE ON schedules FOR EACH ROW EXECUTE FUNCTION refuse()`);
    const progress = { ...noProgress(), edition: await editionOf('holidays'), limit: 2 };
    expect(await move(progress, 99)).toBe(false);
    expect(await moved()).toBe('abdef');
    expect(told).toMatchObject([{ type: 'nextFiresNotMoved', calendarId: 'holidays', scheduleId: 'c' }]);
    expect(await appliedVersions()).toContainEqual({ version: 2, applied_version: 1 });
    // It rests, and is not tried in each pass.
    expect(await move(progress, 99)).toBe(false);
    expect(told).toHaveLength(1);
    await store.rows(sql`DROP TRIGGER refuse ON schedules`);
    for (const uid of progress.left.keys()) progress.left.set(uid, 0);
    expect(await move(progress, 99)).toBe(true);
    expect(await moved()).toBe('abcdef');
    expect(await appliedVersions()).toContainEqual({ version: 2, applied_version: 2 });
  });

  it('are moved also where another transaction keeps a row; neither their calendar nor another one waits for it', async () => {
    await put([], 'second');
    await instance.put('g', { ...everySecond(['second']), cron: '0 0 * * *' });
    await putAndDie([theseDays()], 'second');
    await store.rows(sql`UPDATE calendars SET updated_at = updated_at - interval '1 minute'`);
    const watch = createCalendarWatch({ ...deps(), clock: systemClock });
    await store.database.transaction(async (tx) => {
      await tx.execute(sql`SELECT FROM schedules WHERE id = 'a' FOR UPDATE`);
      await watch.start();
      await until(() => told.find((event) => event.type === 'nextFiresMoved' && event.calendarId === 'second') ?? null);
      await until(async () => ((await moved()) === 'bcdef' ? true : null));
    });
    await until(async () => ((await moved()) === 'abcdef' ? true : null));
    expect(
      await until(
        () => told.find((event) => event.type === 'nextFiresMoved' && event.calendarId === 'holidays') ?? null,
      ),
    ).toMatchObject({ moved: 6 });
    await watch.stop();
  });
});

it('after days of standstill neither catch-up nor a resume counts excluded fires, by dates or by the calendar of that time', async () => {
  const midnight = Date.parse(date(Date.now()));
  const [first, second, third] = [midnight - 3 * DAY, midnight - 2 * DAY, midnight - DAY];
  await put([date(second)]);
  // It has said so for a week. What it says from now on does not count for the past.
  await store.rows(sql`UPDATE calendar_versions SET at = at - interval '7 days'`);
  await put([date(third)]);
  const hourly = {
    cron: '0 * * * *',
    exclude: { dates: [date(first)], calendars: ['holidays'] },
    url: receiver.url,
  };
  await instance.put('hourly', hourly);
  const rewind = () =>
    store.rows(
      sql`UPDATE schedules SET next_occurrence_at = ${isoInstant(first)}, next_fire_at = ${isoInstant(first)}`,
    );
  const hoursUpTo = (at: number) => 24 + Math.floor((at - midnight) / 3_600_000) + 1;
  await rewind();
  await store.rows(sql`UPDATE instances SET died_at = clock_timestamp()`);
  const { signal } = new AbortController();
  const resumed = await resumeFromNow({ database: store.database, lockTtlSeconds: 120, signal });
  expect(resumed).toMatchObject({ moved: 1, skipped: hoursUpTo(resumed.now), unplannable: [] });
  await store.rows(sql`UPDATE instances SET died_at = NULL`);
  await store.rows(sql`UPDATE schedules SET planned_through = NULL`);
  await store.rows(sql`DELETE FROM history`);
  await rewind();
  await instance.start();
  const planned = await until(async () => {
    const [run] = await store.rows<{ coalesced: number; coalesced_from: string; scheduled_for: string }>(
      sql`SELECT * FROM all_runs ORDER BY scheduled_for`,
    );
    return run ?? null;
  });
  expect(planned.coalesced).toBe(hoursUpTo(Date.parse(planned.scheduled_for)) - 1);
  expect(Date.parse(planned.coalesced_from)).toBe(third);
});

it('a schedule whose calendar another program has deleted is set aside, one with broken dates fires: neither stops others', async () => {
  await put([]);
  await put([], 'spoilt');
  await instance.put('lost', everySecond());
  await instance.put('spoilt', everySecond(['spoilt']));
  await instance.put('other', { cron: '* * * * * *', url: receiver.url });
  await store.rows(sql`DELETE FROM calendars WHERE id = 'holidays'`);
  await store.rows(
    sql`UPDATE calendar_versions SET dates = '{"a": 1}', at = at - interval '1 hour' WHERE calendar_id = 'spoilt'`,
  );
  await instance.start();
  await fires('other', 0);
  await fires('spoilt', 0);
  const aside = await until(() => instance.events.find(({ type }) => type === 'scheduleSetAside') ?? null);
  expect(aside).toMatchObject({
    scheduleId: 'lost',
    error: 'it names a calendar that does not exist: holidays',
  });
});

it('versions go on counting after a deletion; those that were replaced long ago are dropped', async () => {
  await put(['2030-01-01']);
  await put(['2030-01-02']);
  expect(await removeNamed({ ...events(), scope: null }, CALENDAR_KIND, 'holidays')).toBe(true);
  expect((await put([])).version).toBe(4);
  const versions = () =>
    store.rows(sql`SELECT version, dates FROM calendar_versions WHERE calendar_id = 'holidays' ORDER BY version`);
  const dropBefore = (at: number) => store.database.run((db) => dropReplacedBefore(db, at, 10));
  expect(await dropBefore(Date.now() - DAY)).toBe(0);
  expect(await versions()).toEqual([
    { version: 1, dates: ['2030-01-01'] },
    { version: 2, dates: ['2030-01-02'] },
    { version: 3, dates: null },
    { version: 4, dates: [] },
  ]);
  expect(await dropBefore(Date.now() + DAY)).toBe(3);
  expect(await versions()).toEqual([{ version: 4, dates: [] }]);
});
