import { type SQL, sql } from 'drizzle-orm';
import { BEFORE_SCOPE, type ScopeShares } from '../../core/access/scope-shares.ts';
import { laneOfQueue } from '../../core/runs/queue-lane.ts';

/**
 * The column `lane` of a run of the schedule `s`, as `laneInScope` says it. A schedule's own lane has no scope: so a changed
 * FIRELOCK_SCOPES holds from the next run on, and instances with different values do not undo what the other one wrote.
 */
export function laneOfRun(shares: ScopeShares): SQL {
  if (shares.length === 0) return sql`s.lane`;
  // No prefix contains a quote. As literals they leave the statement's text the same for as long as the process lives.
  const scopes = shares.map(
    ({ prefix }) => `WHEN starts_with(s.id, '${prefix}') THEN '${BEFORE_SCOPE}${prefix}'`,
  );
  return sql.raw(`s.lane || CASE WHEN starts_with(s.lane, '${laneOfQueue('')}') THEN ''
          ${scopes.join('\n          ')} ELSE '' END AS lane`);
}
