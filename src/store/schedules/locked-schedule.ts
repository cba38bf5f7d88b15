import type { Instant } from '../../core/instant.ts';
import type { Observe, Overlap, Schedule } from '../../core/schedules/schedule.ts';
import { type InstantText, toInstant, toInstantOrNull } from '../../postgres/sql/rows.ts';
import type { Skips } from './skips.ts';

/** A schedule, and what its fire times are computed from. */
export interface TimedSchedule extends Pick<Schedule, 'uid' | 'id' | 'version' | 'createdAt'> {
  /** For `readTiming`. */
  timing: string;
}

/** A due schedule under the caller's fire-lock: what planning needs, and what the guard of the commit compares. */
export interface LockedSchedule extends TimedSchedule {
  /** Of that version (`Edition`). */
  edition: string | null;
  overlap: Overlap;
  lane: string;
  /** Its rank: the smaller, the sooner. */
  priority: number;
  /** The limit of its runs; null: none. */
  limitId: string | null;
  nextOccurrenceAt: Instant;
  /** No occurrence up to this one is planned again; null: none has been planned. */
  plannedThrough: Instant | null;
  planFailures: number;
  /** Some of its fires may not be to be made. */
  hasSkips: boolean;
  /** Those of them that are due. */
  skips: Skips;
  /** It has bounds (`expect`), so that its runs have some. */
  isBounded: boolean;
  /** Of its runs; null: they never expire. */
  expiresAfterSeconds: number | null;
  /** Its runs up to then are observed; null: none are. */
  observe: Observe | null;
  lockedAt: Instant;
}

/** Usual values are null. */
export interface LockedRow {
  timing: string;
  planned_through: InstantText | null;
  uid: string;
  id: string;
  version: number;
  edition: string | null;
  overlap: Exclude<Overlap, 'allow'> | null;
  lane: string;
  priority: number;
  limit_id: string | null;
  next_occurrence_at: InstantText;
  plan_failures: number | null;
  created_at: InstantText;
  has_skips: true | null;
  is_bounded: true | null;
  expires_after_seconds: number | null;
  observes: true | null;
  observe_until: InstantText | null;
  taken_over: true | null;
}

const NONE: Skips = new Map();

export function lockedSchedule(row: LockedRow, lockedAt: Instant): LockedSchedule {
  return {
    uid: row.uid,
    id: row.id,
    version: row.version,
    edition: row.edition,
    timing: row.timing,
    overlap: row.overlap ?? 'allow',
    lane: row.lane,
    priority: row.priority,
    limitId: row.limit_id,
    nextOccurrenceAt: toInstant(row.next_occurrence_at),
    plannedThrough: toInstantOrNull(row.planned_through),
    planFailures: row.plan_failures ?? 0,
    hasSkips: row.has_skips ?? false,
    skips: NONE,
    isBounded: row.is_bounded ?? false,
    expiresAfterSeconds: row.expires_after_seconds,
    observe: row.observes === null ? null : { until: toInstantOrNull(row.observe_until) },
    lockedAt,
    createdAt: toInstant(row.created_at),
  };
}
