/**
 * Guarantees: each occurrence of a past period has one run, however often it is asked for, of the present version or of the one that was
 *   in force; what had ended unsent is opened again under its id.
 * Transaction: one, under the schedule's row lock; the occurrences are listed before it, and anew where the schedule was edited meanwhile.
 * If the process dies here: all of it is there or nothing; the runs are pending and unclaimed, for any instance.
 */
import { setImmediate } from 'node:timers/promises';
import type { Calendars } from '../../core/exclusions/exclusion.ts';
import { calendarReachOf } from '../../core/days/day-times.ts';
import { type Instant, isoInstant } from '../../core/instant.ts';
import type { OfSchedule } from '../../core/runs/new-run.ts';
import { type Schedule, isObservedAt } from '../../core/schedules/schedule.ts';
import { calendarIdsOf } from '../../core/timing/timing.ts';
import { following } from '../../core/time/plan-due.ts';
import { fireTimes } from '../../core/time/fire-times.ts';
import { type Wake, wakeFor } from '../../runtime/loop/wake.ts';
import type { Database } from '../../postgres/database.ts';
import { databaseNow } from '../../postgres/sql/rows.ts';
import { NotNow } from '../../postgres/errors.ts';
import type { Auditor } from '../../store/audit/audit-rows.ts';
import { type BackfillFire, recordBackfillUnderLock } from '../../store/runs/backfill-runs.ts';
import { wholeSince } from '../../store/reports/occurrence-rows.ts';
import { type KnownCalendars, readCalendars } from '../../store/calendars/calendar-histories.ts';
import { workOfNew } from '../../store/runs/lock-and-save.ts';
import { findSchedule, lockSchedules } from '../../store/schedules/search/find-schedules.ts';
import { shareCalendarsOf } from '../calendars/named-calendars.ts';
import { BEFORE_ALL, expectedByVersions } from '../expected-by-versions.ts';
import { hasNoTimesOfItsOwn, impossible, noSchedule, OperationRefused } from '../operation-refused.ts';
import { type RulesDeps, rulesNow, rulesThen } from './backfill-rules.ts';
import type { OpenRunCaps } from '../scope-caps.ts';

interface BackfillDeps extends RulesDeps {
  database: Database;
  wake: Wake;
  auditor?: Auditor;
  openRunCaps?: OpenRunCaps;
}

interface BackfillRequest {
  scheduleId: string;
  /** Inclusive. */
  from: Instant;
  /** Exclusive. */
  to: Instant;
  /** How many occurrences are looked at, the oldest first. */
  limit: number;
  /** By the present definition, or by the versions that were in force. */
  as: BackfillAs;
}

export const BACKFILL_AS = ['now', 'then'] as const;
type BackfillAs = (typeof BACKFILL_AS)[number];

interface Backfilled {
  created: number;
  existing: number;
  /** The first occurrence that was not reached. */
  remainingFrom: Instant | null;
}

/**
 * Makes the fires that a schedule would have made in a past period, paused or not, by its present definition or by those in force then.
 * @throws CronError if it cannot be planned; OperationRefused; NotNow if it is being caught up with, or edited all the time
 */
export async function backfill(deps: BackfillDeps, request: BackfillRequest): Promise<Backfilled> {
  for (let round = 0; round < MAX_ROUNDS; round += 1) {
    const { schedule, now, known } = await read(deps.database, request);
    if (!schedule) throw noSchedule(request.scheduleId);
    refuseUnlessOfPast(schedule, request, now);
    const found = await (request.as === 'then'
      ? occurrencesThen(deps.database, schedule, request)
      : occurrencesOf(schedule, request, known.histories));
    const { fires, remainingFrom } = found;
    const recorded = await record(deps, { schedule, known }, fires, request);
    // The schedule, or a calendar that it names, was edited: its occurrences have changed.
    if (recorded === null) continue;
    const { created, rules } = recorded;
    if (created > 0) wakeFor(deps.wake, { ...workOfNew(rules), toClaim: created });
    return { created, existing: fires.length - created, remainingFrom };
  }
  throw new NotNow(`schedule ${request.scheduleId} is changed too often at the moment; try again later`);
}

function refuseUnlessOfPast({ id, definition }: Schedule, { from, to }: BackfillRequest, now: Instant): void {
  if (definition.after !== null) throw hasNoTimesOfItsOwn(id);
  if (isObservedAt(definition.observe, from))
    throw new OperationRefused(409, `schedule ${id} is observed then: another scheduler runs the job`);
  if (to > now)
    throw impossible('/to', `is later than now (${isoInstant(now)}): only past occurrences can be backfilled`);
}

async function read(database: Database, { scheduleId, from }: BackfillRequest) {
  return database.run(async (db) => {
    const schedule = await findSchedule(db, scheduleId);
    const ids = schedule ? calendarIdsOf(schedule.definition) : [];
    const reach = schedule ? calendarReachOf(schedule.definition) : 0;
    return { schedule, now: await databaseNow(db), known: await readCalendars(db, ids, from - reach) };
  });
}

const MAX_ROUNDS = 5;
const SLICE_STEPS = 200;

interface Occurrences {
  fires: BackfillFire[];
  remainingFrom: Instant | null;
}

async function occurrencesOf(
  schedule: Schedule,
  { from, to, limit }: BackfillRequest,
  calendars: Calendars,
): Promise<Occurrences> {
  const { version } = schedule;
  const times = fireTimes(schedule.definition, schedule, calendars);
  const fires: BackfillFire[] = [];
  let at = times.next(from - 1);
  while (at !== null && at < to && fires.length < limit) {
    fires.push({ scheduledFor: at, dueAt: times.dueAt(at), version });
    if (fires.length % SLICE_STEPS === 0) await setImmediate();
    at = following(times, at);
  }
  return { fires, remainingFrom: at !== null && at < to ? at : null };
}

/** What lies before its creation is in no version. */
async function occurrencesThen(
  database: Database,
  schedule: Schedule,
  { from, to, limit }: BackfillRequest,
): Promise<Occurrences> {
  const since = await database.run((db) => wholeSince(db, schedule.uid));
  if (since !== null && from <= since.at) {
    const after = `must be after ${isoInstant(since.at)} with "as": "then"`;
    throw impossible('/from', `${after}: all versions are stored only since then`);
  }
  const { expected, upTo, unplannable } = await expectedByVersions(database, {
    ...{ incarnations: [schedule], after: { fireAt: from, uid: BEFORE_ALL }, to, limit },
    firesOnly: true,
  });
  const bad = unplannable.find(({ span }) => span.since < to);
  if (bad) {
    const version = `version ${bad.span.version} of schedule ${schedule.id}`;
    throw new OperationRefused(422, `${version} cannot be planned: ${bad.error}`);
  }
  const fires = expected.slice(0, limit);
  return {
    fires: fires.map(({ fireAt: scheduledFor, dueAt, version }) => ({ scheduledFor, dueAt, version })),
    remainingFrom: expected[limit]?.fireAt ?? (upTo < to - 1 ? upTo + 1 : null),
  };
}

/** Null, and nothing is recorded: the occurrences belong to an earlier version of the schedule. */
function record(
  deps: BackfillDeps,
  { schedule: listed, known }: { schedule: Schedule; known: KnownCalendars },
  fires: readonly BackfillFire[],
  { from, to, as }: BackfillRequest,
): Promise<Recorded | null> {
  const { database, auditor, openRunCaps } = deps;
  return database.transaction(async (tx) => {
    const schedule = (await lockSchedules(tx, [listed.id])).get(listed.id);
    if (schedule?.uid !== listed.uid || schedule.version !== listed.version) return null;
    const calendars = await shareCalendarsOf(tx, [schedule]);
    if ([...calendars.editions].some(([id, edition]) => known.editions.get(id) !== edition)) return null;
    const now = await databaseNow(tx);
    refuseWhileDue(schedule, calendars.histories, { to, now });
    const toRecord = fires.filter((fire) => isPlanned(schedule, fire));
    const rules: OfSchedule[] = [];
    const rulesOf = async (versions: readonly number[]) => {
      const found = as === 'now' ? rulesNow(schedule, deps) : await rulesThen(tx, schedule, versions, deps);
      rules.push(...[...found.values()].map(({ ofSchedule }) => ofSchedule));
      return found;
    };
    const created = await recordBackfillUnderLock(tx, { uid: schedule.uid, rulesOf, now }, toRecord);
    openRunCaps?.take(new Array<string>(created).fill(schedule.id));
    const detail = { from: isoInstant(from), to: isoInstant(to), as, created };
    if (created > 0) await auditor?.note(tx, { action: 'schedule.backfill', ...subjectOf(schedule), detail });
    return { created, rules };
  });
}

interface Recorded {
  created: number;
  /** What the runs take from their versions. */
  rules: readonly OfSchedule[];
}

function subjectOf({ id }: Schedule) {
  return { subject: id, scheduleId: id };
}

/** The planner makes fires that jitter delays beyond this moment. */
function isPlanned({ status, nextOccurrenceAt }: Schedule, { scheduledFor }: BackfillFire): boolean {
  return status !== 'active' || nextOccurrenceAt === null || scheduledFor < nextOccurrenceAt;
}

/** The record that stands for what was missed is made at one of the occurrences, which must not have a run by then. */
function refuseWhileDue(schedule: Schedule, calendars: Calendars, { to, now }: { to: Instant; now: Instant }): void {
  const { id, status, definition, nextOccurrenceAt } = schedule;
  if (status !== 'active' || nextOccurrenceAt === null || nextOccurrenceAt >= to) return;
  const dueAt = fireTimes(definition, schedule, calendars).dueAt(nextOccurrenceAt);
  if (dueAt > now) return;
  throw new NotNow(`schedule ${id} still has missed fires to plan; backfill the period once these are planned`);
}
