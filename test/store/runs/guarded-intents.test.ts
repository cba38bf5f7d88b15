import { sql } from 'drizzle-orm';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { OVERLAPS } from '../../../src/core/schedules/schedule.ts';
import { writeBacklogs } from '../../../src/store/backlogs/backlog-rows.ts';
import { intentOf } from '../../../src/store/runs/intents/intent.ts';
import { recordIntentsIfLocked } from '../../../src/store/runs/intents/record-intents.ts';
import { lockDueSchedules } from '../../../src/store/schedules/fire-locks.ts';
import { lockFreeSchedules } from '../../../src/store/schedules/search/find-schedules.ts';
import { leaveOpenRuns } from '../../support/open-runs.ts';
import { createInstance, createStore, type Store, type TestInstance } from '../../support/pipeline.ts';

let store: Store;
let instance: TestInstance;

beforeAll(async () => {
  store = await createStore();
  instance = await createInstance(store);
});

afterAll(async () => {
  await instance.stop();
  await store.drop();
});

/** What is open of a schedule as one of its fires comes due, and whether that fire starts at once. */
const CASES: Record<
  string,
  { startsAtOnce: boolean; leave?: (id: string) => Promise<unknown>; fires?: number }
> = {
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

it.each(
  Object.entries(CASES).flatMap(([when, one]) => GUARDED.map((overlap) => ({ when, overlap, ...one }))),
)(
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
  await store.rows(
    sql`UPDATE schedules SET next_fire_at = NULL, next_occurrence_at = NULL WHERE id <> ${id}`,
  );
  await store.rows(sql`UPDATE schedules SET next_occurrence_at = clock_timestamp() - interval '1 s',
    next_fire_at = clock_timestamp() - interval '1 s' WHERE id = ${id}`);
  const [schedule] = await store.database.run(async (db) => {
    const asked = { instanceId: instance.id, limit: 100, lockTtlSeconds: 120, walking: [] };
    return (await lockDueSchedules(db, asked)).locked;
  });
  if (!schedule) throw new Error(`${id} is not due`);
  const { uid, version, lockedAt, nextOccurrenceAt } = schedule;
  const intents = Array.from({ length: fires }, (_, later) => {
    const at = nextOccurrenceAt + later;
    const fire = { scheduledFor: at, dueAt: at, skipped: null, coalesced: 0, coalescedFrom: null } as const;
    return { ...intentOf(uid, { ...fire, trigger: 'schedule' }), claimed: true };
  });
  const none = { nextOccurrenceAt: null, nextFireAt: null, plannedThrough: null, lastFireAt: null };
  const recorded = await store.database.transaction(async (tx) => {
    await lockFreeSchedules(tx, [uid]);
    return recordIntentsIfLocked(tx, instance.id, [{ uid, version, lockedAt, ...none }], intents, {
      alone: false,
    });
  });
  const ids = intents.map((intent) => intent.id);
  expect(ids.map(recorded.inserted)).toEqual(ids.map(() => true));
  const claims = await store.rows(sql`SELECT status, claimed_by, attempts, overlap_guarded FROM runs
    WHERE id = ANY (${sql.raw(`'{${ids.join()}}'::uuid[]`)}) ORDER BY id`);
  return { waits: ids.map(recorded.waits), claims };
}
