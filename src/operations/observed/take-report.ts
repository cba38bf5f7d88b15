/**
 * Guarantees: a report of an observed schedule's job is for exactly one run, or none, however many come at once and to whichever
 *   instance, as if what is due had been recorded before; a report that is answered is durable.
 * Transaction: one, under the schedule's row lock.
 * If the process dies here: all of it is written or nothing; a report that was not answered may be sent again.
 */
import {
  type Match,
  type ReportOutcome,
  type ToldReport,
  applyReport,
  hasTimedOut,
  matchOpenFirst,
  AHEAD_MS,
} from '../../core/runs/observed-report.ts';
import { type JudgedSuccess, boundsOf } from '../../core/runs/bounds.ts';
import { asObserved, newRun, runOfSchedule } from '../../core/runs/new-run.ts';
import { isEnd, randomRunId } from '../../core/runs/run.ts';
import type { RunRecord } from '../../core/runs/run-record.ts';
import type { Instant } from '../../core/instant.ts';
import { type Schedule, isObservedAt } from '../../core/schedules/schedule.ts';
import { type Work, wakeFor } from '../../runtime/loop/wake.ts';
import { TryAgain } from '../../postgres/errors.ts';
import type { Transaction } from '../../postgres/executor.ts';
import { writeBoundEffects } from '../../store/runs/bounds.ts';
import { lockRun, recordRuns, saveLockedRuns } from '../../store/runs/lock-and-save.ts';
import { endedFor, lockByPingKey, openFor } from '../../store/runs/observed.ts';
import { successBoundsOf } from '../../store/runs/run-to-act-on.ts';
import { findSchedule } from '../../store/schedules/search/find-schedules.ts';
import { type ScheduleChangeDeps, planningOf } from '../schedules/schedule-changes.ts';
import { judgedReport, settledOf } from '../runs/settled-by-report.ts';
import { following, plannedFire } from '../../core/time/plan-due.ts';
import { databaseNow } from '../../postgres/sql/rows.ts';
import type { KnownCalendars } from '../../store/calendars/calendar-histories.ts';
import { intentOf } from '../../store/runs/intents/intent.ts';
import { judgeOverlapsNowOrSoon, workOf } from '../../store/runs/overlaps.ts';
import { type ScheduleWrite, moveOnUnderLock } from '../../store/schedules/write-schedules.ts';
import { type Skips, deletePlannedSkips, skipsOf } from '../../store/schedules/skips.ts';
import { shareCalendarsOf, timesOrNull } from '../calendars/named-calendars.ts';
import { planBeforeUpdate } from '../schedules/plan-before-update.ts';
import { runOfEdit } from '../schedules/runs-of-edits.ts';
import { asWrite } from '../schedules/schedule-writes.ts';

interface Taken {
  outcome: ReportOutcome;
  /** The run that it ended; null: it ended none. */
  ended?: RunRecord | null;
  work?: Work;
}

/** `scheduleId`: of the schedule that the key must belong to; absent: of any. */
export async function takeReport(
  deps: ScheduleChangeDeps,
  keyHash: string,
  report: ToldReport,
  scheduleId?: string,
): Promise<ReportOutcome> {
  const { outcome, ended, work } = await deps.database.transaction(async (tx): Promise<Taken> => {
    const held = await lockByPingKey(tx, keyHash);
    const isMeant = held !== null && (scheduleId === undefined || scheduleId === held.id);
    return isMeant ? takeOf(tx, deps, held, report) : { outcome: 'unknown' };
  });
  if (work) wakeFor(deps.wake, work);
  if (ended) emitEnd(deps, ended);
  return outcome;
}

/** What is due and has no run is newer than all that have one: it is recorded where none of these decides. */
async function takeOf(
  tx: Transaction,
  deps: ScheduleChangeDeps,
  { uid, id, now }: { uid: string; id: string; now: Instant },
  report: ToldReport,
): Promise<Taken> {
  let read: Promise<RunRecord[]> | undefined;
  const readEnded = () => (read ??= endedFor(tx, uid, report));
  const open = await openFor(tx, uid, report);
  const known = await matchOpenFirst(report, { open, readEnded }, { now, nextDueAt: null });
  if (known.for === 'run' && !hasTimedOut(known.run)) return writeTo(tx, { report, now }, known.run);
  const schedule = await findSchedule(tx, id);
  if (!schedule) throw new Error(`schedule ${id} is not there, though its row is locked`);
  const due = await recordWhatIsDue(tx, deps, schedule, now);
  const isMore = (due.work.toClaim ?? 0) > 0;
  const runs = { open: isMore ? await openFor(tx, uid, report) : open, readEnded };
  const match = await matchOpenFirst(report, runs, { now: due.now, nextDueAt: due.ahead?.dueAt ?? null });
  const taken = await writeReport(tx, { schedule, ahead: due.ahead, report, now: due.now }, match);
  return { ...taken, work: { ...due.work, effects: (due.work.effects ?? 0) + (taken.work?.effects ?? 0) } };
}

interface Reported {
  schedule: Schedule;
  ahead: MomentAhead | null;
  report: ToldReport;
  now: Instant;
}

async function writeReport(tx: Transaction, told: Reported, match: Match<RunRecord>): Promise<Taken> {
  if (match.for === 'run') return writeTo(tx, told, match.run);
  if (match.for === 'dropped') return { outcome: 'dropped' };
  const { schedule, ahead, now } = told;
  const isNext = match.for === 'next' && ahead !== null;
  const made = isNext ? ahead.run : extraRun(schedule, now);
  if (isNext) await ahead.moveOn();
  await recordRuns(tx, [made]);
  const taken = await writeTo(tx, told, made);
  return { ...taken, outcome: isNext ? 'early' : 'extra' };
}

async function writeTo(
  tx: Transaction,
  { report, now }: Pick<Reported, 'report' | 'now'>,
  found: RunRecord,
): Promise<Taken> {
  const from = await lockRun(tx, found.id);
  // It has expired, or was cancelled, since it was found.
  if (from?.status !== found.status) throw new TryAgain(`run ${found.id} ended while a report about it came`);
  const applied = applyReport(from, report, now);
  if (applied === null) return { outcome: 'unchanged' };
  const { to, verdict } = applied;
  const success = await successOf(tx, { from, to, report });
  const effects = await saveLockedRuns(tx, [{ from, to, success }]);
  const judged = await writeBoundEffects(tx, verdict === null ? [] : [{ run: to, verdict }]);
  const ended = isEnd(to.status) ? to : null;
  return { outcome: isEnd(from.status) ? 'late' : 'taken', ended, work: { effects: effects + judged } };
}

/** What judges it. Of one without a start nobody knows how long it took. */
async function successOf(
  tx: Transaction,
  { from, to, report: { whole } }: { from: RunRecord; to: RunRecord; report: ToldReport },
): Promise<JudgedSuccess | null> {
  const bounds = to.status === 'succeeded' ? await successBoundsOf(tx, from) : null;
  const judged = judgedReport(bounds, whole === '' ? to.resultBody : whole);
  return judged && from.attempts === 0 ? { ...judged, atLeastSeconds: null } : judged;
}

/** A report without an occurrence. */
function extraRun(schedule: Schedule, now: Instant): RunRecord {
  const { expect, completionTimeoutSeconds } = schedule.definition;
  const own = { id: randomRunId(now), scheduledFor: now, dueAt: now, ...boundsOf(expect, now) };
  const observed = asObserved(now, completionTimeoutSeconds);
  return newRun({ ...runOfSchedule(schedule), ...own, ...observed, trigger: 'reported', status: 'pending' }, now);
}

function emitEnd({ events }: ScheduleChangeDeps, run: RunRecord): void {
  const { id: runId, scheduleId, attempts: attempt, status, error, finishedAt } = run;
  const settlement = settledOf(run, { status, error, finishedAt: finishedAt ?? 0 });
  events.emit({ type: 'runCompleted', runId, scheduleId, notifierId: null, attempt, settlement });
}

/** The first moment that has no run yet: observed, and to be made. */
interface MomentAhead {
  dueAt: Instant;
  /** As it would be recorded now. */
  run: RunRecord;
  /** Has planning go on after it. */
  moveOn: () => Promise<void>;
}

async function recordWhatIsDue(
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
  { write, calendars, skips, now }: { write: ScheduleWrite; calendars: KnownCalendars; skips: Skips; now: Instant },
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
