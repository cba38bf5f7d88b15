import { sql } from 'drizzle-orm';
import type { OfSchedule } from '../../core/runs/new-run.ts';

/** What a run takes from its schedule (`runOfSchedule`), as columns of the row `s`. */
export const OF_SCHEDULE = sql`s.uid, s.version, s.id, s.lane, s.priority, s.limit_id, s.overlap, s.outcome_watched,
  s.expires_after_seconds`;

export interface OfScheduleRow {
  uid: string;
  version: number;
  id: string;
  lane: string;
  priority: number;
  limit_id: string | null;
  overlap: string;
  outcome_watched: boolean;
  expires_after_seconds: number | null;
}

export function ofScheduleRow(row: OfScheduleRow): OfSchedule {
  return {
    scheduleUid: row.uid,
    scheduleVersion: row.version,
    scheduleId: row.id,
    lane: row.lane,
    priority: row.priority,
    limitId: row.limit_id,
    overlapGuarded: row.overlap !== 'allow',
    outcomeWatched: row.outcome_watched,
    expiresAfterSeconds: row.expires_after_seconds,
  };
}
