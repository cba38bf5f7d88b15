/**
 * Guarantees: fires due before an edit are recorded under the old definition, also an occurrence that only waits for its jitter.
 * Transaction: that of the edit, under the row locks it holds.
 * If the process dies here: nothing of the edit is written, this included.
 */
import { setImmediate } from 'node:timers/promises';
import type { Calendars } from '../core/exclusions/calendar-history.ts';
import type { Instant } from '../core/instant.ts';
import { cursorUnder, movesTimes } from '../core/schedules/definition-change.ts';
import { newRun } from '../core/runs/new-run.ts';
import type { RunRecord } from '../core/runs/run-record.ts';
import { PRIORITY_RANK, type Schedule, type Target } from '../core/schedules/schedule.ts';
import {
  type Plan,
  type PlannedFire,
  horizonOf,
  lastFireOf,
  plannedFire,
  walkDue,
} from '../core/time/plan-due.ts';
import { fireTimes } from '../core/time/fire-times.ts';
import { NotNow } from '../postgres/errors.ts';
import type { Transaction } from '../postgres/executor.ts';
import { type Intent, intentOf } from '../store/runs/intents/intent.ts';
import { recordRuns } from '../store/runs/save-runs.ts';
import type { ScheduleWrite } from '../store/schedules/write-schedules.ts';

export interface Edited {
  /** As it stands; null: it is created. */
  schedule: Schedule | null;
  /** What it is to be; its cursor and last fire are set here, behind what is recorded. Null: nothing changes. */
  write: ScheduleWrite | null;
}

interface Planning {
  now: Instant;
  retentionDays: number;
  /** The histories of all calendars that the old and the new definitions name. */
  calendars: Calendars;
}

/** Answers how many effects it wrote. What must not overlap is recorded as waiting, for the caller to judge. */
export async function planBeforeUpdate(
  tx: Transaction,
  edited: readonly Edited[],
  { now, retentionDays, calendars, laneOf }: Planning & { laneOf: (target: Target) => string },
): Promise<{ effects: number; recorded: number }> {
  const due: RunRecord[] = [];
  for (const { schedule, write } of edited) {
    // What a paused schedule has for its next is kept, not due.
    if (!schedule?.definition.enabled || !write) continue;
    if (schedule.nextOccurrenceAt === null || schedule.nextOccurrenceAt > now) continue;
    const plan = await planWholly(schedule, schedule.nextOccurrenceAt, { now, retentionDays, calendars });
    if (!plan) continue;
    const moved = movesTimes(schedule.definition, write.definition);
    const fires = moved && write.definition.enabled ? [...plan.fires, ...delayed(plan, now)] : plan.fires;
    const lane = laneOf(schedule.definition.target);
    for (const fire of fires) due.push(runOf(schedule, lane, intentOf(schedule.uid, fire), now));
    write.lastFireAt = lastFireOf({ ...plan, fires }) ?? write.lastFireAt;
    write.plannedThrough = fires.at(-1)?.scheduledFor ?? write.plannedThrough;
    const planned = { definition: schedule.definition, nextOccurrenceAt: plan.nextOccurrenceAt };
    Object.assign(write, cursorUnder(write.definition, planned, schedule, now, calendars));
  }
  const { effects, ids } = await recordRuns(tx, due);
  return { effects, recorded: ids.size };
}

/** Under the definition that the schedule still has. */
function runOf(
  { uid, id: scheduleId, version, definition }: Schedule,
  lane: string,
  { skipped, ...fire }: Omit<Intent, 'claimed'>,
  now: Instant,
): RunRecord {
  const mayOverlap = definition.overlap === 'allow';
  const schedule = { scheduleUid: uid, scheduleId, scheduleVersion: version };
  const route = { lane, priority: PRIORITY_RANK[definition.priority], overlapGuarded: !mayOverlap };
  const ended = { status: 'skipped', reason: skipped, finishedAt: now, overlapGuarded: false } as const;
  const open = { status: mayOverlap ? 'pending' : 'waiting' } as const;
  return newRun({ ...fire, ...schedule, ...route, ...(skipped === null ? open : ended) }, now);
}

/** The occurrence whose moment has come and whose jitter has not passed: the new definition may not know of it. */
function delayed({ nextOccurrenceAt, nextFireAt }: Plan, now: Instant): PlannedFire[] {
  if (nextOccurrenceAt === null || nextFireAt === null || nextOccurrenceAt > now) return [];
  return [plannedFire({ at: nextOccurrenceAt, dueAt: nextFireAt }, 'schedule')];
}

const SLICE_STEPS = 200;
/** Rows are locked meanwhile, so it must not take long: half a second or so. */
const MAX_SLICES = 100;

/**
 * Null if the old definition cannot be planned: then the edit mends it.
 * @throws NotNow if too much was missed: the tick plans it, in its own time.
 */
async function planWholly(
  schedule: Schedule,
  from: Instant,
  { now, retentionDays, calendars }: Planning,
): Promise<Plan | null> {
  try {
    const { definition, plannedThrough } = schedule;
    const period = { now, horizon: horizonOf(now, retentionDays), plannedThrough };
    const walk = walkDue(fireTimes(definition, schedule, calendars), definition, from, period);
    for (let slice = 0; slice < MAX_SLICES; slice += 1) {
      let steps = 0;
      const plan = walk.step(() => (steps += 1) <= SLICE_STEPS);
      if (plan?.isPartial) break;
      if (plan) return plan;
      await setImmediate();
    }
  } catch {
    return null;
  }
  // It cannot be planned as its row is: no instance is catching up with it, and the edit is what mends it.
  if (schedule.error !== null) return null;
  throw new NotNow(
    `schedule ${schedule.id} has missed more than can be planned at once; it is being caught up with`,
  );
}
