/**
 * Guarantees: fires due before an edit are recorded under the old definition, also an occurrence that only waits for its jitter.
 *   During maintenance none of them starts before it is over.
 * Transaction: that of the edit, under the row locks it has.
 * If the process dies here: nothing of the edit is written, this included.
 */
import { setImmediate } from 'node:timers/promises';
import type { Calendars } from '../../core/exclusions/exclusion.ts';
import type { Instant } from '../../core/instant.ts';
import { cursorUnder, movesTimes } from '../../core/time/definition-change.ts';
import type { RunRecord } from '../../core/runs/run-record.ts';
import type { Schedule, ScheduleTarget } from '../../core/schedules/schedule.ts';
import {
  type Plan,
  type PlannedFire,
  horizonOf,
  lastFireOf,
  plannedFire,
  skippedFires,
  walkDue,
} from '../../core/time/plan-due.ts';
import { type FireTimes, fireTimes } from '../../core/time/fire-times.ts';
import { NotNow } from '../../postgres/errors.ts';
import type { Transaction } from '../../postgres/executor.ts';
import { holdRuns } from '../../store/runs/runs-of-edits.ts';
import { readInstallation } from '../../store/instances/installation-row.ts';
import { type AlertCause, writeAlertEffects } from '../../store/alerts/alert-effects.ts';
import { intentOf, wasMissed } from '../../store/runs/intents/intent.ts';
import { recordRuns } from '../../store/runs/lock-and-save.ts';
import type { Skips } from '../../store/schedules/skips.ts';
import type { ScheduleWrite } from '../../store/schedules/write-schedules.ts';
import { MISSED_AT_ONCE, owedOf, runOfEdit, runsOwed } from './runs-of-edits.ts';

export interface Edited {
  /** The present schedule; null: it is being created. */
  schedule: Schedule | null;
  /** The new schedule; its cursor and last fire are set here, after the recorded fires. Null: nothing changes. */
  write: ScheduleWrite | null;
  /** Fires of the new schedule that the edit moved to moments that have passed; they are recorded with the edit, as `catchUp` says. */
  owed?: readonly Instant[];
  /** The schedule is being deleted. */
  isDeleted?: boolean;
  /** Nothing changes: its job, which another scheduler runs, reports. */
  isReported?: boolean;
}

interface Planning {
  now: Instant;
  retentionDays: number;
  /** Not as it is stored: an edit also mends a row that the database refuses to fire. */
  laneOf: (target: ScheduleTarget, id: string) => string;
  /** The histories of all calendars that the old and the new definitions name. */
  calendars: Calendars;
  /** By uid: fires that are not to be made. */
  skips: ReadonlyMap<string, Skips>;
}

/**
 * Answers how many effects it wrote. What must not overlap is recorded as waiting, for the caller to judge.
 *
 * Maintenance keeps back what is due. An edit that leaves the fire times where they are leaves it to the tick after the maintenance. Any
 * other (a pause or a deletion too) decides at once: all that is due counts as missed, `catchUp` says which runs are recorded, and
 * they wait until the maintenance is over. A report records what is observed as ever, since nothing of it is sent.
 */
export async function planBeforeUpdate(
  tx: Transaction,
  edited: readonly Edited[],
  { now, retentionDays, laneOf, skips, calendars }: Planning,
): Promise<{ effects: number; recorded: number }> {
  const due: RunRecord[] = [];
  const dueNow = edited.flatMap((one) => dueOf(one, now) ?? []);
  const owing = await owedOf(tx, edited);
  if (dueNow.length + owing.length === 0) return { effects: 0, recorded: 0 };
  const inMaintenance = (await readInstallation(tx)).mode !== 'works';
  for (const { schedule, write, nextOccurrenceAt, isDeleted, isReported } of dueNow) {
    const moved = movesTimes(schedule.definition, write.definition);
    const isKeptBack = inMaintenance && !moved && write.definition.enabled && !isDeleted;
    const until = isKeptBack ? observedUntil(schedule, isReported) : Infinity;
    if (nextOccurrenceAt >= until) continue;
    const skipped: Skips = skips.get(schedule.uid) ?? new Map<never, never>();
    const period = { now, until, retentionDays, inMaintenance, isReported, skips: skipped, calendars };
    const plan = await planWholly(schedule, nextOccurrenceAt, period);
    if (!plan) continue;
    const fires = moved && write.definition.enabled ? [...plan.fires, ...delayed(plan, now, skipped)] : plan.fires;
    const routed = { ...schedule, lane: laneOf(schedule.definition.target, schedule.id) };
    for (const fire of fires) due.push(runOfEdit(routed, intentOf(schedule.uid, fire), { now, inMaintenance }));
    write.lastFireAt = lastFireOf({ ...plan, fires }) ?? write.lastFireAt;
    write.plannedThrough = fires.at(-1)?.scheduledFor ?? write.plannedThrough;
    const planned = { definition: schedule.definition, nextOccurrenceAt: plan.nextOccurrenceAt };
    Object.assign(write, cursorUnder(write.definition, planned, schedule, now, calendars));
  }
  // What an edit owes was not missed: nobody is told.
  const all = [...due, ...owing.flatMap((one) => runsOwed(one, { now, retentionDays, laneOf, inMaintenance }))];
  const { effects, ids } = await recordRuns(tx, all);
  const told = await writeAlertEffects(tx, missedCauses(due));
  if (inMaintenance) await holdWaiting(tx, all, ids);
  return { effects: effects + told, recorded: ids.size };
}

async function holdWaiting(tx: Transaction, runs: readonly RunRecord[], recorded: ReadonlySet<string>): Promise<void> {
  const open = runs.filter(({ id, status }) => status === 'waiting' && recorded.has(id));
  await holdRuns(
    tx,
    open.map(({ id }) => id),
  );
}

/** One for each schedule of which fires were missed. */
function missedCauses(due: readonly RunRecord[]): AlertCause[] {
  const missed = due.filter(({ reason, ...run }) => wasMissed({ ...run, skipped: reason }));
  return [...Map.groupBy(missed, ({ scheduleUid }) => scheduleUid)].flatMap(([uid, runs]) => {
    const [first] = runs;
    if (!first) return [];
    const own = ({ status, trigger }: RunRecord) => (status === 'skipped' || trigger === 'catchUp' ? 1 : 0);
    return [
      {
        ...{ kind: 'breaks', alertKind: 'missed', runId: first.id, status: first.status },
        schedule: { uid, id: first.scheduleId, version: first.scheduleVersion },
        at: runs.at(-1)?.scheduledFor ?? first.scheduledFor,
        count: runs.reduce((sum, run) => sum + run.coalesced + own(run), 0),
      },
    ];
  });
}

/** Null: nothing changes, or nothing is due. The next fire of a paused schedule is kept, not due. */
function dueOf({ schedule, write, isDeleted = false, isReported = false }: Edited, now: Instant) {
  if (!schedule?.definition.enabled || !write) return null;
  const { nextOccurrenceAt } = schedule;
  if (nextOccurrenceAt === null || nextOccurrenceAt > now) return null;
  return { schedule, write, nextOccurrenceAt, isDeleted, isReported };
}

/** What maintenance keeps back is only what is sent; an edit leaves the rest to the tick, too. */
function observedUntil({ definition: { observe } }: Schedule, isReported: boolean): Instant {
  return isReported && observe !== null ? (observe.until ?? Infinity) : -Infinity;
}

/** The occurrence whose moment has come and whose jitter has not passed: the new definition may not contain it. */
function delayed({ nextOccurrenceAt, nextFireAt }: Plan, now: Instant, skips: Skips): PlannedFire[] {
  if (nextOccurrenceAt === null || nextFireAt === null || nextOccurrenceAt > now) return [];
  const due = { at: nextOccurrenceAt, dueAt: nextFireAt };
  const skip = skips.get(due.at);
  return skip ? skippedFires(due, skip) : [plannedFire(due, 'schedule')];
}

const SLICE_STEPS = 200;
/** Rows are locked meanwhile, so it must not take longer than half a second or so. */
const MAX_SLICES = 100;
/** No tick waits for these rows, and none catches up in its own time: a day of missed seconds takes some seconds. */
const MAX_SLICES_IN_MAINTENANCE = 435;

interface WholePeriod extends Pick<Planning, 'now' | 'retentionDays' | 'calendars'> {
  /** Exclusive; the plan goes on from there. */
  until: Instant;
  inMaintenance: boolean;
  isReported: boolean;
  skips: Skips;
}

/**
 * Null if the old definition cannot be planned: then the edit mends it.
 * @throws NotNow if too much was missed: the tick plans it, in its own time.
 */
async function planWholly(
  schedule: Schedule,
  from: Instant,
  { now, until, retentionDays, inMaintenance, isReported, skips, calendars }: WholePeriod,
): Promise<Plan | null> {
  try {
    const { definition, plannedThrough } = schedule;
    const period = { now, horizon: horizonOf(now, retentionDays), plannedThrough, skips };
    const asked = definition.observe === null ? definition : { ...definition, expiresAfterSeconds: null };
    const policy = inMaintenance && !isReported ? { ...asked, ...MISSED_AT_ONCE } : asked;
    const times = fireTimes(definition, schedule, calendars);
    const walk = walkDue(endingAt(times, until), policy, from, period);
    const slices = inMaintenance ? MAX_SLICES_IN_MAINTENANCE : MAX_SLICES;
    for (let slice = 0; slice < slices; slice += 1) {
      let steps = 0;
      const plan = walk.step(() => (steps += 1) <= SLICE_STEPS);
      if (plan?.isPartial) break;
      if (plan) return goingOn(plan, times, until);
      await setImmediate();
    }
  } catch {
    return null;
  }
  // The schedule cannot be planned as its row is: no instance is catching up with it, and the edit mends it.
  if (schedule.error !== null) return null;
  throw new NotNow(
    `schedule ${schedule.id} has missed more fires than can be planned at once; ` +
      (inMaintenance ? 'they are planned once maintenance is over' : 'they are being planned now'),
  );
}

function endingAt(times: FireTimes, until: Instant): FireTimes {
  if (until === Infinity) return times;
  const next = (after: Instant) => {
    const at = times.next(after);
    return at !== null && at < until ? at : null;
  };
  return { ...times, next };
}

/** The cursor of a plan that ends before `until`. */
function goingOn(plan: Plan, times: FireTimes, until: Instant): Plan {
  if (until === Infinity || plan.nextOccurrenceAt !== null) return plan;
  const at = times.next(until - 1);
  return { ...plan, nextOccurrenceAt: at, nextFireAt: at === null ? null : times.dueAt(at) };
}
