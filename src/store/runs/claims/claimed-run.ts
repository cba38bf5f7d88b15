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
  attempts: number;
  own_payload: string | null;
  claimed_at: InstantText;
  unusual: Partial<UnusualOfRun> | null;
}

/** What a first attempt of most runs has nothing of. */
export interface UnusualOfRun {
  limit_id: string;
  /** Else when it was scheduled. */
  due_at: InstantText;
  failures: number;
  recoveries: number;
  parent_run_id: string;
  notifier_id: string;
  has_dependencies: true;
  /** Else now. */
  first_claimed_at: InstantText;
  was_handed_off: true;
  lateness_ms: number;
  recovered_at: InstantText;
  in_doubt_until: InstantText;
  lookups: number;
  to_begin: true;
  of_deleted: true;
}

const NOTHING: Partial<UnusualOfRun> = {};

export function claimedRun(row: ClaimedRow, instanceId: string): ClaimedRun {
  const unusual = row.unusual ?? NOTHING;
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
    isLimited: unusual.limit_id !== undefined,
    dueAt: toInstantOrNull(unusual.due_at ?? null) ?? scheduledFor,
    attempt: row.attempts,
    failures: unusual.failures ?? 0,
    recoveries: unusual.recoveries ?? 0,
    ownPayload: row.own_payload,
    parentId: unusual.parent_run_id ?? null,
    notifierId: unusual.notifier_id ?? null,
    hasDependencies: unusual.has_dependencies ?? false,
    claimedAt,
    firstClaimedAt: toInstantOrNull(unusual.first_claimed_at ?? null) ?? claimedAt,
    wasHandedOff: unusual.was_handed_off ?? false,
    latenessMs: unusual.lateness_ms ?? null,
    recoveredAt: toInstantOrNull(unusual.recovered_at ?? null),
    inDoubtUntil: toInstantOrNull(unusual.in_doubt_until ?? null),
    lookups: unusual.lookups ?? 0,
    toBegin: unusual.to_begin ?? false,
    confirm: false,
    ofDeleted: unusual.of_deleted ?? false,
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
