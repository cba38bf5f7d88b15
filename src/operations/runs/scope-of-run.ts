/**
 * Guarantees: which scopes have a run is said once for all that is done with it.
 * Transaction: none.
 * If the process dies here: nothing is written.
 */
import { type ScopeShares, NO_SHARES } from '../../core/access/scope.ts';
import type { OfSchedule } from '../../core/runs/new-run.ts';
import { laneInScope } from '../../core/runs/run-lane.ts';
import type { RunRecord } from '../../core/runs/run-record.ts';
import { NO_SCHEDULE, scheduleIdOf } from '../../postgres/sql/rows.ts';

/** By what scopes have a run without a schedule. */
export function nameOfOneOff({ scheduleId, key, notifierId }: RunRecord): string | null {
  return scheduleId === NO_SCHEDULE ? (notifierId ?? key) : null;
}

/** The name by which a run has a scope; null: it has none. */
export function nameOfRun({ scheduleId, key }: Pick<RunRecord, 'scheduleId' | 'key'>): string | null {
  return scheduleIdOf(scheduleId) ?? key;
}

/** What a run takes from its schedule, in the lane of that one's scope. */
export function inLaneOfScope(
  definition: OfSchedule | null,
  shares: ScopeShares = NO_SHARES,
): OfSchedule | null {
  if (definition === null) return null;
  return { ...definition, lane: laneInScope(shares, definition.lane, definition.scheduleId) };
}
