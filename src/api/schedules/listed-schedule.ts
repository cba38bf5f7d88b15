import { z } from 'zod';
import { isoInstant } from '../../core/instant.ts';
import type { Schedule } from '../../core/schedules/schedule.ts';
import type { RecentRun } from '../../store/runs/search/recent-runs.ts';
import { runFields } from '../runs/schemas.ts';
import { schedule } from './schemas.ts';

const { id, scheduledFor, trigger, status, latenessMs } = runFields;

/** A schedule in a list. */
export const listedSchedule = schedule.and(
  z.object({
    recentRuns: z
      .array(z.object({ id, scheduledFor, trigger, status, latenessMs }))
      .optional()
      .meta({ description: 'Its newest runs, newest first; only where `recent` is given.' }),
  }),
);

/** Null: the caller did not ask for them. */
export function recentRunsOf({ uid }: Schedule, runs: ReadonlyMap<string, readonly RecentRun[]> | null) {
  if (runs === null) return {};
  const answer = (run: RecentRun) => ({ ...run, scheduledFor: isoInstant(run.scheduledFor) });
  return { recentRuns: (runs.get(uid) ?? []).map(answer) };
}
