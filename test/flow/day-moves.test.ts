import { sql } from 'drizzle-orm';
import { expect, it } from 'vitest';
import { isoInstant } from '../../src/core/instant.ts';
import type { Definition } from '../../src/core/schedules/schedule.ts';
import { moveNextFires } from '../../src/operations/calendars/move-next-fires.ts';
import { backfill } from '../../src/operations/runs/backfill.ts';
import { skipFire } from '../../src/operations/schedules/skip-fires.ts';
import { CALENDAR_ROWS, changeLockedCalendar } from '../../src/store/calendars/calendar-rows.ts';
import { lockNamed } from '../../src/store/names/named-rows.ts';
import { putDates } from '../support/named.ts';
import { instanceOfTest, receiverOfTest, storeOfTest, eachTest } from '../support/of-test.ts';
import { until } from '../support/until.ts';

const store = eachTest(storeOfTest);
const receiver = eachTest(receiverOfTest);
const instance = eachTest(() => instanceOfTest(store));

const DAY = 86_400_000;
const HOUR = 3_600_000;
/** A zone in which it is about noon, so that no date ends during a test. */
const AWAY = 12 - new Date().getUTCHours();
const ZONE = `Etc/GMT${AWAY > 0 ? '-' : '+'}${Math.abs(AWAY)}`;
const local = (at: number) => new Date(at + AWAY * HOUR);
const date = (at: number) => local(at).toISOString().slice(0, 10);
const second = (at: number) => at - (at % 1000);
/** Once, on the date and at the time of a moment. */
const onceAt = (at: number) => {
  const there = local(at);
  const time = [there.getUTCSeconds(), there.getUTCMinutes(), there.getUTCHours()].join(' ');
  return `${time} ${there.getUTCDate()} ${there.getUTCMonth() + 1} *`;
};
const TODAY = Date.now();
const TOMORROW = TODAY + DAY;

const say = (...dates: string[]) => putDates(instance.deps, dates);

const moving = (given: Partial<Definition>) => ({
  ...{ timezone: ZONE, exclude: { dates: [], calendars: ['holidays'] }, url: receiver.url, ...given },
});

/** As if it had been written two hours ago. */
async function rewind(id: string): Promise<void> {
  const earlier = sql`- interval '2 hours'`;
  await store.rows(
    sql`UPDATE schedules SET created_at = created_at ${earlier}, updated_at = updated_at ${earlier} WHERE id = ${id}`,
  );
  await store.rows(sql`UPDATE schedule_versions SET at = at ${earlier} WHERE schedule_id = ${id}`);
}

const nextOf = async (id: string): Promise<string | null> => {
  const [row] = await store.rows<{ at: string | null }>(
    sql`SELECT next_occurrence_at AS at FROM schedules WHERE id = ${id}`,
  );
  return row?.at ? isoInstant(Date.parse(row.at)) : null;
};
const runsOf = async (id: string): Promise<string[]> => {
  const rows = await store.rows<{ at: string; trigger: string; status: string; version: number }>(
    sql`SELECT scheduled_for AS at, trigger, status, schedule_version AS version FROM all_runs WHERE schedule_id = ${id} ORDER BY id`,
  );
  return rows.map(({ at, trigger, status }) =>
    [isoInstant(Date.parse(at)), trigger, status === 'skipped' ? status : 'made'].join(' '),
  );
};
const firstRun = (id: string) =>
  until(async () => {
    const runs = await runsOf(id);
    return runs.length > 0 ? runs : null;
  });

it('a date whose fire was moved ahead and made is not made again, whatever becomes of the calendar', async () => {
  await say(date(TOMORROW));
  await instance.start();
  const at = second(Date.now()) + 2000;
  await instance.put('ahead', moving({ cron: onceAt(at + DAY), onExcluded: 'previous' }));
  expect(await firstRun('ahead')).toEqual([`${isoInstant(at)} schedule made`]);
  await say();
  expect(await runsOf('ahead')).toEqual([`${isoInstant(at)} schedule made`]);
  const next = await nextOf('ahead');
  expect(next?.slice(0, 4)).toBe(String(local(at + DAY).getUTCFullYear() + 1));
});

it('nor whatever becomes of the definition', async () => {
  await say(date(TOMORROW));
  await instance.start();
  const at = second(Date.now()) + 2000;
  await instance.put('ahead', moving({ cron: onceAt(at + DAY), onExcluded: 'previous' }));
  await firstRun('ahead');
  const edits: Partial<Definition>[] = [
    { exclude: null },
    { exclude: null, cron: onceAt(at + DAY + HOUR) },
    { onExcluded: 'next' },
    { onExcluded: 'previous', cron: onceAt(at + DAY - HOUR) },
  ];
  for (const edit of edits) {
    await instance.put('ahead', moving({ cron: onceAt(at + DAY), ...edit }));
    expect((await nextOf('ahead'))?.slice(0, 4)).toBe(String(local(at + DAY).getUTCFullYear() + 1));
  }
  expect(await runsOf('ahead')).toEqual([`${isoInstant(at)} schedule made`]);
});

it('a date that waits for a later day is not lost: not by its calendar, by its definition, or by both', async () => {
  await say(date(TODAY));
  const at = second(TODAY) + HOUR;
  const waiting = moving({ cron: onceAt(at), onExcluded: 'next' });
  await instance.put('waiting', waiting);
  const there = isoInstant(at + DAY);
  expect(await nextOf('waiting')).toBe(there);
  await say();
  expect(await nextOf('waiting')).toBe(there);
  await say(date(TODAY), date(TOMORROW));
  expect(await nextOf('waiting')).toBe(there);
  await instance.put('waiting', { ...waiting, onExcluded: 'skip', exclude: null });
  expect(await nextOf('waiting')).toBe(there);
  await instance.put('waiting', { ...waiting, onExcluded: 'skip', description: 'of what does not move it' });
  expect(await nextOf('waiting')).toBe(there);
  await instance.put('waiting', { ...waiting, cron: onceAt(at + HOUR) });
  expect(await nextOf('waiting')).toBe(isoInstant(at + DAY + HOUR));
});

it.each([
  ['latest', 'catchUp made'],
  ['skip', 'catchUp skipped'],
] as const)(
  'what an edit of a calendar moves to a moment that has passed is as catchUp (%s) says, once',
  async (catchUp, became) => {
    await say();
    const at = second(TODAY) - HOUR;
    await instance.put('late', moving({ cron: onceAt(at + DAY), onExcluded: 'previous', catchUp }));
    await rewind('late');
    await store.rows(sql`UPDATE calendar_versions SET at = at - interval '2 hours'`);
    await say(date(TOMORROW));
    expect(await runsOf('late')).toEqual([`${isoInstant(at)} ${became}`]);
    const planned = await store.rows<{ at: string }>(sql`SELECT planned_through AS at FROM schedules`);
    expect(planned.map((row) => Date.parse(row.at))).toEqual([at]);
    // As an instance does that takes over from one which died before it had noted that it was done.
    await store.rows(sql`UPDATE calendars SET applied_version = 1`);
    await moveNextFires(instance.deps, 'holidays', { mayGoOn: () => true, waits: true });
    expect(await runsOf('late')).toEqual([`${isoInstant(at)} ${became}`]);
    expect((await nextOf('late'))?.slice(0, 4)).toBe(String(local(at + DAY).getUTCFullYear() + 1));
  },
);

it('what an edit of the definition moves to a moment that has passed is made with it, under the new one', async () => {
  await say(date(TOMORROW));
  const at = second(TODAY) - HOUR;
  await instance.put('late', moving({ cron: onceAt(at + DAY) }));
  await rewind('late');
  await instance.put('late', moving({ cron: onceAt(at + DAY), onExcluded: 'previous' }));
  expect(await runsOf('late')).toEqual([`${isoInstant(at)} catchUp made`]);
  const [run] = await store.rows<{ version: number }>(sql`SELECT schedule_version AS version FROM all_runs`);
  expect(run?.version).toBe(2);
  await instance.put('paused', moving({ cron: onceAt(at + DAY) }));
  await instance.put('paused', moving({ cron: onceAt(at + DAY), onExcluded: 'previous', enabled: false }));
  expect(await runsOf('paused')).toEqual([]);
});

it('but not again where an earlier definition has made it', async () => {
  await say(date(TOMORROW));
  await instance.start();
  const at = second(Date.now()) + 2000;
  const both = moving({ cron: [onceAt(at), onceAt(at + DAY)] });
  await instance.put('made', both);
  await until(async () => {
    const rows = await store.rows(sql`SELECT FROM history WHERE schedule_id = 'made'`);
    return rows.length > 0 ? rows : null;
  });
  await instance.put('made', { ...both, description: 'of what does not move it' });
  await instance.put('made', { ...both, description: null, onExcluded: 'previous' });
  await instance.put('made', { ...both, catchUp: 'all', onExcluded: 'previous' });
  expect(await runsOf('made')).toEqual([`${isoInstant(at)} schedule made`]);
});

it('nor is it lost where the definition is edited before the edit of the calendar has reached it', async () => {
  await say();
  const at = second(TODAY) - HOUR;
  const late = moving({ cron: onceAt(at + DAY), onExcluded: 'previous' });
  await instance.put('late', late);
  await rewind('late');
  await store.rows(sql`UPDATE calendar_versions SET at = at - interval '2 hours'`);
  await store.database.transaction(async (tx) => {
    const current = await lockNamed(tx, CALENDAR_ROWS, { id: 'holidays' });
    if (!current) throw new Error('there is no calendar');
    const dates = [date(TOMORROW)];
    await changeLockedCalendar(tx, current, { description: null, validUntil: null, dates }, { movesFires: true });
  });
  await instance.put('late', { ...late, exclude: null });
  expect(await runsOf('late')).toEqual([`${isoInstant(at)} catchUp made`]);
  await moveNextFires(instance.deps, 'holidays', { mayGoOn: () => true, waits: true });
  expect(await runsOf('late')).toEqual([`${isoInstant(at)} catchUp made`]);
});

it('a moved fire that was missed is caught up with, by the instance that comes next', async () => {
  await say(date(TODAY));
  const at = second(TODAY) + HOUR;
  await instance.put(
    'missed',
    moving({
      cron: onceAt(at - DAY),
      onExcluded: 'next',
      exclude: { dates: [date(TODAY - DAY)], calendars: ['holidays'] },
    }),
  );
  // Moved over today, to tomorrow; then two days pass.
  expect(await nextOf('missed')).toBe(isoInstant(at + DAY));
  const earlier = sql`- interval '2 days'`;
  await store.rows(sql`UPDATE schedules SET next_occurrence_at = next_occurrence_at ${earlier}, next_fire_at = next_fire_at ${earlier},
    timing = ${JSON.stringify({ cron: onceAt(at - 3 * DAY), timezone: ZONE, exclude: { dates: [date(TODAY - 3 * DAY), date(TODAY - 2 * DAY)], calendars: [] }, onExcluded: 'next' })}`);
  await instance.start();
  const runs = await firstRun('missed');
  expect(runs).toEqual([`${isoInstant(at - DAY)} catchUp made`]);
});

it('a day that has begun goes on as it began, on every instance, when an edit excludes it', async () => {
  await say();
  const other = await instanceOfTest(store);
  await instance.start();
  await other.start();
  // Not all hours, so that there is a time of day to keep; the missing one is far away.
  await instance.put('running', moving({ cron: '* * 0-22 * * *', onExcluded: 'next' }));
  await firstRun('running');
  const edit = await say(date(TODAY));
  await say(date(TODAY), date(TOMORROW));
  const fires = await until(async () => {
    const all = (await runsOf('running')).map((run) => Date.parse(run.slice(0, 24)));
    return (all.at(-1) ?? 0) > edit.updatedAt + 2000 ? all : null;
  });
  const [first = 0] = fires;
  expect(fires).toEqual(fires.map((_, index) => first + index * 1000));
});

it('a moved fire that is skipped on request is skipped, and is not made on its own date either', async () => {
  await say(date(TOMORROW));
  const at = second(Date.now()) + 4000;
  await instance.put('skipped', moving({ cron: onceAt(at + DAY), onExcluded: 'previous' }));
  const request = { scheduleId: 'skipped', skipped: true, reason: null, by: null };
  await expect(skipFire(instance.deps, { ...request, fireAt: at + DAY })).rejects.toThrow('is not a fire time');
  await skipFire(instance.deps, { ...request, fireAt: at });
  await instance.start();
  expect(await firstRun('skipped')).toEqual([`${isoInstant(at)} schedule skipped`]);
  await say();
  expect((await nextOf('skipped'))?.slice(0, 4)).toBe(String(local(at + DAY).getUTCFullYear() + 1));
});

it('a moved fire is backfilled on the day on which it was to be made, once', async () => {
  await say();
  const at = second(TODAY) - 2 * DAY;
  const exclude = { dates: [date(at)], calendars: ['holidays'] };
  await instance.put('past', moving({ cron: onceAt(at), onExcluded: 'next', exclude }));
  const request = { scheduleId: 'past', from: at - DAY, to: TODAY, limit: 10, as: 'now' } as const;
  expect(await backfill(instance.deps, request)).toMatchObject({ created: 1, existing: 0 });
  expect(await backfill(instance.deps, request)).toMatchObject({ created: 0, existing: 1 });
  expect(await runsOf('past')).toEqual([`${isoInstant(at + DAY)} backfill made`]);
});
