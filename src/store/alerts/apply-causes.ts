import { sql } from 'drizzle-orm';
import type { AlertKind } from '../../core/alerts/alert.ts';
import { type AlertChanges, alertChanges, nextLookAt, soonerLook } from '../../core/alerts/episode.ts';
import { type BreakingRun, whatIsWrong } from '../../core/alerts/what-is-wrong.ts';
import type { Instant } from '../../core/instant.ts';
import { randomRunId } from '../../core/runs/run.ts';
import type { Transaction } from '../../postgres/executor.ts';
import { instants, ints, texts, uuids } from '../../postgres/sql/arrays.ts';
import { databaseNow, recordsOf } from '../../postgres/sql/rows.ts';
import type { EventBus } from '../../runtime/event-bus.ts';
import type { Effect } from '../effects/effect-rows.ts';
import { type LateSchedule, writeLateEffects } from '../effects/insert-effects.ts';
import { lockFreeSchedules } from '../schedules/search/find-schedules.ts';
import { saveWatches } from '../schedules/watches.ts';
import { closeAlertsOf } from './alert-effects.ts';
import {
  type BrokenScheduleRow,
  type OpenAlert,
  readBreakingRuns,
  readBrokenSchedules,
  type VersionedCause,
} from './broken-schedules.ts';
import { NO_MESSAGES, type RecordedMessages } from './record-messages.ts';
import { lockTellers, tell } from './tell-notifiers.ts';

interface ChangedAlert {
  scheduleId: string;
  kind: AlertKind;
  since: Instant;
}

export interface AppliedCauses {
  /** Uids. Another transaction has locked the schedule, a notifier that is to be told, or a message that is to be taken back. */
  waiting: ReadonlySet<string>;
  /** Uids. One transaction records no more messages: of these schedules nothing is decided yet. */
  later: ReadonlySet<string>;
  opened: ChangedAlert[];
  closed: ChangedAlert[];
  /** Messages that it recorded. */
  messages: RecordedMessages;
  /** Effects that it wrote: what follows schedules that are late. */
  effects: number;
}

/** An episode that is opened here. */
interface NewAlert {
  id: string;
  /** It was over a short time ago: the same one opens again. */
  isAgain: boolean;
  schedule: BrokenScheduleRow;
  kind: AlertKind;
  since: Instant;
  brokenAt: Instant;
  failures: number;
  runId: string | null;
  run: BreakingRun | null;
  /** Of fires that were missed. */
  count: number;
}

/** A schedule with what its causes make of its episodes. */
interface JudgedSchedule {
  schedule: BrokenScheduleRow;
  judged: AlertChanges;
  opened: NewAlert[];
}

/**
 * Opens and closes the episodes of these schedules, as they stand and as these effects tell, and records in the same transaction the
 * messages that tell of it. Of each schedule one transaction decides at a time, under the lock of its row: so no episode of a kind is
 * opened twice, and an edit that pauses or deletes the schedule comes wholly before or after.
 */
export async function applyCauses(
  tx: Transaction,
  { effects = [], looks = [] }: { effects?: readonly Effect[]; looks?: readonly string[] },
  publicUrl: string | null,
): Promise<AppliedCauses> {
  const uids = [...new Set([...looks, ...effects.map(({ scheduleUid }) => scheduleUid)])];
  if (uids.length === 0) return NOTHING;
  const { free, locked } = await lockFreeSchedules(tx, uids);
  // After the locks: what is not visible here was written later.
  const now = await databaseNow(tx);
  const there = new Set([...free, ...locked]);
  const gone = uids.filter((uid) => !there.has(uid)).map((uid) => ({ uid, overBy: 'deleted' }));
  await closeAlertsOf(tx, gone, now);
  const judged = await judge(tx, effects, free, now);
  const { told, busy, held, ...tellers } = await lockTellers(tx, judged);
  const isBusy = (one: JudgedSchedule) =>
    (told.get(uidOf(one)) ?? []).some((id) => busy.has(id)) || one.opened.some(({ id }) => held.has(id));
  const ready = judged.filter((one) => !isBusy(one));
  const decided = asManyAsOneTakes(ready, ({ schedule }) => told.get(schedule.uid)?.length ?? 0);
  const opened = decided.flatMap((one) => one.opened);
  // Before others are opened, of which there is one of a kind; and before they are told of: a message says until when it was.
  const closed = await closeAlerts(tx, decided);
  await openAlerts(tx, opened, now);
  await keepOpen(tx, decided, now);
  await saveWatches(
    tx,
    decided.flatMap(({ schedule: { watch } }) => watch ?? []),
  );
  return {
    waiting: new Set([...locked, ...judged.filter(isBusy).map(uidOf)]),
    later: new Set(ready.slice(decided.length).map(uidOf)),
    opened: opened.map(({ schedule: { id: scheduleId }, kind, since }) => ({ scheduleId, kind, since })),
    closed,
    messages: await tell(tx, decided, tellers, { now, publicUrl }),
    effects: await writeLateEffects(tx, opened.flatMap(lateOf)),
  };
}

function lateOf({ kind, schedule: { uid, id, version }, since: lateSince }: NewAlert): LateSchedule[] {
  return kind === 'late' ? [{ uid, id, version, lateSince }] : [];
}

const NONE: ReadonlySet<string> = new Set();
const NOTHING: AppliedCauses = {
  waiting: NONE,
  later: NONE,
  opened: [],
  closed: [],
  messages: NO_MESSAGES,
  effects: 0,
};

/** Once that is committed. */
export function emitAlerts(events: EventBus, { opened, closed }: Pick<AppliedCauses, 'opened' | 'closed'>): void {
  if (opened.length > 0) events.emit({ type: 'alertsOpened', alerts: opened });
  if (closed.length > 0) events.emit({ type: 'alertsClosed', alerts: closed });
  const late = opened.filter(({ kind }) => kind === 'late');
  if (late.length > 0) events.emit({ type: 'schedulesLate', schedules: late });
  const scheduleIds = closed.flatMap(({ kind, scheduleId }) => (kind === 'late' ? [scheduleId] : []));
  if (scheduleIds.length > 0) events.emit({ type: 'schedulesLateNoMore', scheduleIds });
}

function uidOf({ schedule }: JudgedSchedule): string {
  return schedule.uid;
}

/** Of each takes some KiB: what it says. */
const MOST_MESSAGES = 1_000;

/** At least one. */
function asManyAsOneTakes<One>(all: readonly One[], messagesOf: (one: One) => number): One[] {
  let messages = 0;
  const end = all.findIndex((one, index) => (messages += messagesOf(one)) > MOST_MESSAGES && index > 0);
  return end === -1 ? [...all] : all.slice(0, end);
}

/** What is of a deleted schedule is left out. */
async function judge(
  tx: Transaction,
  effects: readonly Effect[],
  free: readonly string[],
  now: Instant,
): Promise<JudgedSchedule[]> {
  const causes = Map.groupBy(effects.flatMap(causesOf), ({ uid }) => uid);
  const schedules = await readBrokenSchedules(tx, free, causes, now);
  const verdicts = schedules.map((schedule) => ({
    schedule,
    judged: alertChanges(schedule, causes.get(schedule.uid) ?? [], now),
  }));
  const runs = await readBreakingRuns(
    tx,
    verdicts.flatMap(({ judged }) => judged.opened.flatMap(({ cause: { runId } }) => runId ?? [])),
  );
  return verdicts.map(({ schedule, judged }) => ({
    schedule,
    judged,
    opened: judged.opened.map(({ cause: { alertKind, at, runId, count }, brokenAt, failures, again }) => {
      const run = runs.get(runId ?? '') ?? null;
      // What was missed first may be long ago.
      const since = alertKind === 'missed' && run ? (run.coalescedFrom ?? run.scheduledFor) : at;
      const [id, isAgain] = [again ?? randomRunId(at), again !== null];
      return { id, isAgain, schedule, kind: alertKind, since, brokenAt, failures, runId, run, count };
    }),
  }));
}

function causesOf({ kind, alertKind, ...effect }: Effect): (VersionedCause & { uid: string })[] {
  if ((kind !== 'breaks' && kind !== 'heals') || alertKind === null) return [];
  const { scheduleUid: uid, scheduleVersion, finishedAt: at, runId, attempt: count } = effect;
  return [{ kind, alertKind, uid, scheduleVersion, at, runId: runId === '' ? null : runId, count }];
}

/** One that opens again keeps its id and since when it is. Its `status` is in quotes: it says how a run ended, and gives none to a run. */
async function openAlerts(tx: Transaction, opened: readonly NewAlert[], now: Instant): Promise<void> {
  if (opened.length === 0) return;
  await tx.execute(sql`-- openAlerts
    INSERT INTO alerts (id, schedule_uid, schedule_id, kind, since, broken_at, failures, run_id, status, error, look_at)
    SELECT * FROM unnest(${uuids(opened.map(({ id }) => id))}, ${uuids(opened.map(({ schedule }) => schedule.uid))},
      ${texts(opened.map(({ schedule }) => schedule.id))}, ${texts(opened.map(({ kind }) => kind))},
      ${instants(opened.map(({ since }) => since))}, ${instants(opened.map(({ brokenAt }) => brokenAt))},
      ${ints(opened.map(({ failures }) => failures))},
      ${uuids(opened.map(({ runId }) => runId))}, ${texts(opened.map(({ run }) => run?.status ?? null))},
      ${texts(opened.map(({ kind, schedule, ...broken }) => whatIsWrong(kind, broken, schedule)))},
      ${instants(opened.map(({ schedule: { nextFireAt }, ...one }) => nextLookAt({ ...one, nextFireAt, isFresh: true }, now)))})
    ON CONFLICT (id) DO UPDATE SET until = NULL, over_by = NULL, broken_at = excluded.broken_at, look_at = excluded.look_at,
      failures = excluded.failures, run_id = excluded.run_id, "status" = excluded.status, error = excluded.error`);
}

/** Notes what broke again, and when what stays open is looked at next: what stays as it is, is not written. */
async function keepOpen(tx: Transaction, decided: readonly JudgedSchedule[], now: Instant): Promise<void> {
  const changed = decided.flatMap((one) => changedOf(one, now));
  if (changed.length === 0) return;
  await tx.execute(sql`-- keepOpen
    UPDATE alerts SET broken_at = k.at, failures = k.failures, look_at = k.look_at
    FROM unnest(${uuids(changed.map(({ id }) => id))}, ${instants(changed.map(({ brokenAt }) => brokenAt))},
      ${ints(changed.map(({ failures }) => failures))}, ${instants(changed.map(({ lookAt }) => lookAt))}) AS k(id, at, failures, look_at)
    WHERE alerts.id = k.id`);
}

function changedOf({ schedule: { open, nextFireAt }, judged }: JudgedSchedule, now: Instant): OpenAlert[] {
  const over = new Set([...judged.closed.map(({ id }) => id), ...judged.opened.map(({ again }) => again)]);
  return [...open].flatMap(([kind, one]) => {
    const next = nextLookAt({ kind, since: one.since, nextFireAt, isFresh: false }, now);
    const lookAt = soonerLook(one.lookAt, next, now);
    const again = judged.brokenAgain.find(({ id }) => id === one.id);
    const isChanged = again !== undefined || lookAt !== one.lookAt;
    return isChanged && !over.has(one.id) ? [{ ...one, ...again, lookAt }] : [];
  });
}

async function closeAlerts(tx: Transaction, decided: readonly JudgedSchedule[]): Promise<ChangedAlert[]> {
  const closed = decided.flatMap(({ judged }) => judged.closed);
  if (closed.length === 0) return [];
  return recordsOf<ChangedAlert>(tx)(sql`-- closeAlerts
    UPDATE alerts SET until = greatest(c.until, alerts.since), over_by = c.over_by, look_at = NULL
    FROM unnest(${uuids(closed.map(({ id }) => id))}, ${instants(closed.map(({ until }) => until))},
      ${texts(closed.map(({ overBy }) => overBy))}) AS c(id, until, over_by)
    WHERE alerts.id = c.id RETURNING alerts.schedule_id, alerts.kind, alerts.since`);
}
