import { sql } from 'drizzle-orm';
import {
  bigint,
  boolean,
  check,
  customType,
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
import type { AttemptOutcome, LookedUp } from '../core/attempt-log.ts';
import type { RunEnd } from '../core/run-end.ts';
import type { OnDependencyFailure, RunStatus, RunTrigger } from '../core/run.ts';
import type { Overlap } from '../core/schedule.ts';
import type { AttemptError } from '../core/outcome.ts';
import { instant } from './columns.ts';
import type { StoredDefinition } from './definitions.ts';

/** Ids sort by code point on every database, whatever its collation. */
const identifier = customType<{ data: string; driverData: string }>({ dataType: () => 'text COLLATE "C"' });
const bytes = customType<{ data: Buffer; driverData: Buffer }>({ dataType: () => 'bytea' });

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
    /** Kept up for the version before this one, which plans by them; this one only reads them where that one wrote last. */
    cron: text().notNull(),
    timezone: text(),
    /** When it fires, as JSON, for the planner; of the version beside it. */
    timing: text(),
    timingVersion: integer('timing_version'),
    overlap: text().$type<Overlap>().notNull().default('allow'),
    /** Whose runs' ends it follows, which ends, from when and until when; null: it has fire times of its own. */
    afterUid: uuid('after_uid'),
    afterOn: text('after_on').array().$type<RunEnd[]>(),
    afterStartAt: instant('after_start_at'),
    afterEndAt: instant('after_end_at'),
    afterJitterSeconds: integer('after_jitter_seconds'),
    /** Where its runs go, for the share of slots: kind and origin of the target. */
    lane: text().notNull(),
    priority: smallint().notNull(),
    /** The next occurrence not yet planned; planning only ever steps forward from here. */
    nextOccurrenceAt: instant('next_occurrence_at'),
    /** When the tick must look at this row: null while paused or ended, later than the occurrence while set aside. */
    nextFireAt: instant('next_fire_at'),
    lastFireAt: instant('last_fire_at'),
    /** The fire-lock. */
    lockedBy: uuid('locked_by'),
    lockedAt: instant('locked_at'),
    /** Why it cannot be planned, and how often that was tried. */
    error: text(),
    planFailures: integer('plan_failures').notNull().default(0),
    createdAt: instant('created_at').notNull(),
    updatedAt: instant('updated_at').notNull(),
  },
  (t) => [
    uniqueIndex('schedules_id').on(t.id),
    index('schedules_due')
      .on(t.nextFireAt)
      .where(sql`enabled AND next_fire_at IS NOT NULL`),
    index('schedules_followers')
      .on(t.afterUid)
      .where(sql`after_uid IS NOT NULL`),
    // By the order of lists. A fire neither enters nor leaves it.
    index('schedules_apart')
      .on(t.id)
      .where(sql`NOT enabled OR error IS NOT NULL OR next_fire_at IS NULL`),
  ],
);

/**
 * Every definition a schedule ever had; a run names its version instead of carrying a copy. Rows never change. Those of one-off
 * runs stand here too, under an id made of what they say, without a schedule's id: equal ones are one.
 */
export const scheduleVersions = pgTable(
  'schedule_versions',
  {
    scheduleUid: uuid('schedule_uid').notNull(),
    version: integer().notNull(),
    scheduleId: identifier('schedule_id').notNull(),
    change: text().$type<'created' | 'updated' | 'deleted'>().notNull(),
    at: instant().notNull(),
    /** Who wrote it: the name of a token. Null: somebody without one. */
    by: text(),
    definition: jsonb().$type<StoredDefinition>().notNull(),
    payload: text(),
  },
  (t) => [
    primaryKey({ columns: [t.scheduleUid, t.version] }),
    index('schedule_versions_by_id').on(t.scheduleId, t.scheduleUid),
  ],
);

/**
 * The durable record of one fire, or of one one-off task: written before anything is sent. Partitioned by the UTC day of scheduledFor
 * (history-days.ts), which drizzle's schema cannot say: the migrations do.
 */
export const runs = pgTable(
  'runs',
  {
    id: uuid().notNull(),
    scheduledFor: instant('scheduled_for').notNull(),
    scheduleUid: uuid('schedule_uid').notNull(),
    scheduleVersion: integer('schedule_version').notNull(),
    scheduleId: identifier('schedule_id').notNull(),
    trigger: text().$type<RunTrigger>().notNull(),
    status: text().$type<RunStatus>().notNull(),
    reason: text(),
    lane: text().notNull(),
    priority: smallint().notNull(),
    /** When the next attempt is due. */
    dueAt: instant('due_at').notNull(),
    attempts: integer().notNull(),
    failures: integer().notNull().default(0),
    recoveries: integer().notNull().default(0),
    coalesced: integer().notNull().default(0),
    coalescedFrom: instant('coalesced_from'),
    claimedBy: uuid('claimed_by'),
    claimedAt: instant('claimed_at'),
    /** Kept through all attempts: from then on to its end is how long it took. */
    firstClaimedAt: instant('first_claimed_at'),
    /** First found with a claimant that is gone; kept for ever. */
    lostAt: instant('lost_at'),
    /** Last taken over by recovery. */
    recoveredAt: instant('recovered_at'),
    /**
     * An earlier attempt may have arrived, and the target can be asked: from this moment on nothing of that attempt can
     * still arrive, so that "not here" may be believed. Null: no doubt, or nobody to ask.
     */
    inDoubtUntil: instant('in_doubt_until'),
    /** The first attempt whose arrival is in doubt, or that was found to have arrived: its target speaks of that one. */
    doubtedAttempt: integer('doubted_attempt'),
    /** The last attempt before somebody opened it again: a word of that one, or an older one, is of work that is over. */
    retriedAfter: integer('retried_after'),
    /** How often the target was asked about that attempt without an answer that settles it. */
    lookups: smallint().notNull().default(0),
    /** An attempt is under way (atMostOnce: durable before its first byte), or was the last one. Null between attempts. */
    handoffStartedAt: instant('handoff_started_at'),
    handedOffAt: instant('handed_off_at'),
    finishedAt: instant('finished_at'),
    /** More than 24 days of it do not fit an integer. */
    latenessMs: bigint('lateness_ms', { mode: 'number' }),
    executionId: text('execution_id'),
    resultStatusCode: smallint('result_status_code'),
    resultBody: text('result_body'),
    error: jsonb().$type<AttemptError>(),
    /** A manual fire's own payload and key; planned runs have their version's payload and no key. */
    ownPayload: text('own_payload'),
    key: text(),
    /** Its schedule allows one at a time: its end may let another one start. */
    overlapGuarded: boolean('overlap_guarded').notNull().default(false),
    /** Whose end it follows. */
    parentRunId: uuid('parent_run_id'),
    /** Runs it waits for whose end has not been counted yet; null: it depends on none. */
    openDependencies: integer('open_dependencies'),
    onDependencyFailure: text('on_dependency_failure').$type<OnDependencyFailure>(),
    /** One that did not succeed, where all must: it fails with that. */
    failedDependency: uuid('failed_dependency'),
    /** Its end has to release others, in the same commit (dependents.ts). */
    hasDependents: boolean('has_dependents').notNull().default(false),
    /** While it runs: until when its worker or target must be heard of, and by how much that extends it. */
    expiresAt: instant('expires_at'),
    leaseSeconds: doublePrecision('lease_seconds'),
    /** Of a pull run: who claimed it last. */
    workerId: text('worker_id'),
    /** 0 … 1, by the last heartbeat that said so. */
    progress: doublePrecision(),
    createdAt: instant('created_at').notNull(),
    updatedAt: instant('updated_at').notNull(),
  },
  (t) => [
    primaryKey({ columns: [t.scheduledFor, t.id] }),
    uniqueIndex('runs_one_per_fire')
      .on(t.scheduleUid, t.scheduledFor)
      .where(sql`trigger IN ('schedule', 'catchUp', 'backfill')`),
    index('runs_unplanned')
      .on(t.scheduleUid, t.scheduledFor, t.id)
      .where(sql`trigger NOT IN ('schedule', 'catchUp', 'backfill')`),
    index('runs_guarded')
      .on(t.scheduleUid)
      .where(sql`overlap_guarded AND status IN ('waiting', 'pending', 'running')`),
    index('runs_coalesced')
      .on(t.scheduleUid, t.scheduledFor)
      .where(sql`coalesced > 0`),
    index('runs_unclaimed')
      .on(t.lane, t.priority, t.dueAt)
      .where(sql`status = 'pending' AND claimed_by IS NULL`),
    index('runs_claimed')
      .on(t.claimedBy)
      .where(sql`status = 'pending' AND claimed_by IS NOT NULL`),
    // Where the oldest of them stands tells how far back anybody has to look (open-runs.ts). In words that `status = 'pending'` does
    // not imply: a day that held none when it was analyzed has nothing but small indexes, and who claims would read all of this one.
    index('runs_open')
      .on(t.scheduledFor)
      .where(sql`CASE WHEN status IN ('waiting', 'pending', 'running') THEN true END`),
    index('runs_running')
      .on(t.expiresAt)
      .where(sql`status = 'running'`),
    index('runs_waiting_for_others')
      .on(t.failedDependency)
      .where(sql`status = 'waiting' AND open_dependencies IS NOT NULL`),
    // What lists find among very many others. What a schedule fires, and what succeeds, enters none of them.
    index('runs_ends')
      .on(t.status, t.scheduledFor, t.id, t.trigger)
      .where(sql`status IN ('failed', 'unknown', 'abandoned', 'skipped', 'cancelled')`),
    index('runs_ends_of_schedule')
      .on(t.scheduleUid, t.status, t.scheduledFor, t.id, t.trigger)
      .where(sql`status IN ('failed', 'unknown', 'abandoned', 'skipped', 'cancelled')`),
    index('runs_seldom')
      .on(t.trigger, t.scheduledFor, t.id, t.scheduleUid)
      .where(sql`trigger NOT IN ('schedule', 'api')`),
    // PostgreSQL's instants may be infinite, ours may not: one such row, by a foreign hand, would spoil every batch it is in.
    check('runs_finite', sql`isfinite(scheduled_for) AND isfinite(due_at) AND isfinite(created_at)`),
    check(
      'runs_finite_claim',
      sql`isfinite(claimed_at) AND isfinite(handoff_started_at) AND isfinite(in_doubt_until)`,
    ),
  ],
);

/** Who waits for whom. Both instants are in the ids; they are here since they lead to the rows. */
export const runDependencies = pgTable(
  'run_dependencies',
  {
    runId: uuid('run_id').notNull(),
    scheduledFor: instant('scheduled_for').notNull(),
    dependsOn: uuid('depends_on').notNull(),
    dependsOnScheduledFor: instant('depends_on_scheduled_for').notNull(),
    /** As the client listed them. */
    position: smallint().notNull(),
    /** When the dependency's end was counted: once, however often it ends. */
    countedAt: instant('counted_at'),
  },
  (t) => [
    primaryKey({ columns: [t.dependsOn, t.runId] }),
    index('run_dependencies_of').on(t.runId, t.position),
    index('run_dependencies_open')
      .on(t.dependsOn, t.runId)
      .where(sql`counted_at IS NULL`),
  ],
);

/** Pull workers that asked for work, for those who look at the queues. */
export const queueWorkers = pgTable(
  'queue_workers',
  {
    queue: identifier().notNull(),
    workerId: identifier('worker_id').notNull(),
    seenAt: instant('seen_at').notNull(),
  },
  (t) => [primaryKey({ columns: [t.queue, t.workerId] })],
);

/** What a client's key stands for. A plain first-try success leaves no row in attempts; a key leaves one here. */
export const runKeys = pgTable(
  'run_keys',
  {
    /** Keys of manual fires are unique per schedule, of one-off runs over all (ONE_OFF_KEYS). */
    scope: uuid().notNull(),
    key: text().notNull(),
    bodyHash: bytes('body_hash').notNull(),
    runId: uuid('run_id').notNull(),
  },
  // The key first: it is also looked up by itself. By the run they go with the day of it, as its id begins with its time.
  (t) => [primaryKey({ columns: [t.key, t.scope] }), index('run_keys_of_run').on(t.runId)],
);

/** The attempt log, but for plain first-attempt successes: these can be told from their run. By day, as runs are. */
export const attempts = pgTable(
  'attempts',
  {
    runId: uuid('run_id').notNull(),
    scheduledFor: instant('scheduled_for').notNull(),
    attempt: integer().notNull(),
    instanceId: uuid('instance_id').notNull(),
    startedAt: instant('started_at').notNull(),
    finishedAt: instant('finished_at').notNull(),
    outcome: text().$type<AttemptOutcome>().notNull(),
    statusCode: smallint('status_code'),
    error: jsonb().$type<AttemptError>(),
    recovery: boolean().notNull(),
    lookup: text().$type<LookedUp>(),
  },
  (t) => [primaryKey({ columns: [t.scheduledFor, t.runId, t.attempt] })],
);

/** One row: what is kept of history. */
export const history = pgTable(
  'history',
  {
    one: boolean().primaryKey().default(true),
    /** Days before it have been dropped: what was due then may have had a run, and gets none any more. */
    droppedBefore: instant('dropped_before').notNull(),
  },
  (t) => [check('history_one_row', sql`${t.one}`)],
);

/** One row per daemon process. */
export const instances = pgTable('instances', {
  id: uuid().primaryKey(),
  host: text().notNull(),
  version: text().notNull(),
  zoneData: text('zone_data').notNull(),
  startedAt: instant('started_at').notNull(),
  heartbeatAt: instant('heartbeat_at').notNull(),
  /** Silent for longer than this, it may be declared dead: its own word, as its own lease runs by it. */
  ttlSeconds: integer('ttl_seconds').notNull().default(10),
  /** When it left, or was declared dead. */
  diedAt: instant('died_at'),
});

/** One row: with which zone data the cursors of all schedules were last looked through. */
export const zoneData = pgTable(
  'zone_data',
  {
    one: boolean().primaryKey().default(true),
    version: text().notNull(),
    /** When that began: whoever planned by other data before it is of no account. */
    lookedThroughAt: instant('looked_through_at').notNull(),
  },
  (t) => [check('zone_data_one_row', sql`${t.one}`)],
);
