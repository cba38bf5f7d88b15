/**
 * Guarantees: what is due of a schedule is recorded before a report about it is matched, as an edit would record it, and also during
 *   maintenance, as far as it is observed; instances that plan it at the same time write nothing of their plan.
 * Transaction: that of the report, under the schedule's row lock.
 * If the process dies here: nothing is written.
 */
import { following, plannedFire } from '../../core/time/plan-due.ts';
import type { Instant } from '../../core/instant.ts';
import type { RunRecord } from '../../core/runs/run-record.ts';
import { AHEAD_MS } from '../../core/runs/observed-report.ts';
import { type Schedule, isObservedAt } from '../../core/schedules/schedule.ts';
import type { Work } from '../../runtime/loop/wake.ts';
import type { Transaction } from '../../postgres/executor.ts';
import { databaseNow } from '../../postgres/sql/rows.ts';
import type { KnownCalendars } from '../../store/calendars/calendar-histories.ts';
import { intentOf } from '../../store/runs/intents/intent.ts';
import { judgeOverlapsNowOrSoon, workOf } from '../../store/runs/overlaps.ts';
import { type ScheduleWrite, moveOnUnderLock } from '../../store/schedules/write-schedules.ts';
import { deletePlannedSkips, type Skips, skipsOf } from '../../store/schedules/skips.ts';
import { shareCalendarsOf, timesOrNull } from '../calendars/named-calendars.ts';
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
  asOf: Instant,
): Promise<{ ahead: MomentAhead | null; work: Work; now: Instant }> {
  const calendars = await shareCalendarsOf(tx, [schedule]);
  const write = asWrite(schedule, null);
  const skips = await skipsOf(tx, schedule.hasSkips ? [schedule.uid] : []);
  const planning = { ...planningOf(deps, asOf, calendars), skips };
  const { effects, recorded } = await planBeforeUpdate(tx, [{ schedule, write, isReported: true }], planning);
  const work: Work = { effects, toClaim: recorded };
  if (write.nextOccurrenceAt !== schedule.nextOccurrenceAt) {
    await moveOn(tx, schedule, write);
    // What is not observed any more may have to wait for others.
    if (schedule.definition.overlap !== 'allow' && recorded > 0) {
      const judged = workOf(await judgeOverlapsNowOrSoon(tx, [schedule.uid]));
      Object.assign(work, judged, { effects: effects + (judged.effects ?? 0), toClaim: recorded });
    }
  }
  const given = { write, calendars, skips: skips.get(schedule.uid) ?? new Map<never, never>(), now: asOf };
  // To record much takes its time.
  return { ahead: momentAhead(tx, schedule, given), work, now: recorded > 0 ? await databaseNow(tx) : asOf };
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
  const { nextOccurrenceAt: at } = write;
  const { definition } = schedule;
  if (schedule.status !== 'active' || at === null || at > now + AHEAD_MS) return null;
  if (!isObservedAt(definition.observe, at) || skips.has(at)) return null;
  // Not as it is stored: an edit of a calendar may have moved the moment since.
  const times = timesOrNull(schedule, calendars);
  const dueAt = times?.dueAt(at) ?? now;
  if (!times || dueAt <= now) return null;
  const intent = intentOf(schedule.uid, plannedFire({ at, dueAt }, 'schedule'));
  return {
    dueAt,
    run: runOfEdit(schedule, intent, { now, inMaintenance: false }),
    moveOn: async () => {
      const next = following(times, at);
      const nextFireAt = next === null ? null : times.dueAt(next);
      const moved = { ...write, plannedThrough: at, lastFireAt: at, nextOccurrenceAt: next, nextFireAt };
      await moveOn(tx, schedule, moved);
    },
  };
}
