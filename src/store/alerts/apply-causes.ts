import { sql } from 'drizzle-orm';
import type { AlertKind } from '../../core/alerts/alert.ts';
import { type Cause, type Judged, judgeCauses } from '../../core/alerts/episode.ts';
import { type BreakingRun, whatIsWrong } from '../../core/alerts/what-is-wrong.ts';
import type { Instant } from '../../core/instant.ts';
import { randomRunId } from '../../core/runs/run.ts';
import { instants, texts, uuids } from '../../postgres/sql/arrays.ts';
import { databaseNow } from '../../postgres/sql/database-now.ts';
import type { Transaction } from '../../postgres/executor.ts';
import type { Effect } from '../effects/effect-rows.ts';
import { lockFreeSchedules } from '../schedules/search/lock-free-schedules.ts';
import { type BrokenScheduleRow, readBreakingRuns, readBrokenSchedules } from './broken-schedules.ts';
import { NO_MESSAGES, type RecordedMessages } from './record-messages.ts';
import { lockTellers, tell } from './tell-notifiers.ts';

export interface ChangedAlert {
  scheduleId: string;
  kind: AlertKind;
}

interface AppliedCauses {
  /** Another transaction has locked the schedule, or a notifier that is to be told. */
  unfinished: readonly Effect[];
  /** One transaction records no more messages: of these schedules nothing is decided yet. */
  later: readonly Effect[];
  opened: ChangedAlert[];
  closed: ChangedAlert[];
  /** Messages that it recorded. */
  messages: RecordedMessages;
}

/** An episode that is opened here. */
interface NewAlert {
  id: string;
  schedule: BrokenScheduleRow;
  kind: AlertKind;
  since: Instant;
  brokenAt: Instant;
  runId: string | null;
  run: BreakingRun | null;
  /** Of fires that were missed. */
  count: number;
}

/** A schedule with what its causes make of its episodes. */
interface JudgedSchedule {
  schedule: BrokenScheduleRow;
  judged: Judged;
  opened: NewAlert[];
}

/**
 * Opens and closes episodes for these effects, and records in the same transaction the messages that tell of it. Of each schedule one
 * transaction decides at a time, under the lock of its row: so no episode of a kind is opened twice, and an edit that pauses or deletes the
 * schedule comes wholly before or after.
 */
export async function applyCauses(
  tx: Transaction,
  effects: readonly Effect[],
  publicUrl: string | null,
): Promise<AppliedCauses> {
  if (effects.length === 0) return NOTHING;
  const { free, locked } = await lockFreeSchedules(tx, [
    ...new Set(effects.map(({ scheduleUid }) => scheduleUid)),
  ]);
  const judged = await judge(tx, effects, free);
  const { toldOf, told, notifiers, busy } = await lockTellers(tx, judged);
  const isBusy = ({ schedule }: JudgedSchedule) => (told.get(schedule.uid) ?? []).some((id) => busy.has(id));
  const waiting = new Set([...locked, ...judged.filter(isBusy).map(({ schedule }) => schedule.uid)]);
  const ready = judged.filter((one) => !isBusy(one));
  const decided = asManyAsOneTakes(ready, ({ schedule }) => told.get(schedule.uid)?.length ?? 0);
  const later = new Set(ready.slice(decided.length).map(({ schedule }) => schedule.uid));
  const now = await databaseNow(tx);
  await openAlerts(
    tx,
    decided.flatMap(({ opened }) => opened),
    now,
  );
  await breakAgain(tx, decided);
  // Before they are told of: a message that is closed at once says until when it was.
  await closeAlerts(tx, decided);
  const messages = await tell(tx, decided, { notifiers, toldOf }, { now, publicUrl });
  return {
    unfinished: effects.filter(({ scheduleUid }) => waiting.has(scheduleUid)),
    later: effects.filter(({ scheduleUid }) => later.has(scheduleUid)),
    opened: decided.flatMap(({ opened }) => opened.map(changedOf)),
    closed: decided.flatMap(({ schedule, judged: { closed } }) =>
      closed.map(({ kind }) => changedOf({ schedule, kind })),
    ),
    messages,
  };
}

const NOTHING: AppliedCauses = { unfinished: [], later: [], opened: [], closed: [], messages: NO_MESSAGES };

/** Of each takes some KiB: what it says. */
const MOST_MESSAGES = 1_000;

/** At least one. */
function asManyAsOneTakes<One>(all: readonly One[], messagesOf: (one: One) => number): One[] {
  let messages = 0;
  const end = all.findIndex((one, index) => (messages += messagesOf(one)) > MOST_MESSAGES && index > 0);
  return end === -1 ? [...all] : all.slice(0, end);
}

function changedOf({ schedule, kind }: Pick<NewAlert, 'schedule' | 'kind'>): ChangedAlert {
  return { scheduleId: schedule.id, kind };
}

/** What is of a deleted schedule is left out. */
async function judge(
  tx: Transaction,
  effects: readonly Effect[],
  free: readonly string[],
): Promise<JudgedSchedule[]> {
  const causes = Map.groupBy(effects.filter(isCause), ({ scheduleUid }) => scheduleUid);
  const failures = [...causes].flatMap(([uid, of]) => {
    const failed = of.filter(({ kind, alertKind }) => kind === 'breaks' && alertKind === 'failed');
    return failed.length === 0
      ? []
      : [[uid, Math.max(...failed.map(({ finishedAt }) => finishedAt))] as const];
  });
  const schedules = await readBrokenSchedules(tx, free, new Map(failures));
  const verdicts = [...schedules.values()].map((schedule) => ({
    schedule,
    judged: judgeCauses(schedule, (causes.get(schedule.uid) ?? []).map(toCause)),
  }));
  const runs = await readBreakingRuns(
    tx,
    verdicts.flatMap(({ judged }) => judged.opened.flatMap(({ cause: { runId } }) => runId ?? [])),
  );
  return verdicts.map(({ schedule, judged }) => ({
    schedule,
    judged,
    opened: judged.opened.map(({ cause: { alertKind, at, runId, count }, brokenAt }) => {
      const run = runs.get(runId ?? '') ?? null;
      // What was missed first may be long ago.
      const since = alertKind === 'missed' && run ? (run.coalescedFrom ?? run.scheduledFor) : at;
      return { id: randomRunId(at), schedule, kind: alertKind, since, brokenAt, runId, run, count };
    }),
  }));
}

type CauseEffect = Effect & { kind: 'breaks' | 'heals'; alertKind: AlertKind };

function isCause(effect: Effect): effect is CauseEffect {
  return (effect.kind === 'breaks' || effect.kind === 'heals') && effect.alertKind !== null;
}

function toCause({ kind, alertKind, finishedAt, runId, attempt }: CauseEffect): Cause {
  return { kind, alertKind, at: finishedAt, runId: runId === '' ? null : runId, count: attempt };
}

/** When it is looked at whether it is over, where no effect tells so, or one may have been written too early. */
const FIRST_LOOK_MS: Partial<Record<AlertKind, number>> = { failed: 20_000, missed: 1_000, error: 4_000 };

async function openAlerts(tx: Transaction, opened: readonly NewAlert[], now: Instant): Promise<void> {
  if (opened.length === 0) return;
  const lookAt = ({ kind }: NewAlert) => {
    const after = FIRST_LOOK_MS[kind];
    return after === undefined ? null : now + after;
  };
  await tx.execute(sql`-- openAlerts
    INSERT INTO alerts (id, schedule_uid, schedule_id, kind, since, broken_at, run_id, status, error, look_at)
    SELECT * FROM unnest(${uuids(opened.map(({ id }) => id))}, ${uuids(opened.map(({ schedule }) => schedule.uid))},
      ${texts(opened.map(({ schedule }) => schedule.id))}, ${texts(opened.map(({ kind }) => kind))},
      ${instants(opened.map(({ since }) => since))}, ${instants(opened.map(({ brokenAt }) => brokenAt))},
      ${uuids(opened.map(({ runId }) => runId))}, ${texts(opened.map(({ run }) => run?.status ?? null))},
      ${texts(opened.map(({ kind, schedule, ...broken }) => whatIsWrong(kind, broken, schedule)))}, ${instants(opened.map(lookAt))})`);
}

async function breakAgain(tx: Transaction, decided: readonly JudgedSchedule[]): Promise<void> {
  const again = decided.flatMap(({ judged: { brokenAgain } }) => brokenAgain);
  if (again.length === 0) return;
  await tx.execute(sql`-- breakAgain
    UPDATE alerts SET broken_at = b.at
    FROM unnest(${uuids(again.map(({ id }) => id))}, ${instants(again.map(({ brokenAt }) => brokenAt))}) AS b(id, at)
    WHERE alerts.id = b.id`);
}

async function closeAlerts(tx: Transaction, decided: readonly JudgedSchedule[]): Promise<void> {
  const closed = decided.flatMap(({ judged }) => judged.closed);
  if (closed.length === 0) return;
  const ids = uuids(closed.map(({ id }) => id));
  await tx.execute(sql`-- closeAlerts
    UPDATE alerts SET until = greatest(c.until, alerts.since), look_at = NULL
    FROM unnest(${ids}, ${instants(closed.map(({ until }) => until))}) AS c(id, until) WHERE alerts.id = c.id`);
  await tx.execute(sql`-- closeAlerts
    DELETE FROM alert_tellings WHERE alert_id = ANY (${ids})`);
}
