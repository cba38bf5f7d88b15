import { randomUUID } from 'node:crypto';
import { type SQL, sql } from 'drizzle-orm';
import { beforeEach, describe, expect, it } from 'vitest';
import type { FirelockEvent } from '../../src/core/events.ts';
import type { Definition } from '../../src/core/schedules/schedule.ts';
import { fireTimes } from '../../src/core/time/fire-times.ts';
import { createZoneWatch } from '../../src/recovery/zone-watch.ts';
import { systemClock } from '../../src/runtime/clock.ts';
import { createEventBus } from '../../src/runtime/event-bus.ts';
import { listZonedSchedules, moveCursorsIfUnplanned } from '../../src/store/schedules/zoned-cursors.ts';
import type { Database } from '../../src/postgres/database.ts';
import { registerUnlessObserving } from '../../src/store/instances/instances.ts';
import { putDates } from '../support/named.ts';
import { eachTest, instanceOfTest, receiverOfTest, storeOfTest } from '../support/of-test.ts';
import { definitionOf } from '../support/pipeline.ts';
import { until } from '../support/until.ts';

const OLDER = '2025c';
const OWN = '2026a';
const NEWER = '2026b';
const HOUR = 3_600_000;
/** One to judge, one for the only page, one that finds no other. */
const LOOKED_THROUGH = 3;

const store = eachTest(storeOfTest);
const receiver = eachTest(receiverOfTest);
const instance = eachTest(() => instanceOfTest(store));

beforeEach(async () => {
  await store.rows(sql`UPDATE instances SET zone_data = ${OWN}`);
});

/** At nine on a day half a year away, so that a cursor an hour off is in the future either way. */
const yearly = () => `0 9 15 ${((new Date().getUTCMonth() + 6) % 12) + 1} *`;
const ZONED = { timezone: 'Europe/Berlin' };
const zoned = (): Partial<Definition> & { url: string } => ({ ...ZONED, cron: yearly(), url: receiver.url });

interface Row {
  id: string;
  next_occurrence_at: Date | string | null;
  next_fire_at: string | null;
  locked_by: string | null;
  /** Changes with every write of the row. */
  written: string;
}

const rowOf = async (id: string) => {
  const [row] = await store.rows<Row>(sql`SELECT *, xmin::text AS written FROM schedules WHERE id = ${id}`);
  if (!row) throw new Error(`there is no ${id}`);
  const { next_occurrence_at: at, next_fire_at: due } = row;
  return {
    ...row,
    cursor: at === null ? null : Date.parse(String(at)),
    due: due === null ? null : Date.parse(due),
  };
};

/** As another version of the zone data would have computed it. */
const plant = (id: string, offsetMs: number) =>
  store.rows(sql`UPDATE schedules SET next_occurrence_at = next_occurrence_at + make_interval(secs => ${offsetMs / 1000}),
    next_fire_at = next_fire_at + make_interval(secs => ${offsetMs / 1000}) WHERE id = ${id}`);
const set = (id: string, assignment: SQL) => store.rows(sql`UPDATE schedules SET ${assignment} WHERE id = ${id}`);

const recorded = () => store.rows<{ version: string; looked_through_at: string }>(sql`SELECT * FROM zone_data`);
const record = (version: string) =>
  store.rows(
    sql`INSERT INTO zone_data (version, looked_through_at) VALUES (${version}, clock_timestamp() - interval '1 hour')`,
  );

/** Somebody else who lives, with these data. */
async function another(zoneData: string): Promise<string> {
  const id = randomUUID();
  await store.database.run((db) =>
    registerUnlessObserving(db, { id, host: 'other', version: 'test', zoneData, ttlSeconds: 3600 }),
  );
  return id;
}

const gone = (id: string, secondsAgo = 3600) =>
  store.rows(
    sql`UPDATE instances SET died_at = clock_timestamp() - make_interval(secs => ${secondsAgo}) WHERE id = ${id}`,
  );

/** A watch beside the instance's pipeline, what it told, and how often it asked the database. */
function startWatch(zoneData = OWN, { stopAfter = Infinity } = {}) {
  const events: FirelockEvent[] = [];
  const bus = createEventBus();
  bus.subscribe((event) => void events.push(event));
  let asked = 0;
  const database: Database = {
    ...store.database,
    run: (work, limitMs) => {
      asked += 1;
      return store.database.run(work, limitMs);
    },
  };
  const watch = createZoneWatch({ database, clock: systemClock, events: bus, zoneData });
  const passed = () => events.filter(({ type }) => type === 'loopPassed').length;
  bus.subscribe(() => {
    if (passed() >= stopAfter) void watch.stop();
  });
  void watch.start();
  return {
    asked: () => asked,
    moved: () => events.filter(({ type }) => type === 'cursorsMoved'),
    failed: () => events.filter(({ type }) => type === 'loopFailed'),
    sample: (...versions: string[]) => {
      bus.emit({
        type: 'gaugesSampled',
        strandedRuns: 0,
        effectsFailing: 0,
        oldestEffectSeconds: 0,
        schedulesLate: 0,
        calendarsEnding: 0,
        zoneData: versions,
      });
    },
    passed: (passes: number) => until(() => (passed() >= passes ? true : null)),
    /** What it might do at once has been done: every connection of the pool had its turn, many times. */
    settled: async () => {
      for (let turn = 0; turn < 20; turn += 1) {
        await Promise.all(Array.from({ length: 5 }, () => store.rows(sql`SELECT`)));
      }
      return passed();
    },
    stop: () => watch.stop(),
  };
}

async function lookThrough(zoneData = OWN, passes = LOOKED_THROUGH) {
  const watch = startWatch(zoneData);
  await watch.passed(passes);
  await watch.stop();
  return watch.moved();
}

describe('a next fire that other zone data computed', () => {
  it('moves to the moment of these data, whether it was too early or too late', async () => {
    const early = await instance.put('early', zoned());
    const late = await instance.put('late', { ...zoned(), jitterSeconds: 60 });
    await plant('early', -HOUR);
    await plant('late', HOUR);
    expect(await lookThrough()).toEqual([{ type: 'cursorsMoved', count: 2, zoneData: OWN }]);
    expect(await rowOf('early')).toMatchObject({ cursor: early.nextOccurrenceAt, due: early.nextFireAt });
    expect(await rowOf('late')).toMatchObject({ cursor: late.nextOccurrenceAt, due: late.nextFireAt });
    expect(late.nextFireAt).not.toBe(late.nextOccurrenceAt);
    expect(await recorded()).toMatchObject([{ version: OWN }]);
  });

  it('is moved to a day that a calendar of its schedule does not exclude, also that of an interval', async () => {
    const [from, to] = [Date.now() - 24 * HOUR, Date.now() + 48 * HOUR];
    const dates = [`${new Date(from).toISOString().slice(0, 10)}/${new Date(to).toISOString().slice(0, 10)}`];
    const deps = { database: store.database, events: createEventBus(), retentionDays: 30 };
    await putDates(deps, dates, 'these');
    const excluding = { ...zoned(), exclude: { dates: [], calendars: ['these'] } };
    const daily = await instance.put('daily', { ...excluding, cron: '0 9 * * *' });
    const hourly = await instance.put('hourly', { ...excluding, cron: null, everySeconds: 3600 });
    await plant('daily', -HOUR);
    await plant('hourly', -HOUR);
    expect(await lookThrough()).toMatchObject([{ count: 2 }]);
    expect(await rowOf('daily')).toMatchObject({ cursor: daily.nextOccurrenceAt, due: daily.nextFireAt });
    expect(await rowOf('hourly')).toMatchObject({ cursor: hourly.nextOccurrenceAt });
    expect(daily.nextOccurrenceAt).toBeGreaterThan(to - 24 * HOUR);
  });

  it('moves if an occurrence comes before it, though it is one itself', async () => {
    const daily = await instance.put('daily', { ...zoned(), cron: '0 */3 * * *', timezone: 'Asia/Tokyo' });
    await plant('daily', 3 * HOUR);
    expect(await lookThrough()).toMatchObject([{ count: 1 }]);
    expect((await rowOf('daily')).cursor).toBe(daily.nextOccurrenceAt);
  });

  it('ends if these data put it past the end, and comes back if they put it before', async () => {
    const { nextOccurrenceAt } = await instance.put('lasting', zoned());
    const at = nextOccurrenceAt ?? 0;
    await instance.put('too-late', { ...zoned(), endAt: at - HOUR / 2, startAt: at - 48 * HOUR });
    await set(
      'too-late',
      sql`next_occurrence_at = ${new Date(at - HOUR).toISOString()},
      next_fire_at = ${new Date(at - HOUR).toISOString()}`,
    );
    await instance.put('in-time', { ...zoned(), endAt: at + HOUR / 2 });
    await set('in-time', sql`next_occurrence_at = NULL, next_fire_at = NULL`);
    expect(await lookThrough()).toMatchObject([{ count: 2 }]);
    expect(await rowOf('too-late')).toMatchObject({ cursor: null, due: null });
    expect(await rowOf('in-time')).toMatchObject({ cursor: at, due: at });
  });

  it('moves though a dead instance has it locked, which can then write nothing for it', async () => {
    const { nextOccurrenceAt } = await instance.put('locked', zoned());
    const dead = await another(OWN);
    await gone(dead);
    await plant('locked', HOUR);
    await set('locked', sql`locked_by = ${dead}, locked_at = clock_timestamp()`);
    expect(await lookThrough()).toMatchObject([{ count: 1 }]);
    expect(await rowOf('locked')).toMatchObject({ cursor: nextOccurrenceAt, locked_by: null });
  });

  it('is found on any page, and counted once by instances that look at the same time', async () => {
    const ids = Array.from({ length: 2_500 }, (_, n) => `many-${n}`);
    for (let from = 0; from < ids.length; from += 500) {
      await instance.putMany(ids.slice(from, from + 500), zoned());
    }
    const [right] = await store.rows<{ at: string }>(sql`SELECT DISTINCT next_occurrence_at AS at FROM schedules`);
    await store.rows(sql`UPDATE schedules SET next_occurrence_at = next_occurrence_at + interval '1 hour',
      next_fire_at = next_fire_at + interval '1 hour' WHERE uid NOT IN (SELECT uid FROM schedules ORDER BY uid LIMIT 7)`);
    const watches = [startWatch(), startWatch()];
    // A page whose rows the other one has for long is made smaller: nobody knows how many passes that takes.
    const wrong = sql`SELECT FROM schedules WHERE next_occurrence_at <> ${right?.at} LIMIT 1`;
    await until(async () => ((await store.rows(wrong)).length === 0 ? true : null));
    await Promise.all(watches.map(async (watch) => watch.stop()));
    const moved = watches.flatMap((watch) => watch.moved());
    expect(moved.reduce((sum, event) => sum + (event.type === 'cursorsMoved' ? event.count : 0), 0)).toBe(2_493);
    expect(await store.rows(sql`SELECT DISTINCT next_occurrence_at AS at, next_fire_at AS due FROM schedules`)).toEqual(
      [{ at: right?.at, due: right?.at }],
    );
  });
});

describe('a next fire whose moment these data put into the past', () => {
  /** Every day, twenty minutes ago; the other data put it forty minutes ahead. */
  async function passed(id: string): Promise<number> {
    const at = Math.floor(Date.now() / 60_000) * 60_000 - 20 * 60_000;
    const time = new Date(at);
    const cron = `${time.getUTCMinutes()} ${time.getUTCHours()} * * *`;
    await instance.put(id, { url: receiver.url, cron, timezone: 'Africa/Abidjan' });
    const cursor = new Date(at + HOUR).toISOString();
    await set(
      id,
      sql`next_occurrence_at = ${cursor}, next_fire_at = ${cursor},
      created_at = created_at - interval '2 days', updated_at = updated_at - interval '2 days'`,
    );
    return at;
  }

  it('is caught up with, not dropped', async () => {
    const at = await passed('passed');
    expect(await lookThrough()).toMatchObject([{ count: 1 }]);
    expect((await rowOf('passed')).cursor).toBe(at);
    await instance.start();
    const [run] = await until(async () => {
      const runs = await store.rows<{ trigger: string; at: string }>(
        sql`SELECT trigger, scheduled_for AS at FROM all_runs WHERE status = 'succeeded'`,
      );
      return runs.length > 0 ? runs : null;
    });
    expect({ ...run, at: Date.parse(run?.at ?? '') }).toEqual({ trigger: 'catchUp', at });
    expect((await rowOf('passed')).cursor).toBe(at + 24 * HOUR);
  });

  it('is not made again, nor if it lies before the newest edit', async () => {
    const at = await passed('fired');
    await set('fired', sql`last_fire_at = ${new Date(at).toISOString()}`);
    const editedAt = await passed('edited');
    await set('edited', sql`updated_at = clock_timestamp()`);
    expect(await lookThrough()).toMatchObject([{ count: 2 }]);
    expect((await rowOf('fired')).cursor).toBe(at + 24 * HOUR);
    expect((await rowOf('edited')).cursor).toBe(editedAt + 24 * HOUR);
  });
});

describe('the zone watch leaves alone', () => {
  /** Written by nobody. */
  async function staysAsItIs(...ids: string[]): Promise<void> {
    const before = await Promise.all(ids.map(rowOf));
    await instance.put('wrong', zoned());
    await plant('wrong', HOUR);
    expect(await lookThrough()).toMatchObject([{ count: 1 }]);
    expect(await Promise.all(ids.map(rowOf))).toEqual(before);
  }

  it('next fires that are right, with or without jitter, and those without a zone', async () => {
    await instance.put('right', zoned());
    await instance.put('jitter', { ...zoned(), cron: 'H H * * *', jitterSeconds: 3600 });
    await instance.put('frequent', { ...zoned(), cron: '*/15 9-17 * * *', timezone: 'America/New_York' });
    await instance.put('utc', { ...zoned(), timezone: 'utc' });
    await instance.put('no-zone', { ...zoned(), timezone: null });
    await instance.put('interval', { ...zoned(), cron: null, everySeconds: 86_400 });
    await instance.put('moment', { ...zoned(), cron: null, at: Date.now() + 48 * HOUR });
    for (const id of ['utc', 'no-zone', 'interval', 'moment']) await plant(id, HOUR);
    await staysAsItIs('right', 'jitter', 'frequent', 'utc', 'no-zone', 'interval', 'moment');
  });

  it('schedules that are due, wait for their delay, are paused, have ended, are set aside or are being planned', async () => {
    const ids = ['due', 'delayed', 'paused', 'ended', 'aside', 'locked'];
    await instance.putMany(ids, zoned());
    const now = sql`date_trunc('milliseconds', clock_timestamp())`;
    await set('due', sql`next_occurrence_at = ${now}, next_fire_at = ${now}`);
    await set('delayed', sql`next_occurrence_at = ${now}, next_fire_at = ${now} + interval '1 hour'`);
    await instance.put('paused', { ...zoned(), enabled: false });
    await instance.put('ended', { ...zoned(), endAt: Date.now() - HOUR });
    await set('aside', sql`error = 'cannot be planned'`);
    await set('locked', sql`locked_by = ${await another(OWN)}, locked_at = ${now}`);
    for (const id of ['aside', 'locked']) await plant(id, HOUR);
    expect((await rowOf('ended')).cursor).toBeNull();
    await staysAsItIs(...ids);
  });

  it('schedules that were edited, planned, locked or paused since they were read', async () => {
    const ids = ['edited', 'planned', 'locked', 'paused', 'deleted', 'due', 'same'];
    await instance.putMany(ids, zoned());
    for (const id of ids) await plant(id, HOUR);
    const { schedules } = await store.database.run((db) => listZonedSchedules(db, { after: null, limit: 1000 }));
    const moves = schedules.map((schedule) => {
      const nextOccurrenceAt = (schedule.nextOccurrenceAt ?? 0) - HOUR;
      return { schedule, nextOccurrenceAt, nextFireAt: nextOccurrenceAt };
    });
    await instance.put('edited', { ...zoned(), description: 'edited' });
    await set('planned', sql`next_occurrence_at = next_occurrence_at + interval '1 day'`);
    await set('locked', sql`locked_by = ${instance.id}`);
    await set('paused', sql`enabled = false`);
    await instance.remove('deleted');
    await set('due', sql`next_fire_at = clock_timestamp() + interval '0.5 seconds'`);
    const untouched = ['edited', 'planned', 'locked', 'paused', 'due'];
    const before = await Promise.all(untouched.map(rowOf));
    const { cursor } = await rowOf('same');
    expect(await store.database.run((db) => moveCursorsIfUnplanned(db, OWN, moves))).toBe(1);
    expect(await Promise.all(untouched.map(rowOf))).toEqual(before);
    expect((await rowOf('same')).cursor).toBe((cursor ?? 0) - HOUR);
  });

  it('schedules that cannot be computed: they stop no other', async () => {
    const ids = ['no-json', 'no-cron', 'no-zone', 'infinite'];
    await instance.putMany(ids, zoned());
    for (const id of ids) await plant(id, HOUR);
    await set('no-json', sql`timing = '{'`);
    await set('no-cron', sql`timing = jsonb_set(timing::jsonb, '{cron}', '"soon"')::text`);
    await set('no-zone', sql`timing = jsonb_set(timing::jsonb, '{timezone}', '"Mars/Olympus_Mons"')::text`);
    await set('infinite', sql`next_occurrence_at = 'infinity', next_fire_at = 'infinity'`);
    await staysAsItIs(...ids);
  });
});

describe('the cursors are checked', () => {
  beforeEach(async () => {
    await instance.put('wrong', zoned());
    await plant('wrong', HOUR);
  });
  const right = () => fireTimes(definitionOf(zoned()), { id: 'wrong', createdAt: 0 }).next(Date.now());
  const isRight = async () => (await rowOf('wrong')).cursor === right();

  it('not with the zone data of the last check: one question, whatever is sampled', async () => {
    await record(OWN);
    const watch = startWatch();
    await watch.passed(1);
    watch.sample(OWN);
    watch.sample();
    watch.sample('2020a');
    watch.sample(OWN);
    expect([await watch.settled(), watch.asked(), watch.moved()]).toEqual([1, 1, []]);
    expect(await isRight()).toBe(false);
    await watch.stop();
  });

  it('with other data than those, older or newer, if no instance has newer ones', async () => {
    await record(OLDER);
    expect(await lookThrough()).toMatchObject([{ count: 1 }]);
    expect(await recorded()).toMatchObject([{ version: OWN }]);
    expect(await lookThrough(OWN, 1)).toEqual([]);
  });

  it('again when all living have the same data after they had several', async () => {
    await record(OWN);
    const watch = startWatch();
    await watch.passed(1);
    const older = await another(OLDER);
    watch.sample(OLDER, OWN);
    await watch.passed(1 + LOOKED_THROUGH);
    expect(await isRight()).toBe(true);
    expect(await recorded()).toHaveLength(1);
    // The older one plans, and goes.
    await plant('wrong', HOUR);
    watch.sample(OLDER, OWN);
    expect(await watch.settled()).toBe(1 + LOOKED_THROUGH);
    // Another one that is gone by the time it is asked about.
    watch.sample('2025b', OLDER, OWN);
    await watch.passed(2 + LOOKED_THROUGH);
    expect(await watch.settled()).toBe(2 + LOOKED_THROUGH);
    expect(await isRight()).toBe(false);
    await gone(older, 6);
    watch.sample(OWN);
    await watch.passed(2 + 2 * LOOKED_THROUGH);
    expect(await isRight()).toBe(true);
    await watch.stop();
    expect(watch.moved()).toMatchObject([{ count: 1 }, { count: 1 }]);
    // And that is recorded as their end.
    await plant('wrong', HOUR);
    expect(await lookThrough(OWN, 1)).toEqual([]);
  });

  it('again at a start after others have planned by other data, whether or not any instance saw them', async () => {
    await record(OWN);
    await gone(await another(OLDER), 60);
    expect(await lookThrough()).toMatchObject([{ count: 1 }]);
  });

  it('at each start as long as others plan by older data: that is not recorded as the end of it', async () => {
    await another(OLDER);
    expect(await lookThrough()).toMatchObject([{ count: 1 }]);
    expect(await recorded()).toEqual([]);
    await plant('wrong', HOUR);
    expect(await lookThrough()).toMatchObject([{ count: 1 }]);
  });

  it('not by an instance with older data than another living one, however its data compare with the recorded ones', async () => {
    await record(OWN);
    await another(NEWER);
    const watch = startWatch();
    await watch.passed(1);
    expect([await watch.settled(), watch.asked()]).toEqual([1, 1]);
    await watch.stop();
    expect(await isRight()).toBe(false);
    expect(await recorded()).toMatchObject([{ version: OWN }]);
  });

  it('and nothing moves any more once an instance with newer data has come', async () => {
    const { schedules } = await store.database.run((db) => listZonedSchedules(db, { after: null, limit: 1000 }));
    const moves = schedules.map((schedule) => ({ schedule, nextOccurrenceAt: right(), nextFireAt: right() }));
    const newer = await another(NEWER);
    expect(await store.database.run((db) => moveCursorsIfUnplanned(db, OWN, moves))).toBe(0);
    await gone(newer);
    await another('data of nobody knows what');
    expect(await store.database.run((db) => moveCursorsIfUnplanned(db, OWN, moves))).toBe(1);
  });

  it('after a rollback with the older data, but not while instances with newer ones may only be restarting', async () => {
    await record(NEWER);
    const newer = await another(NEWER);
    await gone(newer, 60);
    const watch = startWatch();
    await watch.passed(1);
    expect([await watch.settled(), await isRight()]).toEqual([1, false]);
    await watch.stop();
    await gone(newer, 301);
    expect(await lookThrough()).toMatchObject([{ count: 1 }]);
    expect(await recorded()).toMatchObject([{ version: OWN }]);
  });

  it('again beside the same older ones after an instance with newer data has come and gone', async () => {
    await another(OLDER);
    const watch = startWatch();
    await watch.passed(LOOKED_THROUGH);
    const newer = await another(NEWER);
    watch.sample(OLDER, OWN, NEWER);
    await watch.passed(LOOKED_THROUGH + 1);
    await plant('wrong', HOUR);
    await gone(newer, 301);
    watch.sample(OLDER, OWN);
    await watch.passed(2 * LOOKED_THROUGH + 1);
    await watch.stop();
    expect(watch.moved()).toMatchObject([{ count: 1 }, { count: 1 }]);
  });

  it('anew by the next instance if one has stopped in the middle', async () => {
    await instance.putMany(
      Array.from({ length: 499 }, (_, n) => `others-${n}`),
      zoned(),
    );
    await store.rows(sql`UPDATE schedules SET uid = 'ffffffff-ffff-ffff-ffff-ffffffffffff' WHERE id = 'wrong'`);
    await instance.put('last', zoned());
    await plant('last', HOUR);
    await store.rows(sql`UPDATE schedules SET uid = '00000000-0000-0000-0000-000000000001' WHERE id = 'last'`);
    const watch = startWatch(OWN, { stopAfter: 2 });
    await watch.passed(2);
    await watch.stop();
    expect(watch.moved()).toMatchObject([{ count: 1 }]);
    expect([await isRight(), await recorded()]).toEqual([false, []]);
    expect(await lookThrough(OWN, LOOKED_THROUGH + 1)).toMatchObject([{ count: 1 }]);
    expect(await isRight()).toBe(true);
    expect(await recorded()).toMatchObject([{ version: OWN }]);
  });

  it('from the same place after the database had been out of reach', async () => {
    await store.rows(sql`ALTER TABLE zone_data RENAME TO zone_data_gone`);
    const watch = startWatch();
    await until(() => (watch.failed().length > 0 ? true : null));
    await store.rows(sql`ALTER TABLE zone_data_gone RENAME TO zone_data`);
    await watch.passed(LOOKED_THROUGH);
    await watch.stop();
    expect(watch.moved()).toMatchObject([{ count: 1 }]);
  });
});
