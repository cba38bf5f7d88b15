import type { Instant } from '../../../core/instant.ts';
import type { RunRecord } from '../../../core/runs/run-record.ts';
import type { RunTrigger } from '../../../core/runs/run.ts';
import { type InstantText, scheduleIdOf, toInstant, toInstantOrNull } from '../../../postgres/sql/rows.ts';
import type { LockedSchedule } from '../../schedules/locked-schedule.ts';
import type { Intent } from '../intents/intent.ts';

type Named = 'id' | 'scheduleUid' | 'scheduleVersion' | 'scheduledFor' | 'dueAt' | 'trigger';
type Taken = 'lane' | 'priority' | 'ownPayload' | 'parentId' | 'notifierId';
type Tried = 'failures' | 'recoveries' | 'recoveredAt' | 'latenessMs' | 'inDoubtUntil' | 'lookups';

/** A run this instance may hand off: what an attempt needs beside the definition of its version. */
export interface ClaimedRun extends Pick<RunRecord, Named | Taken | Tried> {
  /** The id under which it was claimed: this process may have got another one since. */
  instanceId: string;
  /** Of its version (`Edition`). */
  edition: string | null;
  /** Null: a one-off run. */
  scheduleId: string | null;
  /** Once it ends, its place is free for others. */
  isLimited: boolean;
  /** The number of the attempt this claim is for: with the claimant, the guard of its settlement. */
  attempt: number;
  /** It waited for other runs; its target gets how they ended. */
  hasDependencies: boolean;
  claimedAt: Instant;
  /** Of its first attempt. */
  firstClaimedAt: Instant;
  /** The target had acknowledged the attempt in doubt, and then nothing was heard of it any more. */
  wasHandedOff: boolean;
  /** Bounds go by the beginning of its first attempt, which is made durable before anything is sent. */
  toBegin: boolean;
  /** Whether the claim has to be confirmed before it is acted on, however fresh it is. */
  confirm: boolean;
  /** Its schedule was deleted: it is not handed off. */
  ofDeleted: boolean;
}

/** What is usual of a first attempt is null. */
export interface ClaimedRow {
  id: string;
  scheduled_for: InstantText;
  schedule_uid: string;
  schedule_version: number;
  edition: string | null;
  schedule_id: string;
  trigger: RunTrigger;
  lane: string;
  priority: number;
  limit_id: string | null;
  /** Null: when it was scheduled. */
  due_at: InstantText | null;
  attempts: number;
  failures: number | null;
  recoveries: number | null;
  own_payload: string | null;
  parent_run_id: string | null;
  notifier_id: string | null;
  has_dependencies: true | null;
  claimed_at: InstantText;
  /** Null: now. */
  first_claimed_at: InstantText | null;
  was_handed_off: true | null;
  /** bigint: a string on the wire. */
  lateness_ms: string | null;
  recovered_at: InstantText | null;
  in_doubt_until: InstantText | null;
  lookups: number | null;
  to_begin: true | null;
  of_deleted: true | null;
}

export function claimedRun(row: ClaimedRow, instanceId: string): ClaimedRun {
  const scheduledFor = toInstant(row.scheduled_for);
  const claimedAt = toInstant(row.claimed_at);
  return {
    id: row.id,
    instanceId,
    scheduledFor,
    scheduleUid: row.schedule_uid,
    scheduleVersion: row.schedule_version,
    edition: row.edition,
    scheduleId: scheduleIdOf(row.schedule_id),
    trigger: row.trigger,
    lane: row.lane,
    priority: row.priority,
    isLimited: row.limit_id !== null,
    dueAt: toInstantOrNull(row.due_at) ?? scheduledFor,
    attempt: row.attempts,
    failures: row.failures ?? 0,
    recoveries: row.recoveries ?? 0,
    ownPayload: row.own_payload,
    parentId: row.parent_run_id,
    notifierId: row.notifier_id,
    hasDependencies: row.has_dependencies ?? false,
    claimedAt,
    firstClaimedAt: toInstantOrNull(row.first_claimed_at) ?? claimedAt,
    wasHandedOff: row.was_handed_off ?? false,
    latenessMs: row.lateness_ms === null ? null : Number(row.lateness_ms),
    recoveredAt: toInstantOrNull(row.recovered_at),
    inDoubtUntil: toInstantOrNull(row.in_doubt_until),
    lookups: row.lookups ?? 0,
    toBegin: row.to_begin ?? false,
    confirm: false,
    ofDeleted: row.of_deleted ?? false,
  };
}

/** A planned run that was recorded with its claim. */
export function newlyClaimedRun(
  schedule: LockedSchedule,
  intent: Intent,
  instanceId: string,
  claimedAt: Instant,
): ClaimedRun {
  return {
    id: intent.id,
    instanceId,
    scheduledFor: intent.scheduledFor,
    scheduleUid: schedule.uid,
    scheduleVersion: schedule.version,
    edition: schedule.edition,
    scheduleId: schedule.id,
    trigger: intent.trigger,
    lane: schedule.lane,
    priority: schedule.priority,
    isLimited: false,
    dueAt: intent.dueAt,
    attempt: 1,
    failures: 0,
    recoveries: 0,
    ownPayload: null,
    parentId: null,
    notifierId: null,
    hasDependencies: false,
    claimedAt,
    firstClaimedAt: claimedAt,
    wasHandedOff: false,
    latenessMs: null,
    recoveredAt: null,
    inDoubtUntil: null,
    lookups: 0,
    toBegin: schedule.isBounded,
    confirm: false,
    ofDeleted: false,
  };
}
