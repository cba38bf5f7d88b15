import { hash, randomBytes } from 'node:crypto';
import type { AttemptEntry, AttemptError } from './attempts/outcome.ts';
import { type Instant, EARLIEST, isoInstant, LATEST, uuidV7 } from '../instant.ts';
import { RUN_ENDS, type RunEnd } from '../run-end.ts';
import type { Bound } from '../schedules/expect.ts';
import type { Priority } from '../schedules/schedule.ts';

export const RUN_STATUSES = ['waiting', 'pending', 'running', ...RUN_ENDS] as const;
export type RunStatus = (typeof RUN_STATUSES)[number];

/** Fires of the schedule itself: one run for each (schedule, scheduledFor), with a computed id. */
const PLANNED_TRIGGERS = ['schedule', 'catchUp', 'backfill'] as const;
export const RUN_TRIGGERS = [...PLANNED_TRIGGERS, 'manual', 'after', 'api', 'notify', 'reported'] as const;
export type RunTrigger = (typeof RUN_TRIGGERS)[number];
type PlannedTrigger = (typeof PLANNED_TRIGGERS)[number];

/** `schedule`: an admin wrote the payload, in the schedule. `request`: it came with the call that made the run. */
export const PAYLOAD_SOURCES = ['schedule', 'request'] as const;
type PayloadSource = (typeof PAYLOAD_SOURCES)[number];

/** What a run has wherever it is looked at: its row, open or ended, and the API. */
export interface RunFields {
  id: string;
  scheduledFor: Instant;
  trigger: RunTrigger;
  status: RunStatus;
  /** Only for an ended run. */
  reason: string | null;
  /** Starts of an attempt; never lowered. */
  attempts: number;
  /** Failures that counted against `maxAttempts`. */
  failures: number;
  recoveries: number;
  /** When it was first found lost; null: never. */
  lostAt: Instant | null;
  /** An attempt may have arrived, and firelock asks the target; from this moment on it believes a "no". */
  inDoubtUntil: Instant | null;
  /** Until when it may be begun, or tried again; null: for ever. */
  beginBy: Instant | null;
  /** The limit of the run; null: none. */
  limitId: string | null;
  /** How many other, missed fires it stands for, and the first of them. */
  coalesced: number;
  coalescedFrom: Instant | null;
  claimedBy: string | null;
  claimedAt: Instant | null;
  handoffStartedAt: Instant | null;
  handedOffAt: Instant | null;
  finishedAt: Instant | null;
  latenessMs: number | null;
  executionId: string | null;
  error: AttemptError | null;
  key: string | null;
  /** As its row names what it follows: that run, or a schedule that is late. */
  parentId: string | null;
  /** The notifier whose message it is. */
  notifierId: string | null;
  /** Nothing is sent: its job reports. */
  observed: boolean;
  workerId: string | null;
  /** While it runs, or is observed: when it expires without a report from its worker or target. */
  expiresAt: Instant | null;
  /** 0 … 1, as last reported. */
  progress: number | null;
  createdAt: Instant;
  updatedAt: Instant;
}

/** The durable record of one fire, as the API shows it. */
export interface Run extends RunFields {
  /** Null: a one-off run, or a message of a notifier. */
  scheduleId: string | null;
  scheduleVersion: number | null;
  nextAttemptAt: Instant | null;
  /** The last answer of its target, or the result that was reported with its end. */
  result: { statusCode: number | null; body: string } | null;
  /** The run whose end it follows. */
  parentRunId: string | null;
  /** Ids, in the order of the call. */
  dependsOn: readonly string[];
  /** Ids of the runs that wait, or waited, for it. */
  dependents: readonly string[];
  /** For a pull run. */
  queue: string | null;
  /** Bounds of `expect` that did not hold. */
  unmet: readonly Bound[];
  unmetReason: string | null;
  /** Every attempt but a plain first success, which the run itself shows. */
  attemptLog: readonly AttemptEntry[];
  /** The client's own JSON text. */
  payload: string | null;
  payloadFrom: PayloadSource;
  priority: Priority;
  /** Of a one-off run that was asked for with others: theirs, and its name among them. */
  batchId: string | null;
  ref: string | null;
  /** Its own; of a run of a schedule, that one's as they are now. */
  labels: Readonly<Record<string, string>>;
}

/**
 * The whole log of a run: the recorded entries, and the one entry that is never recorded. A plain first-attempt success
 * (by far the most frequent attempt) and a worker's claim are visible in the run itself, and stored nowhere else.
 */
export function attemptLogOf(run: Run): AttemptEntry[] {
  const { attemptLog: recorded, handedOffAt, handoffStartedAt, claimedBy, attempts, queue } = run;
  // A worker's claim is its handoff, whatever happened before; for other runs, all attempts but the first are recorded.
  const isRecorded =
    queue === null ? recorded.length > 0 || attempts !== 1 : recorded.some((entry) => entry.attempt === attempts);
  if (isRecorded || handedOffAt === null || handoffStartedAt === null || claimedBy === null) return [...recorded];
  return [
    ...recorded,
    {
      attempt: attempts,
      instanceId: claimedBy,
      startedAt: handoffStartedAt,
      finishedAt: handedOffAt,
      outcome: 'accepted',
      statusCode: run.result?.statusCode ?? null,
      error: null,
      recovery: false,
      lookup: null,
    },
  ];
}

/** What happens to a run if one of its dependencies does not succeed: it fails without being started, or runs all the same. */
export const ON_DEPENDENCY_FAILURE = ['fail', 'run'] as const;
export type OnDependencyFailure = (typeof ON_DEPENDENCY_FAILURE)[number];

/** The end of a run, for the runs that depend on it. */
export interface Dependency {
  runId: string;
  status: RunStatus;
  error: AttemptError | null;
  result: Run['result'];
}

/** The run whose end another run follows. */
export interface ParentRun extends Dependency {
  scheduleId: string | null;
  reason: string | null;
}

export function dependencyOf({ runId, status, error, result }: Dependency): Dependency {
  return { runId, status, error, result };
}

/**
 * The id of a planned fire: UUIDv7 layout (RFC 9562 §5.7) whose 48 time bits are `scheduledFor` and whose other
 * bits come from SHA-256(uid, scheduledFor). Planning the same fire again, even after a restored backup,
 * gives the same id, so a receiver that remembers ids sees no second run.
 */
export function plannedRunId(scheduleUid: string, scheduledFor: Instant): string {
  HASHED.write(scheduleUid.replaceAll('-', ''), 0, 16, 'hex');
  HASHED.writeBigInt64BE(BigInt(scheduledFor), 16);
  return uuidV7(scheduledFor, hash('sha256', HASHED, 'hex'));
}

/** Used anew for each id. */
const HASHED = Buffer.alloc(24);

/** The id of any other run: the same layout, the rest random. */
export function randomRunId(scheduledFor: Instant): string {
  return uuidV7(scheduledFor, randomBytes(10).toString('hex'));
}

/** The instant in an id: with it, a run is found without searching all of history. */
export function scheduledForOf(runId: string): Instant {
  return parseInt(runId.slice(0, 8) + runId.slice(9, 13), 16);
}

/** The smallest id of that instant: ids are in the order of (scheduledFor, id). */
export function firstRunIdAt(scheduledFor: Instant): string {
  const time = Math.max(0, scheduledFor).toString(16).padStart(12, '0');
  return `${time.slice(0, 8)}-${time.slice(8)}-0000-0000-000000000000`;
}

/** Any other UUID carries a time that no run has, and that may not fit a timestamp. */
export function mayBeRunId(id: string): boolean {
  const at = scheduledForOf(id);
  return at >= EARLIEST && at <= LATEST;
}

/** `scheduleId@scheduledFor`: the name of a planned run, known before it is recorded. */
export function plannedRunName(scheduleId: string, scheduledFor: Instant): string {
  return `${scheduleId}@${isoInstant(scheduledFor)}`;
}

/** Null: it has none, as its time was not known before. */
export function runNameOf({
  scheduleId,
  scheduledFor,
  trigger,
}: Pick<Run, 'scheduleId' | 'scheduledFor' | 'trigger'>): string | null {
  return scheduleId !== null && isPlanned(trigger) ? plannedRunName(scheduleId, scheduledFor) : null;
}

export function isEnd(status: RunStatus): status is RunEnd {
  return (RUN_ENDS as readonly string[]).includes(status);
}

/** Whether it is of a schedule: not a one-off run, nor a notifier's message. */
export function isOfSchedule({ trigger }: { trigger: RunTrigger }): boolean {
  return trigger !== 'api' && trigger !== 'notify';
}

function isPlanned(trigger: RunTrigger): trigger is PlannedTrigger {
  return (PLANNED_TRIGGERS as readonly string[]).includes(trigger);
}
