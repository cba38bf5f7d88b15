import { randomUUID } from 'node:crypto';
import { sql } from 'drizzle-orm';
import { expect } from 'vitest';
import type { OneOffRun } from '../../src/core/runs/one-off-run.ts';
import { sealTarget } from '../../src/core/schedules/target-secrets.ts';
import { resumeFromNow } from '../../src/operations/resume.ts';
import { rotateSecrets } from '../../src/operations/rotate-secrets.ts';
import { backfill } from '../../src/operations/runs/backfill.ts';
import { actOnMatchingRuns } from '../../src/operations/runs/bulk-runs.ts';
import { acceptRuns } from '../../src/operations/runs/submit-one-off-runs.ts';
import { setEnabledOfMatching } from '../../src/operations/schedules/bulk-schedules.ts';
import { deleteSchedule } from '../../src/operations/schedules/delete-schedule.ts';
import { changeSchedules } from '../../src/operations/schedules/schedule-changes.ts';
import { setBackCursors } from '../../src/operations/set-back-cursors.ts';
import { texts, uuids } from '../../src/postgres/sql/arrays.ts';
import { putDates } from '../support/named.ts';
import { leaveOpenRuns } from '../support/open-runs.ts';
import { definitionOf, oneOffOf } from '../support/pipeline.ts';
import { SECRETS, SECRET_KEYS, ringOf } from '../support/secrets.ts';
import { targetAt } from '../support/targets.ts';
import {
  HOLIDAYS,
  PULLED,
  dayToExclude,
  editCalendar,
  idsOf,
  putCalendar,
  putDue,
  putOwing,
  putSchedules,
} from './leave.ts';
import type { Volume } from './volume.ts';

/** An operation over rows: so many of them are there, and one call is about all of them. */
interface OperationCase {
  name: string;
  leave?: (volume: Volume, count: number) => Promise<unknown>;
  call: (volume: Volume, count: number) => Promise<unknown>;
}

const depsOf = ({ common, workers }: Volume) => ({
  ...{ ...common, ...common.config, database: common.database, wake: workers.wake },
  ...{ scope: null, signal: new AbortController().signal },
});
const ACCEPTED = () => undefined;
const HOUR = 3_600_000;

const change = (volume: Volume, definitions: ReadonlyMap<string, ReturnType<typeof definitionOf>>) =>
  changeSchedules(
    depsOf(volume),
    [...definitions].map(([id, definition]) => ({
      ...{ id, by: null, scope: null, decide: () => definition },
      calendars: definition.exclude?.calendars ?? [],
    })),
  );

const put = (volume: Volume, ids: readonly string[], more = {}) =>
  change(volume, new Map(ids.map((id) => [id, definitionOf({ ...PULLED, ...more })])));

const oneOffs = (count: number, more = {}) => idsOf(count).map((key) => oneOffOf({ queue: 'q', key, ...more }));

/** Sealed anew at each call, as the API does. */
const oneOffsWithSecrets = (count: number) =>
  idsOf(count).map((key): OneOffRun => {
    const definitionUid = randomUUID();
    const run = oneOffOf({ url: 'http://127.0.0.1/', key });
    const target = targetAt('http://127.0.0.1/', { secret: 'whsec_dGhlIHNlY3JldCBvZiBhIHRlc3Q=' });
    const sealed = sealTarget(target, { ring: SECRETS, uid: definitionUid, before: null }).target;
    return { ...run, definitionUid, handoff: { ...run.handoff, target: sealed } };
  });

export const OPERATIONS: readonly OperationCase[] = [
  { name: 'schedules created', call: (volume, count) => put(volume, idsOf(count)) },
  {
    name: 'schedules edited that are due, and have open runs that count from now on',
    leave: async (volume, count) => {
      await putDue(volume, count);
      await leaveOpenRuns(volume.store, null, 2, { guarded: false });
    },
    call: (volume, count) =>
      put(volume, idsOf(count), { overlap: 'replace', pauseAfterFailures: 3, cron: '0 0 2 1 *' }),
  },
  {
    name: 'schedules edited, of which each owes a fire since then',
    leave: async (volume, count) => {
      await putOwing(volume, count, 'skip');
      await editCalendar(volume, [dayToExclude()]);
      await volume.store.rows(sql`UPDATE calendars SET applied_version = version`);
      await volume.store.rows(sql`UPDATE calendar_versions SET at = at - interval '1 hour'`);
    },
    call: async (volume, count) => {
      const [row] = await volume.store.rows<{ timing: string }>(sql`SELECT timing FROM schedules LIMIT 1`);
      const timing = JSON.parse(row?.timing ?? '') as object;
      await put(volume, idsOf(count), { ...timing, onExcluded: 'previous', successWithinSeconds: 60 });
      const runs = await volume.store.rows(sql`SELECT FROM runs`);
      expect(runs).toHaveLength(count);
    },
  },
  {
    name: 'schedules that each follow another one',
    leave: (volume, count) => putSchedules(volume, count),
    call: (volume, count) =>
      change(
        volume,
        new Map(
          idsOf(count).map((scheduleId) => [
            `after-${scheduleId}`,
            definitionOf({ ...PULLED, cron: null, after: { scheduleId, on: ['failed'] } }),
          ]),
        ),
      ),
  },
  {
    name: 'schedules paused by a filter',
    leave: (volume, count) => putDue(volume, count),
    call: (volume) =>
      setEnabledOfMatching(depsOf(volume), {
        ...{ action: 'pause', filter: { scope: null }, reason: null, until: null, dryRun: false, by: null },
      }),
  },
  {
    name: 'a schedule deleted with its runs',
    leave: async (volume, count) => {
      await putSchedules(volume, 1);
      await leaveOpenRuns(volume.store, null, count);
    },
    call: (volume) => deleteSchedule(depsOf(volume), { id: 's0', by: null, scope: null }, ACCEPTED),
  },
  {
    name: 'fires of a past period',
    leave: (volume) => volume.instance.put('hourly', { ...PULLED, cron: '0 * * * *' }),
    call: (volume, count) => {
      const to = Math.floor(Date.now() / HOUR) * HOUR - 48 * HOUR;
      const period = { from: to - count * HOUR, to };
      return backfill(depsOf(volume), { scheduleId: 'hourly', ...period, limit: 1_000, as: 'now' });
    },
  },
  {
    name: 'fires of a past period by the versions that were in force, each by another one',
    leave: async (volume, count) => {
      await volume.instance.put('hourly', { ...PULLED, cron: '0 * * * *' });
      await volume.store
        .rows(sql`INSERT INTO schedule_versions (schedule_uid, version, schedule_id, change, at, definition)
        SELECT schedule_uid, 1 + n, schedule_id, 'updated', date_trunc('hour', now()) - make_interval(hours => ${count}::int + 1 - n, mins => 30), definition
        FROM schedule_versions, generate_series(1, ${count}::int) AS n WHERE version = 1`);
      await volume.store.rows(sql`UPDATE schedule_versions SET at = now() - interval '1 year' WHERE version = 1`);
      await volume.store.rows(sql`UPDATE schedules SET version = ${count}::int + 1`);
    },
    call: (volume, count) => {
      const to = Math.floor(Date.now() / HOUR) * HOUR;
      const period = { from: to - count * HOUR, to };
      return backfill(depsOf(volume), { scheduleId: 'hourly', ...period, limit: 1_000, as: 'then' });
    },
  },
  { name: 'one-off runs', call: (volume, count) => acceptRuns(depsOf(volume), oneOffs(count)) },
  {
    name: 'one-off runs whose keys stood for runs that are gone',
    leave: async (volume, count) => {
      await acceptRuns(depsOf(volume), oneOffs(count));
      await volume.store.rows(sql`DELETE FROM runs`);
    },
    call: (volume, count) => acceptRuns(depsOf(volume), oneOffs(count)),
  },
  {
    name: 'one-off runs with secrets, asked for again',
    leave: async (volume, count) => acceptRuns(depsOf(volume), oneOffsWithSecrets(count)),
    call: (volume, count) => acceptRuns(depsOf(volume), oneOffsWithSecrets(count)),
  },
  {
    name: 'a run that depends on many',
    leave: ({ instance }, count) => instance.accept(...idsOf(count).map(() => ({ queue: 'q' }))),
    call: async (volume) => {
      const runs = await volume.store.rows<{ id: string }>(sql`SELECT id FROM runs`);
      return acceptRuns(depsOf(volume), [oneOffOf({ queue: 'q', dependsOn: runs.map(({ id }) => id) })]);
    },
  },
  {
    name: 'runs cancelled by a filter',
    leave: async (volume, count) => {
      await putSchedules(volume, count);
      await leaveOpenRuns(volume.store, null, 1);
    },
    call: (volume) =>
      actOnMatchingRuns(depsOf(volume), { ...{ action: 'cancel', filter: {}, limit: 1_000, dryRun: false } }),
  },
  {
    name: 'runs retried by a filter',
    leave: async (volume, count) => {
      await putSchedules(volume, count);
      await leaveOpenRuns(volume.store, null, 1);
      await actOnMatchingRuns(depsOf(volume), {
        ...{ action: 'cancel', filter: {}, limit: 1_000, dryRun: false },
      });
    },
    call: (volume) =>
      actOnMatchingRuns(depsOf(volume), { ...{ action: 'retry', filter: {}, limit: 1_000, dryRun: false } }),
  },
  {
    name: 'a calendar edited: next fires moved',
    leave: async (volume, count) => {
      await putCalendar(volume);
      await putSchedules(volume, count, { ...HOLIDAYS, cron: '0 0 * * *' });
    },
    call: (volume) => putDates(depsOf(volume), ['2000-01-01/2099-01-01']),
  },
  {
    name: 'a calendar edited that owes each of its schedules a fire',
    leave: (volume, count) => putOwing(volume, count),
    call: (volume) => putDates(depsOf(volume), [dayToExclude()]),
  },
  {
    name: 'schedules moved to now (resume)',
    leave: async (volume, count) => {
      await putDue(volume, count);
      await volume.store.rows(sql`UPDATE instances SET died_at = now()`);
    },
    call: (volume) => resumeFromNow(depsOf(volume)),
  },
  {
    name: 'schedules that a clock was ahead of set back',
    leave: async ({ store, ...volume }, count) => {
      await putSchedules({ store, ...volume }, count);
      await store.rows(sql`UPDATE schedules SET planned_through = now() + interval '1 hour'`);
      await leaveOpenRuns(store, null, 1, { secondsAgo: -1800 });
    },
    call: async (volume, count) => {
      expect(await setBackCursors(depsOf(volume))).toMatchObject({ setBack: count, made: count });
    },
  },
  {
    name: 'secrets encrypted anew',
    leave: async (volume, count) => {
      await putSchedules(volume, count);
      const rows = await volume.store.rows<{ uid: string }>(sql`SELECT uid FROM schedules`);
      const targets = rows.map(({ uid }) => {
        const target = targetAt('http://127.0.0.1/', { secret: 'whsec_dGhlIHNlY3JldCBvZiBhIHRlc3Q=' });
        return JSON.stringify(sealTarget(target, { ring: SECRETS, uid, before: null }).target);
      });
      await volume.store
        .rows(sql`UPDATE schedule_versions v SET definition = jsonb_set(v.definition, '{target}', t.target::jsonb)
        FROM unnest(${uuids(rows.map(({ uid }) => uid))}, ${texts(targets)}) AS t(uid, target) WHERE v.schedule_uid = t.uid`);
    },
    call: (volume) => {
      const newer = `newer:${Buffer.alloc(32, 9).toString('base64')}`;
      return rotateSecrets({ ...depsOf(volume), secrets: ringOf(`${newer},${SECRET_KEYS}`) });
    },
  },
];
