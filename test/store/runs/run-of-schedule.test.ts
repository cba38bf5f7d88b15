import { sql } from 'drizzle-orm';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { beginByOf, boundsOf } from '../../../src/core/runs/bounds.ts';
import { UNGUARDED, newRun, runOfSchedule } from '../../../src/core/runs/new-run.ts';
import { randomRunId } from '../../../src/core/runs/run.ts';
import { type Definition, OVERLAPS, type Schedule } from '../../../src/core/schedules/schedule.ts';
import { recordAfterRuns } from '../../../src/store/effects/after-runs.ts';
import { lockEffects } from '../../../src/store/effects/effect-rows.ts';
import { recordIntentsIfLocked } from '../../../src/store/runs/intents/record-intents.ts';
import { type RecordRow, RECORD_COLUMNS, toRecord } from '../../../src/store/runs/record-columns.ts';
import { recordRuns } from '../../../src/store/runs/lock-and-save.ts';
import { lockDueSchedules } from '../../../src/store/schedules/fire-locks.ts';
import { NOW } from '../../support/run-record.ts';
import { type Store, type TestInstance, createInstance, createStore } from '../../support/pipeline.ts';

let store: Store;
let instance: TestInstance;

const KINDS: Partial<Definition>[] = [
  ...OVERLAPS.map((overlap) => ({ overlap })),
  ...OVERLAPS.map(
    (overlap) => ({ overlap, priority: 'high', limit: 'three', pauseAfterFailures: 2 }) as const,
  ),
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
  await store.rows(
    sql`INSERT INTO limits (id, max_running, updated_at) VALUES ('three', 3, clock_timestamp())`,
  );
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

it('a planned fire takes from its schedule what runOfSchedule says, and a missed one too', async () => {
  const schedules = await putAll('planned');
  await store.rows(
    sql`UPDATE schedules SET next_occurrence_at = clock_timestamp() - interval '1 s', next_fire_at = clock_timestamp() - interval '1 s'`,
  );
  await store.database.run(async (db) => {
    const asked = { instanceId: instance.id, limit: 100, lockTtlSeconds: 120, walking: [] };
    const { locked } = await lockDueSchedules(db, asked);
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
    const none = { nextOccurrenceAt: null, nextFireAt: null, plannedThrough: null, lastFireAt: null };
    const advances = locked.map(({ uid, version, lockedAt }) => ({
      ...{ uid, version, lockedAt, isBounded: true },
      ...none,
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
