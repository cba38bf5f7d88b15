/* oxlint-disable max-lines -- the schema of all tables stands in one place, for drizzle and for its readers */
import { sql } from 'drizzle-orm';
import {
  bigint,
  boolean,
  check,
  customType,
  date,
  doublePrecision,
  index,
  integer,
  jsonb,
  pgTable,
  primaryKey,
  smallint,
  text,
  uniqueIndex,
  uuid,
} from 'drizzle-orm/pg-core';
import type { AlertKind, MessageEvent } from '../core/alerts/alert.ts';
import type { NotifierFilter } from '../core/alerts/notifier.ts';
import type { ChannelType } from '../core/alerts/texts/channels.ts';
import type { Role } from '../core/access/roles.ts';
import type { AuditAction, AuditDetail, AuditOutcome } from '../core/audit.ts';
import type { ConnectionFields } from '../core/connections/connection.ts';
import type { AttemptEntry, AttemptError } from '../core/runs/attempts/outcome.ts';
import type { Mode } from '../core/installation.ts';
import type { BacklogKind, EffectKind } from '../core/runs/effect.ts';
import type { OnDependencyFailure, RunStatus, RunTrigger } from '../core/runs/run.ts';
import type { Bound } from '../core/schedules/expect.ts';
import type { Overlap } from '../core/schedules/schedule.ts';
import type { FollowedEnd } from '../core/timing/timing.ts';
import type { SecretText } from '../core/secrets/key-ring.ts';
import type { StoredDefinition } from '../core/schedules/stored-definition.ts';
import type { Instant } from '../core/instant.ts';

/** Ids sort by code point on every database, whatever its collation. */
const identifier = customType<{ data: string; driverData: string }>({ dataType: () => 'text COLLATE "C"' });
/** `timestamptz(3)` as milliseconds: values that are compared for equality (fire-locks, keys) survive reading and writing. */
const instantColumn = customType<{ data: Instant; driverData: string }>({
  dataType: () => 'timestamp (3) with time zone',
  toDriver: (at) => new Date(at).toISOString(),
  fromDriver: (text) => Date.parse(text),
});
/**
 * Which writing of a version it is, at random. After a failover that lost commits a version's number is written again: what a process
 * remembers of a version it remembers by this. Null: it was written by a firelock that knew no editions.
 */
const edition = () => uuid();
const bytes = customType<{ data: Buffer; driverData: Buffer }>({ dataType: () => 'bytea' });

/**
 * firelock's own have at most 200 bytes (`boundedLane` in targets/registry.ts). One that no row of an index can take, written by
 * another program, would fail every batch it is in.
 */
const BOUNDED_LANE = sql`octet_length(lane) <= 1000`;

/**
 * One narrow, hot row per schedule: what the tick reads and writes. The definition stands in schedule_versions.
 * Every fire rewrites this row twice (lock, advance), so it has few indexes and room in its pages.
 */
export const schedules = pgTable(
  'schedules',
  {
    uid: uuid().primaryKey(),
    id: identifier().notNull(),
    version: integer().notNull(),
    enabled: boolean().notNull(),
    /** When its pause ends by itself. */
    pauseUntil: instantColumn('pause_until'),
    /** When it fires, as JSON, for the planner. */
    timing: text().notNull(),
    /** Its fire times hang on the zone data of the instance that plans it: a cron in a zone other than UTC. */
    zoned: boolean().notNull(),
    overlap: text().$type<Overlap>().notNull(),
    /** It has a row in outcome_watches: its runs are marked. */
    outcomeWatched: boolean('outcome_watched').notNull().default(false),
    /** Whose runs' ends it follows, which ends, from when and until when; null: it has fire times of its own. */
    afterUid: uuid('after_uid'),
    afterOn: text('after_on').array().$type<FollowedEnd[]>(),
    afterStartAt: instantColumn('after_start_at'),
    afterEndAt: instantColumn('after_end_at'),
    afterJitterSeconds: integer('after_jitter_seconds'),
    /** Where its runs go, for the share of slots: kind and origin of the target. */
    lane: text().notNull(),
    priority: smallint().notNull(),
    limitId: identifier('limit_id'),
    /** The newest occurrence that has been planned. It only rises, and no occurrence up to it is planned again. */
    plannedThrough: instantColumn('planned_through'),
    /** The next occurrence not yet planned; planning only ever steps forward from here. */
    nextOccurrenceAt: instantColumn('next_occurrence_at'),
    /** When the tick must look at this row: null while paused or ended, later than the occurrence while set aside. */
    nextFireAt: instantColumn('next_fire_at'),
    lastFireAt: instantColumn('last_fire_at'),
    /** The fire-lock. */
    lockedBy: uuid('locked_by'),
    lockedAt: instantColumn('locked_at'),
    /** Why it cannot be planned, and how often that was tried. */
    error: text(),
    planFailures: integer('plan_failures').notNull().default(0),
    /** It may have rows in `skips`; without it none. */
    hasSkips: boolean('has_skips').notNull().default(false),
    /** The bounds of `expect`; null: it has none. */
    startWithinSeconds: integer('start_within_seconds'),
    finishWithinSeconds: integer('finish_within_seconds'),
    expiresAfterSeconds: integer('expires_after_seconds'),
    /** How long an observed run may go without a report, and until when its runs are observed (null: for ever); null: none are. */
    reportSeconds: doublePrecision('report_seconds'),
    observeUntil: instantColumn('observe_until'),
    /** It has no trigger at all. */
    heartbeat: boolean().notNull().default(false),
    createdAt: instantColumn('created_at').notNull(),
    updatedAt: instantColumn('updated_at').notNull(),
    /** Of `version`: here as well, so that a fire does not look it up. */
    edition: edition(),
  },
  (t) => [
    uniqueIndex('schedules_id').on(t.id),
    index('schedules_due')
      .on(t.nextFireAt)
      .where(sql`enabled AND next_fire_at IS NOT NULL`),
    index('schedules_followers_in_order')
      .on(t.afterUid, t.uid)
      .where(sql`after_uid IS NOT NULL`),
    index('schedules_limited')
      .on(t.limitId, t.id)
      .where(sql`limit_id IS NOT NULL`),
    // By the order of lists. A fire neither enters nor leaves it.
    index('schedules_apart')
      .on(t.id)
      .where(sql`NOT enabled OR error IS NOT NULL OR next_fire_at IS NULL`),
    index('schedules_of_connections')
      .on(t.lane, t.id)
      .where(sql`starts_with(lane, 'http connection ')`),
    index('schedules_pausing')
      .on(t.pauseUntil)
      .where(sql`pause_until IS NOT NULL`),
    check('schedules_lane', BOUNDED_LANE),
  ],
);

/**
 * Fires to come that are not to be made: a caller asked for it, or they were made while the database's clock was ahead. A row is deleted
 * once its fire is planned: recorded as skipped, or passed over.
 */
export const skips = pgTable(
  'skips',
  {
    scheduleUid: uuid('schedule_uid').notNull(),
    fireAt: instantColumn('fire_at').notNull(),
    /** In the caller's words. */
    reason: text(),
    /** The name of the caller; null: it has none. */
    by: text(),
    askedAt: instantColumn('asked_at').notNull(),
    /** It has its run: no other is recorded. */
    made: boolean().notNull().default(false),
  },
  (t) => [primaryKey({ columns: [t.scheduleUid, t.fireAt] })],
);

/**
 * Every definition a schedule ever had; a run names its version instead of carrying a copy. What they say never changes; secret values
 * in them may be encrypted anew. Those of one-off runs stand here too, under an id made of what they say, without a schedule's id:
 * equal ones are one.
 */
export const scheduleVersions = pgTable(
  'schedule_versions',
  {
    scheduleUid: uuid('schedule_uid').notNull(),
    version: integer().notNull(),
    scheduleId: identifier('schedule_id').notNull(),
    change: text().$type<'created' | 'updated' | 'deleted'>().notNull(),
    at: instantColumn().notNull(),
    /** The name of the token that wrote it. Null: a caller without one. */
    by: text(),
    definition: jsonb().$type<StoredDefinition>().notNull(),
    payload: text(),
    edition: edition(),
  },
  (t) => [
    primaryKey({ columns: [t.scheduleUid, t.version] }),
    index('schedule_versions_by_id').on(t.scheduleId, t.scheduleUid),
    // For runs by the labels of their schedule. Nothing is left pending: a search would have to read that first. One-off runs have none.
    index('schedule_versions_labels')
      .using('gin', sql`(definition->'labels') jsonb_path_ops`)
      .with({ fastupdate: false })
      .where(sql`(definition->'labels') <> '{}'::jsonb`),
  ],
);

/**
 * Sets of local days that schedules exclude; calendar_versions has their days. A transaction that plans by a calendar locks its row
 * FOR SHARE while it writes; one that edits it locks it FOR UPDATE.
 */
export const calendars = pgTable(
  'calendars',
  {
    id: identifier().primaryKey(),
    description: text(),
    version: integer().notNull(),
    /** The version by which the cursors of all schedules that use it were moved. */
    appliedVersion: integer('applied_version').notNull(),
    /** The last day of which it says anything; null: none is known. */
    validUntil: date('valid_until'),
    updatedAt: instantColumn('updated_at').notNull(),
  },
  (t) => [
    index('calendars_ending')
      .on(t.validUntil)
      .where(sql`valid_until IS NOT NULL`),
    index('calendars_unapplied')
      .on(t.id)
      .where(sql`applied_version < version`),
  ],
);

/**
 * What a calendar said from `at` on. Rows never change. They stay when the calendar is deleted, and so the past stays judged as it was.
 * An id that is created again goes on counting.
 */
export const calendarVersions = pgTable(
  'calendar_versions',
  {
    calendarId: identifier('calendar_id').notNull(),
    version: integer().notNull(),
    at: instantColumn().notNull(),
    /** As they were sent. Null: the calendar was deleted. */
    dates: jsonb().$type<string[]>(),
    edition: edition(),
  },
  (t) => [primaryKey({ columns: [t.calendarId, t.version] })],
);

/** Who moves the next fires of an edited calendar's users, and how far that is; deleted once all are moved. */
export const calendarWalks = pgTable('calendar_walks', {
  calendarId: identifier('calendar_id').primaryKey(),
  /** Of the calendar. A walk for a newer version takes the place of this one. */
  version: integer().notNull(),
  walker: uuid().notNull(),
  /** Until then nobody else walks for this version. */
  until: instantColumn().notNull(),
  /** All next fires are moved, and what is owed is being recorded. */
  owing: boolean().notNull(),
  /** The uid of the last user that was seen to; null: none was. */
  after: uuid(),
  /** Some users before that one were left for later. */
  hasLeft: boolean('has_left').notNull(),
});

/** Which schedules name which calendars: found without reading all schedules, and without an index on their hot rows. */
export const scheduleCalendars = pgTable(
  'schedule_calendars',
  {
    calendarId: identifier('calendar_id').notNull(),
    scheduleUid: uuid('schedule_uid').notNull(),
  },
  (t) => [primaryKey({ columns: [t.calendarId, t.scheduleUid] })],
);

/** What a run has from its recording until history drops it. `runs` and `history` share these columns, so that a run moves between them. */
// oxlint-disable-next-line max-lines-per-function -- one table
const runColumns = () => ({
  /** Begins with scheduledFor, in milliseconds: the order of ids is the order of (scheduledFor, id). */
  id: uuid().notNull(),
  scheduledFor: instantColumn('scheduled_for').notNull(),
  scheduleUid: uuid('schedule_uid').notNull(),
  scheduleVersion: integer('schedule_version').notNull(),
  scheduleId: identifier('schedule_id').notNull(),
  trigger: text().$type<RunTrigger>().notNull(),
  status: text().$type<RunStatus>().notNull(),
  lane: text().notNull(),
  priority: smallint().notNull(),
  /** When the next attempt is due. */
  dueAt: instantColumn('due_at').notNull(),
  limitId: identifier('limit_id'),
  /** Since when it has a place of its limit, which only admission gives (store/limits/limits.ts). Null: it has none. */
  admittedAt: instantColumn('admitted_at'),
  attempts: integer().notNull(),
  failures: integer().notNull().default(0),
  recoveries: integer().notNull().default(0),
  coalesced: integer().notNull().default(0),
  coalescedFrom: instantColumn('coalesced_from'),
  claimedBy: uuid('claimed_by'),
  claimedAt: instantColumn('claimed_at'),
  /** Kept through all attempts: the time from here to the end is the run's duration. */
  firstClaimedAt: instantColumn('first_claimed_at'),
  /** When recovery first found the run lost; kept through /retry. */
  lostAt: instantColumn('lost_at'),
  /** When recovery last took the run over. */
  recoveredAt: instantColumn('recovered_at'),
  /**
   * An earlier attempt may have arrived, and the target can be asked. Its "no" is believed from this moment on, when nothing of that
   * attempt can still arrive. Null: nothing is in doubt, or the target cannot be asked.
   */
  inDoubtUntil: instantColumn('in_doubt_until'),
  /** The first attempt that may have arrived, or that the target said had arrived: the target speaks of that one. */
  attemptInDoubt: integer('attempt_in_doubt'),
  /** The last attempt before the run was opened again: words about this attempt or an older one come too late. */
  retriedAfter: integer('retried_after'),
  /** How often the target was asked about the attempt in doubt without an answer that settles it. */
  lookups: smallint().notNull().default(0),
  /** An attempt is under way, or was the last one; written before its first byte under atMostOnce. Null between attempts. */
  handoffStartedAt: instantColumn('handoff_started_at'),
  handedOffAt: instantColumn('handed_off_at'),
  /** More than 24 days of it do not fit an integer. */
  latenessMs: bigint('lateness_ms', { mode: 'number' }),
  executionId: text('execution_id'),
  resultStatusCode: smallint('result_status_code'),
  resultBody: text('result_body'),
  error: jsonb().$type<AttemptError>(),
  /** A manual fire's own payload and key; planned runs have the payload of their version and no key. */
  ownPayload: text('own_payload'),
  key: text(),
  /** The schedule allows one active run at a time: the end of this one may let another start. */
  overlapGuarded: boolean('overlap_guarded').notNull().default(false),
  /** Its schedule has pauseAfterFailures or successWithinSeconds: its end has an index of its own. */
  outcomeWatched: boolean('outcome_watched').notNull().default(false),
  /** How long it may wait, each time that it is recorded or opened again, and until when it may be claimed; null: for ever. */
  expiresAfterSeconds: integer('expires_after_seconds'),
  beginBy: instantColumn('begin_by'),
  /** The run whose end this one follows, or the schedule that is late (core/runs/parent.ts). */
  parentId: uuid('parent_run_id'),
  /** The notifier whose message it is. */
  notifierId: identifier('notifier_id'),
  /** Bounds of `expect` that did not hold; null: none. */
  unmet: text().array().$type<Bound[]>(),
  /** Why its result was none that is expected. */
  unmetReason: text('unmet_reason'),
  /** Dependencies whose end is not counted yet; null: the run depends on none. */
  openDependencies: integer('open_dependencies'),
  onDependencyFailure: text('on_dependency_failure').$type<OnDependencyFailure>(),
  /** Other runs depend on this one: its end has an effect. */
  hasDependents: boolean('has_dependents').notNull().default(false),
  /** While it runs: when it expires, and by how much a heartbeat extends that. */
  expiresAt: instantColumn('expires_at'),
  leaseSeconds: doublePrecision('lease_seconds'),
  /** Nothing is sent: its job reports. */
  observed: boolean().notNull().default(false),
  /** The worker that claimed a pull run last. */
  workerId: text('worker_id'),
  /** 0 … 1, from the last heartbeat that said so. */
  progress: doublePrecision(),
  /** Every attempt but a plain first success, which the run itself shows. Null: none. */
  attemptLog: jsonb('attempt_log').$type<AttemptEntry[]>(),
  createdAt: instantColumn('created_at').notNull(),
  updatedAt: instantColumn('updated_at').notNull(),
});

/** Open runs only (waiting, pending, running). The end of a run moves its row to `history`, in the statement that ends it. */
export const runs = pgTable(
  'runs',
  {
    ...runColumns(),
    /**
     * Only such runs are claimed. Without a limit: due, as far as anyone has looked; later ones become ready when they come due
     * (claimDueRuns). With a limit: it has a place of it.
     */
    ready: boolean().notNull(),
    /** The bound of `expect` that comes next, and when it passes; null: none is left, or it has passed. */
    nextBound: text('next_bound').$type<Bound>(),
    boundAt: instantColumn('bound_at'),
    /** For the bound that begins with the first attempt. */
    finishWithinSeconds: integer('finish_within_seconds'),
  },
  // oxlint-disable-next-line max-lines-per-function -- one table
  (t) => [
    primaryKey({ columns: [t.id] }),
    uniqueIndex('runs_one_per_fire')
      .on(t.scheduleUid, t.scheduledFor)
      .where(sql`trigger IN ('schedule', 'catchUp', 'backfill')`),
    index('runs_unplanned')
      .on(t.scheduleUid)
      .where(sql`trigger NOT IN ('schedule', 'catchUp', 'backfill')`),
    // Three, so that a judgement reads a few rows, however many are open: what waits, what a newer run replaces, and what is beside. The
    // first holds all that waits: with a smaller one beside it, the server might read that whole, and sort it.
    index('runs_waiting_in_order')
      .on(t.scheduleUid, t.createdAt, t.id)
      .where(sql`status = 'waiting'`),
    index('runs_replaceable')
      .on(t.scheduleUid, t.createdAt, t.id)
      .where(
        sql`overlap_guarded AND status IN ('pending', 'running') AND trigger <> 'backfill' AND retried_after IS NULL`,
      ),
    index('runs_beside')
      .on(t.scheduleUid)
      .where(
        sql`overlap_guarded AND status IN ('pending', 'running') AND (trigger = 'backfill' OR retried_after IS NOT NULL)`,
      ),
    index('runs_unclaimed')
      .on(t.lane, t.priority, t.dueAt)
      .where(sql`status = 'pending' AND claimed_by IS NULL AND ready`),
    index('runs_to_come')
      .on(t.dueAt)
      .where(sql`status = 'pending' AND claimed_by IS NULL AND NOT ready AND limit_id IS NULL AND NOT observed`),
    index('runs_bounded')
      .on(t.boundAt)
      .where(sql`bound_at IS NOT NULL`),
    index('runs_expiring')
      .on(t.beginBy)
      .where(sql`begin_by IS NOT NULL AND claimed_by IS NULL AND status <> 'running'`),
    index('runs_unmet')
      .on(t.id)
      .where(sql`unmet IS NOT NULL`),
    // For the messages of a scope, which are few among the open runs of others.
    index('runs_of_notifier')
      .on(t.notifierId, t.id)
      .where(sql`notifier_id IS NOT NULL`),
    index('runs_claimed')
      .on(t.claimedBy)
      .where(sql`status = 'pending' AND claimed_by IS NOT NULL`),
    index('runs_running')
      .on(t.expiresAt)
      .where(sql`status = 'running' OR observed`),
    // Which run a report is for: the oldest that may begin, or end; or the one of its `rid`, which is its execution's id.
    index('runs_observed')
      .on(t.scheduleUid, t.status, t.id)
      .where(sql`observed AND execution_id IS NULL`),
    index('runs_reported')
      .on(t.scheduleUid, t.executionId)
      .where(sql`observed AND execution_id IS NOT NULL`),
    index('runs_to_admit')
      .on(t.limitId, t.priority, t.dueAt)
      .where(sql`status = 'pending' AND limit_id IS NOT NULL AND admitted_at IS NULL`),
    index('runs_limited')
      .on(t.limitId, t.admittedAt)
      .where(sql`limit_id IS NOT NULL`),
    // PostgreSQL's instants may be infinite, ours may not: one such row, written by another program, would fail every batch it is in.
    check('runs_finite', sql`isfinite(scheduled_for) AND isfinite(due_at) AND isfinite(created_at)`),
    check(
      'runs_finite_claim',
      sql`isfinite(claimed_at) AND isfinite(handoff_started_at) AND isfinite(in_doubt_until) AND isfinite(admitted_at)
        AND isfinite(begin_by)`,
    ),
    // Whatever writes a run: with a limit it is claimed or under way only while it has a place.
    check(
      'runs_place',
      sql`CASE WHEN limit_id IS NULL THEN admitted_at IS NULL
      WHEN admitted_at IS NULL THEN NOT ready AND claimed_by IS NULL AND status <> 'running'
      ELSE ready AND status <> 'waiting' END`,
    ),
    // Whatever writes a run: one that is observed is never claimed.
    check('runs_observed', sql`NOT observed OR NOT ready AND claimed_by IS NULL AND limit_id IS NULL`),
    check('runs_lane', BOUNDED_LANE),
    check('runs_open', sql`status IN ('waiting', 'pending', 'running')`),
  ],
);

/** What an ended run has beside the columns of an open one. */
const endColumns = () => ({
  reason: text(),
  /** When it ended, as reported: for an attempt, when its answer came. */
  finishedAt: instantColumn('finished_at').notNull(),
  /** When its row was written here, by the database's clock. */
  endedAt: instantColumn('ended_at').notNull(),
});

/**
 * Ended runs, partitioned by the UTC day of endedAt and dropped whole. drizzle's schema cannot say so: the migration does. What
 * ended lately enters today's partition, however old its scheduledFor is.
 */
export const history = pgTable('history', { ...runColumns(), ...endColumns() }, (t) => [
  // Found by its id; and a publication of all tables refuses to change rows of a table without a key, which has to name the day.
  primaryKey({ columns: [t.id, t.endedAt] }),
  index('history_of_schedule').on(t.scheduleUid, t.id),
  index('history_coalesced')
    .on(t.scheduleUid, t.id)
    .where(sql`coalesced > 0`),
  // What lists look for among very many plain successes, which enter neither of these.
  index('history_ends')
    .on(t.status, t.id)
    .where(sql`status <> 'succeeded'`),
  index('history_ends_of_schedule')
    .on(t.scheduleUid, t.status, t.id)
    .where(sql`status <> 'succeeded'`),
  index('history_seldom')
    .on(t.trigger, t.id)
    .where(sql`trigger <> 'schedule'`),
  // Of observed runs: by the `rid` of their reports, and those that a late one may put right.
  index('history_reported')
    .on(t.scheduleUid, t.executionId)
    .where(sql`observed AND execution_id IS NOT NULL`),
  index('history_unreported')
    .on(t.scheduleUid, t.id)
    .where(sql`observed AND execution_id IS NULL AND status = 'failed' AND error->>'kind' = 'expired'`),
  // For the messages of a scope: by their notifiers, which may have been deleted.
  index('history_of_notifier')
    .on(t.notifierId, t.id)
    .where(sql`notifier_id IS NOT NULL`),
  index('history_unmet')
    .on(t.id)
    .where(sql`unmet IS NOT NULL`),
  // By schedule, for the newest success and the failures since: of schedules that ask for it, so that others pay nothing.
  index('history_watched_successes')
    .on(t.scheduleUid, t.finishedAt)
    .where(sql`outcome_watched AND status = 'succeeded'`),
  index('history_watched_failures')
    .on(t.scheduleUid, t.finishedAt)
    .where(sql`outcome_watched AND status IN ('failed', 'unknown', 'abandoned')`),
]);

/** By what jobs of observed schedules report. It is found by its hash, and can be shown again. */
export const pingKeys = pgTable('ping_keys', {
  scheduleUid: uuid('schedule_uid').primaryKey(),
  keyHash: bytes('key_hash').notNull().unique('ping_keys_hash'),
  /** Encrypted where there is a key. */
  key: jsonb().$type<SecretText>().notNull(),
});

/** Schedules that have pauseAfterFailures or successWithinSeconds: from when on their runs count. */
export const outcomeWatches = pgTable(
  'outcome_watches',
  {
    scheduleUid: uuid('schedule_uid').primaryKey(),
    pauseAfterFailures: integer('pause_after_failures'),
    /** Failures that ended before do not count. */
    failuresSince: instantColumn('failures_since').notNull(),
    successWithinSeconds: integer('success_within_seconds'),
    /** The time without a success counts from here, or from the last success if that came later. */
    successSince: instantColumn('success_since').notNull(),
    /** As far as anyone has looked. */
    lastSuccessAt: instantColumn('last_success_at'),
    /** When to look whether it has become late; null: it cannot. */
    lookAt: instantColumn('look_at'),
  },
  (t) => [
    index('outcome_watches_to_look')
      .on(t.lookAt)
      .where(sql`look_at IS NOT NULL`),
  ],
);

/** Kinds of effects: ALERT_EFFECTS. */
const OF_ALERTS = sql`kind IN ('breaks', 'heals', 'undelivered')`;

/** What is to follow from the end of a run: written in the commit of the end, done and deleted in another one (flow/effects.ts). */
export const effects = pgTable(
  'effects',
  {
    id: bigint({ mode: 'number' }).primaryKey().generatedAlwaysAsIdentity(),
    kind: text().$type<EffectKind>().notNull(),
    /** Null: it is about no run, but about a schedule that is late. */
    runId: uuid('run_id'),
    scheduleUid: uuid('schedule_uid').notNull(),
    scheduleVersion: integer('schedule_version').notNull(),
    scheduleId: identifier('schedule_id').notNull(),
    trigger: text().$type<RunTrigger>().notNull(),
    /** How the run ended, when, and in which attempt; or since when the schedule is late. */
    status: text().$type<RunStatus | 'late'>().notNull(),
    finishedAt: instantColumn('finished_at').notNull(),
    attempt: integer().notNull(),
    /** For `breaks` and `heals`: of which kind the episode is; null: a success heals whatever a success can. */
    alertKind: text('alert_kind').$type<AlertKind>(),
    /** The one follower that it is about; null: about all that follow. */
    followerUid: uuid('follower_uid'),
    /** For `reopens`: the prefixes of the scope of who asked for it; null: it has none. */
    scope: jsonb().$type<string[]>(),
    /** It is done in parts, and was begun; for `followers` and `reopens`, all up to this uid or run have been seen to. */
    doneThrough: uuid('done_through'),
    /** When the end was written. */
    createdAt: instantColumn('created_at').default(sql`clock_timestamp()`),
    /** How often it failed, when it is tried again, and why it failed last. */
    failures: smallint().notNull().default(0),
    retryAt: instantColumn('retry_at'),
    error: text(),
  },
  (t) => [
    index('effects_of_run').on(t.runId),
    // Each loop steps along its own line, however many stand in the others.
    index('effects_new')
      .on(t.id)
      .where(sql`done_through IS NULL AND NOT ${OF_ALERTS}`),
    index('effects_of_alerts')
      .on(t.id)
      .where(sql`done_through IS NULL AND ${OF_ALERTS}`),
    index('effects_begun')
      .on(t.id)
      .where(sql`done_through IS NOT NULL`),
  ],
);

/**
 * Who is told what. Its row's lock guards in which message it is told of an episode. What its messages are handed to stands in
 * schedule_versions.
 */
export const notifiers = pgTable('notifiers', {
  id: identifier().primaryKey(),
  /** Another one where it is deleted and created again: encrypted values are bound to it. */
  uid: uuid().notNull(),
  description: text(),
  enabled: boolean().notNull(),
  /** `on` of the API, a word of SQL. */
  kinds: text().array().$type<AlertKind[]>().notNull(),
  filter: jsonb().$type<NotifierFilter>().notNull(),
  channel: text().$type<ChannelType>().notNull(),
  remindSeconds: integer('remind_seconds'),
  afterFailures: integer('after_failures').notNull().default(1),
  fallback: identifier(),
  version: integer().notNull(),
  updatedAt: instantColumn('updated_at').notNull(),
});

/** Episodes: since when something is wrong with a schedule, and until when it was. */
export const alerts = pgTable(
  'alerts',
  {
    /** Begins with the moment at which it broke. */
    id: uuid().primaryKey(),
    scheduleUid: uuid('schedule_uid').notNull(),
    scheduleId: identifier('schedule_id').notNull(),
    kind: text().$type<AlertKind>().notNull(),
    since: instantColumn().notNull(),
    /** The newest moment at which it broke: what heals it must have come later. */
    brokenAt: instantColumn('broken_at').notNull(),
    /** How often it broke in a row. */
    failures: integer().notNull().default(1),
    /** Null: it is open. */
    until: instantColumn(),
    runId: uuid('run_id'),
    status: text().$type<RunStatus>(),
    error: text(),
    /** Why it is over, where the schedule did not get well; null: it did, or it is open. */
    overBy: text('over_by'),
    /** When to look whether it is over; null: an effect or an edit says so. */
    lookAt: instantColumn('look_at'),
  },
  (t) => [
    uniqueIndex('alerts_open')
      .on(t.scheduleUid, t.kind)
      .where(sql`until IS NULL`),
    index('alerts_late')
      .on(t.scheduleUid)
      .where(sql`kind = 'late' AND until IS NULL`),
    index('alerts_open_in_order')
      .on(t.id)
      .where(sql`until IS NULL`),
    index('alerts_of_schedule').on(t.scheduleId, t.id),
    index('alerts_over')
      .on(t.until)
      .where(sql`until IS NOT NULL`),
    index('alerts_over_of')
      .on(t.scheduleUid, t.until)
      .where(sql`until IS NOT NULL`),
    index('alerts_to_look')
      .on(t.lookAt)
      .where(sql`look_at IS NOT NULL`),
  ],
);

/** Which notifier was told of an episode; deleted when it is told that it is over, and where it opened again, 5 minutes after its end. */
export const alertTellings = pgTable(
  'alert_tellings',
  {
    alertId: uuid('alert_id').notNull(),
    notifierId: identifier('notifier_id').notNull(),
    /** When it is told again, or that the episode is over or open again; null: never. */
    remindAt: instantColumn('remind_at'),
    /** The episode opened again: until then the notifier hears nothing of it. Null: it did not, or a person's act ended it. */
    heldUntil: instantColumn('held_until'),
    /** The last that it heard is that the episode is over. */
    toldOver: boolean('told_over').notNull().default(false),
  },
  (t) => [
    primaryKey({ columns: [t.alertId, t.notifierId] }),
    index('alert_tellings_to_remind')
      .on(t.remindAt)
      .where(sql`remind_at IS NOT NULL`),
  ],
);

/** A notifier's message, which is a run of the same id. */
export const messages = pgTable(
  'messages',
  {
    runId: uuid('run_id').primaryKey(),
    notifierId: identifier('notifier_id').notNull(),
    event: text().$type<MessageEvent>().notNull(),
    /** What happens until then is told in it too; null: it is closed, and its text is that of the run. */
    gathersUntil: instantColumn('gathers_until'),
    /** The notifier that could not deliver it: it goes to no further one. Null: it is told for the first time. */
    fallbackFor: identifier('fallback_for'),
    /** It has gone to the fallback of its notifier. */
    passedOn: boolean('passed_on').notNull().default(false),
    createdAt: instantColumn('created_at').notNull(),
  },
  (t) => [
    index('messages_to_close')
      .on(t.gathersUntil)
      .where(sql`gathers_until IS NOT NULL`),
    index('messages_by_age').on(t.createdAt),
  ],
);

/** The episodes that a message is about. */
export const messageAlerts = pgTable(
  'message_alerts',
  {
    runId: uuid('run_id').notNull(),
    alertId: uuid('alert_id').notNull(),
  },
  (t) => [primaryKey({ columns: [t.runId, t.alertId] }), index('message_alerts_by_alert').on(t.alertId)],
);

/** Open runs of one schedule, too many for the transaction that decided about them: they are ended or marked in slices. */
export const backlogs = pgTable(
  'backlogs',
  {
    id: bigint({ mode: 'number' }).primaryKey().generatedAlwaysAsIdentity(),
    kind: text().$type<BacklogKind>().notNull(),
    scheduleUid: uuid('schedule_uid').notNull(),
    scheduleId: identifier('schedule_id').notNull(),
    /** It is about runs that were recorded until then. */
    askedAt: instantColumn('asked_at').notNull(),
    /** The run that replaces the others. */
    keptRun: uuid('kept_run'),
    /** Up to which id of all open runs it has looked; null: at none. */
    position: uuid(),
    /** When its next slice may be done, how often one failed in a row, and why the last one did. */
    nextAt: instantColumn('next_at').notNull(),
    failures: smallint().notNull().default(0),
    error: text(),
  },
  (t) => [index('backlogs_of_schedule').on(t.scheduleUid)],
);

/** Which run depends on which. */
export const runDependencies = pgTable(
  'run_dependencies',
  {
    runId: uuid('run_id').notNull(),
    dependsOn: uuid('depends_on').notNull(),
    /** As the client listed them. */
    position: smallint().notNull(),
    /** When the dependency's end was counted: once, however often it ends. */
    countedAt: instantColumn('counted_at'),
  },
  (t) => [
    primaryKey({ columns: [t.dependsOn, t.runId] }),
    index('run_dependencies_of').on(t.runId, t.position),
    index('run_dependencies_open')
      .on(t.dependsOn, t.runId)
      .where(sql`counted_at IS NULL`),
  ],
);

/** Of the runs that name one, at most maxRunning are under way at once. Its row's lock guards who gets a place. */
export const limits = pgTable(
  'limits',
  {
    id: identifier().primaryKey(),
    description: text(),
    maxRunning: integer('max_running').notNull(),
    version: integer().notNull().default(1),
    updatedAt: instantColumn('updated_at').notNull(),
  },
  () => [check('limits_max_running', sql`max_running BETWEEN 1 AND 10000`)],
);

/**
 * Where systems are, and how to log in to them. Who names one is found by the lane, `http connection ID`: a call that names it keeps its
 * row FOR KEY SHARE, one that deletes it locks it FOR UPDATE.
 */
export const connections = pgTable('connections', {
  id: identifier().primaryKey(),
  /** Another one where it is deleted and created again: encrypted values are bound to it. */
  uid: uuid().notNull(),
  description: text(),
  url: text().notNull(),
  /** A proof of the URL, headers, auth and tls, with their secret values encrypted. */
  definition: jsonb().$type<Omit<ConnectionFields, 'url'>>().notNull(),
  version: integer().notNull(),
  updatedAt: instantColumn('updated_at').notNull(),
  /** Since when its URL has this origin: values that runs were given before are not sent there. */
  placedAt: instantColumn('placed_at').notNull(),
  edition: edition(),
});

/** Pull workers that asked for work, shown with the queues. */
export const queueWorkers = pgTable(
  'queue_workers',
  {
    queue: identifier().notNull(),
    workerId: identifier('worker_id').notNull(),
    seenAt: instantColumn('seen_at').notNull(),
  },
  (t) => [primaryKey({ columns: [t.queue, t.workerId] }), index('queue_workers_seen').on(t.seenAt)],
);

/** Runs that were asked for in one call; deleted after its last run. */
export const batches = pgTable('batches', {
  id: uuid().primaryKey(),
  name: text(),
  labels: jsonb().$type<Record<string, string>>().notNull(),
  createdAt: instantColumn('created_at').notNull(),
});

/**
 * What its caller calls a one-off run: its batch, its name and its place there, its labels. Only runs that have some of it have a row,
 * beside their own, so that no other pays for it; deleted after its run.
 */
export const runTags = pgTable(
  'run_tags',
  {
    runId: uuid('run_id').primaryKey(),
    batchId: uuid('batch_id'),
    ref: text(),
    place: smallint(),
    /** Null: it has none. */
    labels: jsonb().$type<Record<string, string>>(),
  },
  (t) => [
    index('run_tags_of_batch')
      .on(t.batchId, t.place)
      .where(sql`batch_id IS NOT NULL`),
    index('run_tags_labels')
      .using('gin', sql`labels jsonb_path_ops`)
      .with({ fastupdate: false })
      .where(sql`labels IS NOT NULL`),
  ],
);

/** The run that a client's key stands for. A key is free again once its run is in neither table. */
export const runKeys = pgTable(
  'run_keys',
  {
    /** Keys of manual fires are unique per schedule, of one-off runs over all (ONE_OFF_KEYS). */
    scope: uuid().notNull(),
    key: text().notNull(),
    bodyHash: bytes('body_hash').notNull(),
    runId: uuid('run_id').notNull(),
  },
  // The key first: lists look it up by itself.
  (t) => [
    primaryKey({ columns: [t.key, t.scope] }),
    index('run_keys_of_run').on(t.runId),
    // For the one-off runs of a scope: a range of keys, in the order of code points.
    index('run_keys_of_one_offs')
      .on(sql`(key COLLATE "C")`)
      .where(sql`scope = '00000000-0000-0000-0000-000000000000'::uuid`),
  ],
);

/** One row per daemon process. */
export const instances = pgTable('instances', {
  id: uuid().primaryKey(),
  host: text().notNull(),
  /** Where its API listens; null: it does not yet. */
  port: integer(),
  version: text().notNull(),
  zoneData: text('zone_data').notNull(),
  startedAt: instantColumn('started_at').notNull(),
  heartbeatAt: instantColumn('heartbeat_at').notNull(),
  /** Silent for longer than this, it may be declared dead: its own word, as its own lease runs by it. */
  ttlSeconds: integer('ttl_seconds').notNull().default(10),
  /** When it left, or was declared dead. */
  diedAt: instantColumn('died_at'),
  /** Only if it ended in good order. */
  leftAt: instantColumn('left_at'),
});

/** One row: with which zone data the cursors of all schedules were last looked through. */
export const zoneData = pgTable(
  'zone_data',
  {
    one: boolean().primaryKey().default(true),
    version: text().notNull(),
    /** When that began: plans by other data from before do not count. */
    lookedThroughAt: instantColumn('looked_through_at').notNull(),
  },
  (t) => [check('zone_data_one_row', sql`${t.one}`)],
);

/** One row, always: what all instances of this database do, since when, until when and why; and who took over last, from when on. */
export const installation = pgTable(
  'installation',
  {
    one: boolean().primaryKey().default(true),
    mode: text().$type<Mode>().notNull().default('works'),
    /** When the maintenance, or observing, began. */
    modeSince: instantColumn('mode_since'),
    /** They work again from then on; null: until somebody says so. */
    until: instantColumn(),
    reason: text(),
    tookOverAt: instantColumn('took_over_at'),
    /** What was due from this moment on is fired. */
    tookOverSince: instantColumn('took_over_since'),
    /** The name of the caller; null: it has none. */
    tookOverBy: text('took_over_by'),
  },
  (t) => [check('installation_one_row', sql`${t.one}`)],
);

/** Logins of browsers: each counts as a token. Hashes in hexadecimal. */
export const sessions = pgTable(
  'sessions',
  {
    idHash: text('id_hash').primaryKey(),
    tokenHash: text('token_hash').notNull(),
    isSecure: boolean('is_secure').notNull(),
    expiresAt: instantColumn('expires_at').notNull(),
  },
  (t) => [index('sessions_of_token').on(t.tokenHash, t.expiresAt), index('sessions_over').on(t.expiresAt)],
);

/** Waiting runs that an edit recorded during maintenance: they go on when it is over. */
export const heldRuns = pgTable('held_runs', { runId: uuid('run_id').primaryKey() });

/**
 * What runs printed, as bytes; partitioned by the UTC day of the run's `scheduledFor`, which its id tells, and dropped whole. What a run
 * writes days later, and what is still kept when its day is dropped, has `infinity` there (store/history/leftovers.ts).
 */
export const runLogs = pgTable(
  'run_logs',
  {
    day: instantColumn().notNull(),
    runId: uuid('run_id').notNull(),
    attempt: integer().notNull(),
    /** How much of the log lies before it, without what was left out: by that, and by the lock of the run, each byte has one place. */
    place: bigint({ mode: 'number' }).notNull(),
    /** Where it begins, as its writer counts. */
    atOffset: bigint('at_offset', { mode: 'number' }).notNull(),
    bytes: bytes().notNull(),
  },
  (t) => [primaryKey({ columns: [t.runId, t.attempt, t.place, t.day] })],
);

/**
 * What callers changed, and what they were refused; partitioned by the UTC day of `at` and dropped whole, as history is. An entry is
 * written in the transaction of its change. Workers complete runs very often: so few indexes, and one that leaves these out.
 */
export const audit = pgTable(
  'audit',
  {
    at: instantColumn().notNull(),
    id: uuid()
      .notNull()
      .default(sql`gen_random_uuid()`),
    /** The name of the caller; null: it has none. */
    by: text(),
    role: text().$type<Role>().notNull(),
    /** Null: a call was refused that only reads. */
    action: text().$type<AuditAction>(),
    /** The id of what it is about; null: it is about many, or about all. */
    subject: text(),
    scheduleId: identifier('schedule_id'),
    outcome: text().$type<AuditOutcome>().notNull(),
    detail: jsonb().$type<AuditDetail>().notNull(),
    /**
     * By what scopes find an entry that neither its schedule nor its subject places: a run's key or notifier, what a refused call was
     * about, or the first one of `scope`.
     */
    name: identifier(),
    /** Where the caller's scope decides who reads the entry: the prefixes of that scope. */
    scope: text().array(),
  },
  (t) => [
    primaryKey({ columns: [t.at, t.id] }),
    index('audit_of_name')
      .on(t.name, t.at, t.id)
      .where(sql`name IS NOT NULL`),
    index('audit_by').on(t.by, t.at, t.id),
    index('audit_of_schedule')
      .on(t.scheduleId, t.at, t.id)
      .where(sql`schedule_id IS NOT NULL`),
    index('audit_seldom')
      .on(t.action, t.at, t.id)
      .where(sql`action <> 'run.complete'`),
  ],
);
