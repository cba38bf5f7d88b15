/**
 * Guarantees: what is due of a schedule is recorded before a report about it is matched, as an edit would record it; instances that plan
 *   it at the same time write nothing of their plan.
 * Transaction: that of the report, under the schedule's row lock.
 * If the process dies here: nothing is written.
 */
import { fireTimes } from '../../core/time/fire-times.ts';
import { following, plannedFire } from '../../core/time/plan-due.ts';
import type { Instant } from '../../core/instant.ts';
import type { RunRecord } from '../../core/runs/run-record.ts';
import { isObservedAt } from '../../core/schedules/observe.ts';
import type { Schedule } from '../../core/schedules/schedule.ts';
import type { Work } from '../../runtime/loop/wake.ts';
import type { Transaction } from '../../postgres/executor.ts';
import { databaseNow } from '../../postgres/sql/rows.ts';
import type { KnownCalendars } from '../../store/calendars/calendar-histories.ts';
import { intentOf } from '../../store/runs/intents/intent.ts';
import { judgeOverlapsNowOrSoon, workOf } from '../../store/runs/overlaps.ts';
import { moveOnUnderLock, type ScheduleWrite } from '../../store/schedules/write-schedules.ts';
import { deletePlannedSkips, type Skips, skipsOf } from '../../store/schedules/skips.ts';
import { shareCalendarsOf } from '../calendars/named-calendars.ts';
import { planBeforeUpdate } from '../schedules/plan-before-update.ts';
import { runOfEdit } from '../schedules/runs-of-edits.ts';
import { planningOf, type ScheduleChangeDeps } from '../schedules/schedule-changes.ts';
import { asWrite } from '../schedules/schedule-writes.ts';

/** The first moment that has no run yet: observed, and to be made. */
export interface MomentAhead {
  dueAt: Instant;
  /** As it would be recorded now. */
  run: RunRecord;
  /** Has planning go on after it. */
  moveOn: () => Promise<void>;
}

export async function recordWhatIsDue(
  tx: Transaction,
  deps: ScheduleChangeDeps,
  schedule: Schedule,
): Promise<{ ahead: MomentAhead | null; work: Work }> {
  const calendars = await shareCalendarsOf(tx, [schedule]);
  const now = await databaseNow(tx);
  const write = asWrite(schedule, null);
  const skips = await skipsOf(tx, schedule.hasSkips ? [schedule.uid] : []);
  const planning = { ...planningOf(deps, now, calendars), skips };
  const { effects, recorded } = await planBeforeUpdate(tx, [{ schedule, write }], planning);
  const work: Work = { effects, toClaim: recorded };
  if (write.nextOccurrenceAt !== schedule.nextOccurrenceAt) {
    await moveOn(tx, schedule, write);
    // What is not observed any more may have to wait for others.
    if (schedule.definition.overlap !== 'allow' && recorded > 0) {
      const judged = workOf(await judgeOverlapsNowOrSoon(tx, [schedule.uid]));
      Object.assign(work, judged, { effects: effects + (judged.effects ?? 0), toClaim: recorded });
    }
  }
  const given = { write, calendars, skips: skips.get(schedule.uid) ?? new Map<never, never>(), now };
  return { ahead: momentAhead(tx, schedule, given), work };
}

async function moveOn(tx: Transaction, { uid, hasSkips }: Schedule, write: ScheduleWrite): Promise<void> {
  await moveOnUnderLock(tx, write);
  if (hasSkips) await deletePlannedSkips(tx, [uid]);
}

function momentAhead(
  tx: Transaction,
  schedule: Schedule,
  {
    write,
    calendars,
    skips,
    now,
  }: { write: ScheduleWrite; calendars: KnownCalendars; skips: Skips; now: Instant },
): MomentAhead | null {
  const { nextOccurrenceAt: at, nextFireAt: dueAt } = write;
  const { observe } = schedule.definition;
  if (schedule.status !== 'active' || at === null || dueAt === null || dueAt <= now) return null;
  if (!isObservedAt(observe, at) || skips.has(at)) return null;
  const intent = intentOf(schedule.uid, plannedFire({ at, dueAt }, 'schedule'));
  return {
    dueAt,
    run: runOfEdit(schedule, intent, { now, inMaintenance: false }),
    moveOn: async () => {
      const times = fireTimes(schedule.definition, schedule, calendars.histories);
      const next = following(times, at);
      const nextFireAt = next === null ? null : times.dueAt(next);
      const moved = { ...write, plannedThrough: at, lastFireAt: at, nextOccurrenceAt: next, nextFireAt };
      await moveOn(tx, schedule, moved);
    },
  };
}
