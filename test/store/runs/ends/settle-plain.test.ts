import { randomUUID } from 'node:crypto';
import { sql } from 'drizzle-orm';
import { beforeEach, describe, expect, it } from 'vitest';
import { ENDED_BY_SUCCESS, effectsOfEnd } from '../../../../src/core/runs/effect.ts';
import { RUN_TRIGGERS } from '../../../../src/core/runs/run.ts';
import { texts } from '../../../../src/postgres/sql/arrays.ts';
import { settlePlainIfClaimed } from '../../../../src/store/runs/ends/settle-plain.ts';
import { RECORD_COLUMNS, type RecordRow, toRecord } from '../../../../src/store/runs/record-columns.ts';
import { instanceOfTest, storeOfTest } from '../../../support/of-test.ts';
import { leaveRuns, runsOf } from '../../../support/pending-runs.ts';
import type { Store, TestInstance } from '../../../support/pipeline.ts';
import { plainSuccess } from '../../../support/claims.ts';

let store: Store;
let instance: TestInstance;
let runId: string;
beforeEach(async () => {
  store = await storeOfTest();
  instance = await instanceOfTest(store);
  await instance.put('hourly', { url: 'http://127.0.0.1:1' });
  await leaveRuns(store, 'hourly', { claimedBy: instance.id });
  const [run] = await runsOf(store);
  runId = run?.id ?? '';
});

const settle = () =>
  store.database.run((db) =>
    settlePlainIfClaimed(db, [plainSuccess({ runId, instanceId: instance.id, at: Date.now() })]),
  );

describe('a plain success', () => {
  it('ends the run that it still claims: its row moves to history', async () => {
    const { settled } = await settle();
    expect(settled(runId)).toBe(true);
    expect(await runsOf(store)).toMatchObject([{ id: runId, status: 'succeeded' }]);
    expect(await store.rows(sql`SELECT FROM runs`)).toEqual([]);
  });

  it.each([
    ['another instance has claimed it', sql`claimed_by = ${randomUUID()}`],
    ['no instance claims it', sql`claimed_by = NULL, claimed_at = NULL`],
    ['it was claimed for another attempt', sql`attempts = 2`],
    ['recovery has found it lost', sql`lost_at = clock_timestamp()`],
    ['its target is to be asked about an earlier attempt', sql`in_doubt_until = clock_timestamp()`],
    ['an earlier attempt may have arrived', sql`attempt_in_doubt = 1`],
    ['its log holds an attempt already', sql`attempt_log = '[]'`],
    ['it runs, since its completion is awaited', sql`status = 'running'`],
    ['it waits', sql`status = 'waiting'`],
  ])('leaves the run as it is where %s', async (_, change) => {
    await store.rows(sql`UPDATE runs SET ${change} WHERE id = ${runId}`);
    const before = await store.rows(sql`SELECT * FROM runs`);
    const { settled } = await settle();
    expect(settled(runId)).toBe(false);
    expect(await store.rows(sql`SELECT * FROM runs`)).toEqual(before);
    expect(await store.rows(sql`SELECT FROM history`)).toEqual([]);
  });

  it.each([
    ['nothing follows, and no episode is open', false],
    ['a schedule follows it, and all episodes are open', true],
  ])('has the effects that effectsOfEnd says, where %s', async (_, isDue) => {
    const follower = {
      url: 'http://127.0.0.1:1',
      cron: null,
      after: { scheduleId: '*', on: ['late' as const] },
    };
    if (isDue) await instance.put('follower', follower);
    await store.rows(sql`INSERT INTO alerts (id, schedule_uid, schedule_id, kind, since, broken_at)
      SELECT gen_random_uuid(), uid, id, kind, now(), now() FROM schedules, unnest(${texts(isDue ? ENDED_BY_SUCCESS : [])}) AS kind WHERE id = 'hourly'`);
    await leaveRuns(store, 'hourly', {
      claimedBy: instance.id,
      count: RUN_TRIGGERS.length * 8,
      lateBySeconds: 10,
    });
    await store.rows(sql`UPDATE runs r SET trigger = t.trigger, overlap_guarded = n & 1 = 1, has_dependents = n & 2 = 2,
        outcome_watched = n & 4 = 4, (schedule_uid, schedule_id) = (SELECT CASE WHEN of_schedule THEN schedule_uid ELSE r.id END,
          CASE WHEN of_schedule THEN schedule_id ELSE '' END)
      FROM (SELECT id, row_number() OVER (ORDER BY id) - 1 AS n FROM runs WHERE id <> ${runId}) AS each,
        LATERAL (SELECT (${texts(RUN_TRIGGERS)})[n / 8 + 1] AS trigger) AS t, LATERAL (SELECT t.trigger NOT IN ('api', 'notify') AS of_schedule) AS o
      WHERE r.id = each.id`);
    const ids = (await store.rows<{ id: string }>(sql`SELECT id FROM runs`)).map(({ id }) => id);
    const plain = ids.map((id) => plainSuccess({ runId: id, instanceId: instance.id, at: Date.now() }));
    expect((await store.database.run((db) => settlePlainIfClaimed(db, plain))).settled).toSatisfy(
      (settled: (id: string) => boolean) => ids.every((id) => settled(id)),
    );
    const ended = await store.rows<RecordRow>(sql`SELECT ${RECORD_COLUMNS.history} FROM history r`);
    const expected = ended
      .map(toRecord)
      .flatMap((run) =>
        effectsOfEnd(run, 'pending').map(({ kind, alertKind = null }) => ({ run: run.id, kind, alertKind })),
      );
    const dueHere = expected.filter(({ kind }) => isDue || (kind !== 'followers' && kind !== 'heals'));
    const written = await store.rows(sql`SELECT run_id AS run, kind, alert_kind AS "alertKind" FROM effects`);
    const inOrder = (effects: readonly object[]) => effects.map((one) => JSON.stringify(one)).sort();
    expect(inOrder(written)).toEqual(inOrder(dueHere));
    expect(new Set(dueHere.map(({ kind }) => kind)).size).toBe(isDue ? 4 : 2);
  });

  it('for a run that has ended writes nothing a second time', async () => {
    await settle();
    const before = await store.rows(sql`SELECT * FROM history`);
    const { settled } = await settle();
    expect(settled(runId)).toBe(false);
    expect(await store.rows(sql`SELECT * FROM history`)).toEqual(before);
  });
});
