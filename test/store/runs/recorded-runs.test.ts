import { sql } from 'drizzle-orm';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { beginByOf, boundsOf } from '../../../src/core/runs/bounds.ts';
import { UNGUARDED, newRun, runOfSchedule } from '../../../src/core/runs/new-run.ts';
import { randomRunId } from '../../../src/core/runs/run.ts';
import { type Definition, OVERLAPS, type Schedule } from '../../../src/core/schedules/schedule.ts';
import { writeBacklogs } from '../../../src/store/backlogs/backlog-rows.ts';
import type { Executor } from '../../../src/postgres/executor.ts';
import { recordAfterRuns } from '../../../src/store/effects/after-runs.ts';
import { lockEffects } from '../../../src/store/effects/effect-rows.ts';
import { recordIntentsIfLocked } from '../../../src/store/runs/intents/record-intents.ts';
import { intentOf } from '../../../src/store/runs/intents/intent.ts';
import { type RecordRow, RECORD_COLUMNS, toRecord } from '../../../src/store/runs/record-columns.ts';
import { recordRuns } from '../../../src/store/runs/lock-and-save.ts';
import { lockDueSchedules } from '../../../src/store/schedules/fire-locks.ts';
import { lockFreeSchedules } from '../../../src/store/schedules/search/find-schedules.ts';
import { leaveOpenRuns } from '../../support/open-runs.ts';
import { NOW } from '../../support/run-record.ts';
import { type Store, type TestInstance, createInstance, createStore } from '../../support/pipeline.ts';

let store: Store;
let instance: TestInstance;

const KINDS: Partial<Definition>[] = [
  ...OVERLAPS.map((overlap) => ({ overlap })),
  ...OVERLAPS.map((overlap) => ({ overlap, priority: 'high', limit: 'three', pauseAfterFailures: 2 }) as const),
  { priority: 'low', successWithinSeconds: 60 },
  { limit: 'three' },
  { pauseAfterFailures: 2, successWithinSeconds: 60 },
  { expect: { startWithinSeconds: 60, finishWithinSeconds: null, atLeastSeconds: null, result: null } },
  { expect: { startWithinSeconds: null, finishWithinSeconds: 900, atLeastSeconds: null, result: null } },
  {
    expect: { startWithinSeconds: 60, finishWithinSeconds: 900, atLeastSeconds: null, result: null },
    overlap: 'queue',
  },
  { expiresAfterSeconds: 600 },
];

beforeAll(async () => {
  store = await createStore();
  instance = await createInstance(store);
  await store.rows(sql`INSERT INTO limits (id, max_running, updated_at) VALUES ('three', 3, clock_timestamp())`);
});

afterAll(async () => {
  await instance.stop();
  await store.drop();
});

function putAll(kind: string, more: Partial<Definition> = {}): Promise<Schedule[]> {
  const url = 'http://127.0.0.1:9/';
  return Promise.all(KINDS.map((one, index) => instance.put(`${kind}-${index}`, { url, ...one, ...more })));
}

/** The columns that `runOfSchedule` and `boundsOf` are about, and the status. */
async function runsOf({ uid }: Schedule) {
  const rows = await store.rows<RecordRow>(
    sql`SELECT ${RECORD_COLUMNS.runs} FROM runs r WHERE r.schedule_uid = ${uid}
      UNION ALL SELECT ${RECORD_COLUMNS.history} FROM history r WHERE r.schedule_uid = ${uid} ORDER BY scheduled_for`,
  );
  return rows.map(toRecord).map((run) => ({
    status: run.status,
    scheduleUid: run.scheduleUid,
    scheduleVersion: run.scheduleVersion,
    scheduleId: run.scheduleId,
    lane: run.lane,
    priority: run.priority,
    limitId: run.limitId,
    overlapGuarded: run.overlapGuarded,
    outcomeWatched: run.outcomeWatched,
    expiresAfterSeconds: run.expiresAfterSeconds,
    begunWithin: run.beginBy === null ? null : run.beginBy - run.dueAt,
    nextBound: run.nextBound,
    boundAfter: run.boundAt === null ? null : run.boundAt - run.dueAt,
    finishWithinSeconds: run.finishWithinSeconds,
  }));
}

const expiryOf = (schedule: Schedule) => ({
  ...runOfSchedule(schedule),
  begunWithin: beginByOf(schedule.definition, 0),
});

const open = (schedule: Schedule) => {
  const { boundAt: boundAfter, ...bounds } = boundsOf(schedule.definition.expect, 0);
  return {
    status: schedule.definition.overlap === 'allow' ? 'pending' : 'waiting',
    ...expiryOf(schedule),
    ...bounds,
    boundAfter,
  };
};

/** All that are due, under the fire-locks of the instance. */
async function lockedBy(db: Executor) {
  const asked = { instanceId: instance.id, limit: 100, lockTtlSeconds: 120, walking: [] };
  return (await lockDueSchedules(db, asked)).locked;
}

const NO_MORE = { nextOccurrenceAt: null, nextFireAt: null, plannedThrough: null, lastFireAt: null };

it('a planned fire takes from its schedule what runOfSchedule says, and a missed one too', async () => {
  const schedules = await putAll('planned');
  await store.rows(
    sql`UPDATE schedules SET next_occurrence_at = clock_timestamp() - interval '1 s', next_fire_at = clock_timestamp() - interval '1 s'`,
  );
  await store.database.run(async (db) => {
    const locked = await lockedBy(db);
    const usual = { trigger: 'schedule', coalesced: 0, coalescedFrom: null, claimed: false } as const;
    const intents = locked.flatMap(({ uid: scheduleUid, nextOccurrenceAt }) =>
      ([null, 'missed'] as const).map((skipped, later) => {
        const scheduledFor = nextOccurrenceAt + later;
        return {
          id: randomRunId(scheduledFor),
          scheduleUid,
          scheduledFor,
          dueAt: scheduledFor,
          skipped,
          ...usual,
        };
      }),
    );
    const advances = locked.map(({ uid, version, lockedAt }) => ({
      ...{ uid, version, lockedAt, isBounded: true },
      ...NO_MORE,
    }));
    await recordIntentsIfLocked(db, instance.id, advances, intents, { alone: true });
  });
  for (const schedule of schedules) {
    const noBounds = { nextBound: null, boundAfter: null, finishWithinSeconds: null };
    const skipped = { ...expiryOf(schedule), ...UNGUARDED, ...noBounds, status: 'skipped' };
    expect(await runsOf(schedule)).toEqual([open(schedule), skipped]);
  }
});

it('so does the run that follows the end of another schedule', async () => {
  const first = await instance.put('first', { url: 'http://127.0.0.1:9/' });
  const schedules = await putAll('after', { cron: null, after: { scheduleId: 'first', on: ['skipped'] } });
  const at = { scheduledFor: NOW, dueAt: NOW, finishedAt: NOW };
  const run = {
    ...runOfSchedule(first),
    ...at,
    id: randomRunId(NOW),
    trigger: 'schedule',
    status: 'skipped',
  } as const;
  await store.database.transaction(async (tx) => {
    await recordRuns(tx, [newRun(run, NOW)]);
    const effects = await lockEffects(tx, { which: 'new', limit: 200, besides: [] });
    await recordAfterRuns(
      tx,
      effects.filter(({ kind }) => kind === 'followers'),
    );
  });
  for (const schedule of schedules) expect(await runsOf(schedule)).toEqual([open(schedule)]);
});

/** What is open of a schedule as one of its fires comes due, and whether that fire starts at once. */
const CASES: Record<string, { startsAtOnce: boolean; leave?: (id: string) => Promise<unknown>; fires?: number }> = {
  'none of its runs is open': { startsAtOnce: true },
  'two of its fires are recorded': { startsAtOnce: false, fires: 2 },
  'a run waits': {
    startsAtOnce: false,
    leave: (id) => leaveOpenRuns(store, id, 1, { status: 'waiting' }),
  },
  'a run is active': { startsAtOnce: false, leave: (id) => leaveOpenRuns(store, id, 1) },
  'a target works on a run': {
    startsAtOnce: false,
    leave: (id) => leaveOpenRuns(store, id, 1, { status: 'running' }),
  },
  'a backfilled run is active': {
    startsAtOnce: false,
    leave: (id) => leaveOpenRuns(store, id, 1, { trigger: 'backfill' }),
  },
  'a retried run is active': {
    startsAtOnce: false,
    leave: (id) => leaveOpenRuns(store, id, 1, { retried: true }),
  },
  'runs from before an edit are still to be marked': { startsAtOnce: false, leave: marked },
  'an overlap of a later version is set': {
    startsAtOnce: false,
    leave: (id) => store.rows(sql`UPDATE schedules SET overlap = 'someday' WHERE id = ${id}`),
  },
};

async function marked(id: string): Promise<void> {
  const [row] = await store.rows<{ uid: string }>(sql`SELECT uid FROM schedules WHERE id = ${id}`);
  const backlog = { kind: 'marked', uid: row?.uid ?? '', scheduleId: id } as const;
  await store.database.transaction((tx) => writeBacklogs(tx, [backlog]));
}

const GUARDED = OVERLAPS.filter((overlap) => overlap !== 'allow');

it.each(Object.entries(CASES).flatMap(([when, one]) => GUARDED.map((overlap) => ({ when, overlap, ...one }))))(
  'a fire under $overlap, where $when: starts at once, with its claim: $startsAtOnce',
  async ({ when, overlap, leave, fires = 1, startsAtOnce }) => {
    const id = `${overlap}-${Object.keys(CASES).indexOf(when)}`;
    await instance.put(id, { url: 'http://127.0.0.1:9/', overlap });
    await leave?.(id);
    const { waits, claims } = await recordDue(id, fires);
    expect(waits).toEqual(Array.from({ length: fires }, () => !startsAtOnce));
    expect(claims).toEqual(
      Array.from({ length: fires }, () =>
        startsAtOnce
          ? { status: 'pending', claimed_by: instance.id, attempts: 1, overlap_guarded: true }
          : { status: 'waiting', claimed_by: null, attempts: 0, overlap_guarded: true },
      ),
    );
  },
);

/** As a tick records it: with a claim wherever the overlap allows one. */
async function recordDue(id: string, fires: number) {
  await store.rows(sql`UPDATE schedules SET next_fire_at = NULL, next_occurrence_at = NULL WHERE id <> ${id}`);
  await store.rows(sql`UPDATE schedules SET next_occurrence_at = clock_timestamp() - interval '1 s',
    next_fire_at = clock_timestamp() - interval '1 s' WHERE id = ${id}`);
  const [schedule] = await store.database.run(lockedBy);
  if (!schedule) throw new Error(`${id} is not due`);
  const { uid, version, lockedAt, nextOccurrenceAt } = schedule;
  const intents = Array.from({ length: fires }, (_, later) => {
    const at = nextOccurrenceAt + later;
    const fire = { scheduledFor: at, dueAt: at, skipped: null, coalesced: 0, coalescedFrom: null } as const;
    return { ...intentOf(uid, { ...fire, trigger: 'schedule' }), claimed: true };
  });
  const recorded = await store.database.transaction(async (tx) => {
    await lockFreeSchedules(tx, [uid]);
    return recordIntentsIfLocked(tx, instance.id, [{ uid, version, lockedAt, ...NO_MORE }], intents, {
      alone: false,
    });
  });
  const ids = intents.map((intent) => intent.id);
  expect(ids.map(recorded.inserted)).toEqual(ids.map(() => true));
  const claims = await store.rows(sql`SELECT status, claimed_by, attempts, overlap_guarded FROM runs
    WHERE id = ANY (${sql.raw(`'{${ids.join()}}'::uuid[]`)}) ORDER BY id`);
  return { waits: ids.map(recorded.waits), claims };
}
