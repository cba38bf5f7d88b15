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

export interface LockedRow {
  uid: string;
  id: string;
  version: number;
  edition: string | null;
  timing: string;
  planned_through: InstantText | null;
  lane: string;
  priority: number;
  next_occurrence_at: InstantText;
  created_at: InstantText;
  unusual: Partial<UnusualOfSchedule> | null;
}

/** What most schedules have nothing of. */
export interface UnusualOfSchedule {
  overlap: Exclude<Overlap, 'allow'>;
  limit_id: string;
  plan_failures: number;
  has_skips: true;
  is_bounded: true;
  expires_after_seconds: number;
  observes: true;
  observe_until: InstantText;
  taken_over: true;
}

const NOTHING: Partial<UnusualOfSchedule> = {};
const NONE: Skips = new Map();

export function lockedSchedule(row: LockedRow, lockedAt: Instant): LockedSchedule {
  const unusual = row.unusual ?? NOTHING;
  return {
    uid: row.uid,
    id: row.id,
    version: row.version,
    edition: row.edition,
    timing: row.timing,
    overlap: unusual.overlap ?? 'allow',
    lane: row.lane,
    priority: row.priority,
    limitId: unusual.limit_id ?? null,
    nextOccurrenceAt: toInstant(row.next_occurrence_at),
    plannedThrough: toInstantOrNull(row.planned_through),
    planFailures: unusual.plan_failures ?? 0,
    hasSkips: unusual.has_skips ?? false,
    skips: NONE,
    isBounded: unusual.is_bounded ?? false,
    expiresAfterSeconds: unusual.expires_after_seconds ?? null,
    observe: unusual.observes === true ? { until: toInstantOrNull(unusual.observe_until ?? null) } : null,
    lockedAt,
    createdAt: toInstant(row.created_at),
  };
}
