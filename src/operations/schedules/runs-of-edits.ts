/**
 * Guarantees: a fire that an edit owes is recorded once, also where an earlier definition has made it.
 * Transaction: that of the edit, under the row locks it has.
 * If the process dies here: nothing of the edit is written, this included.
 */
import type { Instant } from '../../core/instant.ts';
import { boundsOf } from '../../core/runs/bounds.ts';
import { UNGUARDED, asObserved, newRun, runOfSchedule } from '../../core/runs/new-run.ts';
import { plannedRunId } from '../../core/runs/run.ts';
import type { RunRecord } from '../../core/runs/run-record.ts';
import { type Schedule, type ScheduleTarget, isObservedAt } from '../../core/schedules/schedule.ts';
import { type PlannedFire, horizonOf, walkDue } from '../../core/time/plan-due.ts';
import type { Transaction } from '../../postgres/executor.ts';
import { presentAmong } from '../../store/runs/lock-and-save.ts';
import { type Intent, errorOfSkip, intentOf } from '../../store/runs/intents/intent.ts';
import type { ScheduleWrite } from '../../store/schedules/write-schedules.ts';

interface Owing {
  schedule: Schedule;
  write: ScheduleWrite;
  owed: readonly Instant[];
}

interface MayOwe {
  schedule: Schedule | null;
  write: ScheduleWrite | null;
  owed?: readonly Instant[];
}

/** Those that owe a fire which has no run yet. */
export async function owedOf(tx: Transaction, edited: readonly MayOwe[]): Promise<Owing[]> {
  const owing = edited.flatMap(({ schedule, write, owed = [] }) =>
    schedule && write && owed.length > 0 ? [{ schedule, write, owed }] : [],
  );
  const ids = owing.flatMap(({ schedule, owed }) => owed.map((at) => plannedRunId(schedule.uid, at)));
  const made = new Set<string>();
  for (let first = 0; first < ids.length; first += MAX_ASKED)
    for (const id of await presentAmong(tx, ids.slice(first, first + MAX_ASKED))) made.add(id);
  return owing.flatMap((one) => {
    const left = withoutRun(one, made);
    return left.length > 0 ? [{ ...one, owed: left }] : [];
  });
}

/** Each is looked up in each day of history. */
const MAX_ASKED = 10_000;

/** Of the fires that it owes, in order, those that have no run: an earlier definition, or a try before, may have made some. */
function withoutRun({ schedule, write, owed }: Owing, made: ReadonlySet<string>): Instant[] {
  const { uid, createdAt, definition } = schedule;
  const isMade = (at: Instant) => made.has(plannedRunId(uid, at));
  const newest = owed.at(-1);
  // Where no earlier definition can have made it, a try before did: it stands for the others.
  const mayStandForAll =
    newest !== undefined && newest > (definition.kept?.since ?? createdAt) && write.definition.catchUp !== 'all';
  return mayStandForAll && isMade(newest) ? [] : owed.filter((at) => !isMade(at));
}

interface Recording {
  now: Instant;
  retentionDays: number;
  laneOf: (target: ScheduleTarget, id: string) => string;
  inMaintenance: boolean;
}

/** What `catchUp` makes of fires whose moments an edit chose after they had passed, under the new definition. */
export function runsOwed({ schedule, write, owed }: Owing, recording: Recording): RunRecord[] {
  const { now, retentionDays, laneOf, inMaintenance } = recording;
  const { definition, version } = write;
  const next = (after: Instant) => owed.find((at) => at > after) ?? null;
  const times = { next, nextOnAnyDay: next, dueAt: (at: Instant) => at, ...NOTHING_SAID };
  const policy = inMaintenance ? { ...definition, ...MISSED_AT_ONCE } : definition;
  const period = { now, horizon: horizonOf(now, retentionDays), plannedThrough: null };
  const walk = walkDue(times, policy, owed[0] ?? null, period);
  const fires: PlannedFire[] = [];
  for (let plan = walk.step(() => true); plan; plan = plan.isPartial ? walk.step(() => true) : null)
    fires.push(...plan.fires);
  write.lastFireAt = latest(write.lastFireAt, fires.findLast(({ skipped }) => skipped === null)?.scheduledFor);
  write.plannedThrough = latest(write.plannedThrough, fires.at(-1)?.scheduledFor);
  const routed = { ...schedule, version, definition, lane: laneOf(definition.target, schedule.id) };
  return fires.map((fire) => runOfEdit(routed, intentOf(schedule.uid, fire), { now, inMaintenance }));
}

/** Every due fire counts as missed: maintenance may keep it back for very long. */
export const MISSED_AT_ONCE = { graceSeconds: -1 };

const NOTHING_SAID = { excludedBy: () => null, noteOf: () => null, moveOf: () => null };

function latest(some: Instant | null, other: Instant | undefined): Instant | null {
  return other === undefined || (some !== null && some > other) ? some : other;
}

/** Of a schedule as it is, or as it is written. */
export function runOfEdit(
  schedule: Schedule,
  { skipped, why = null, ...fire }: Omit<Intent, 'claimed'>,
  { now, inMaintenance }: Pick<Recording, 'now' | 'inMaintenance'>,
): RunRecord {
  const run = { ...runOfSchedule(schedule), ...fire };
  if (skipped !== null)
    return newRun(
      {
        ...run,
        ...UNGUARDED,
        status: 'skipped',
        reason: skipped,
        error: errorOfSkip({ why }),
        finishedAt: now,
      },
      now,
    );
  const { expect, observe, completionTimeoutSeconds } = schedule.definition;
  const bounds = boundsOf(expect, run.dueAt);
  // Nothing of it starts, whatever is open, and whether maintenance is on.
  const observed = asObserved(run.dueAt, completionTimeoutSeconds);
  if (isObservedAt(observe, run.scheduledFor))
    return newRun({ ...run, ...observed, ...bounds, status: 'pending' }, now);
  const status = run.overlapGuarded || inMaintenance ? 'waiting' : 'pending';
  return newRun({ ...run, ...bounds, status, overlapGuarded: run.overlapGuarded && !inMaintenance }, now);
}
