import { type SQL, sql } from 'drizzle-orm';
import { type NameRange, rangesOf } from '../../core/access/scope.ts';
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

/**
 * Schedules that belong to this one of the scopes, the rest among them: whose longest prefix it is. The prefixes are literals, as the
 * server can tell from its statistics how many schedules begin with one.
 */
export function isOfScope(prefix: string, scopes: readonly string[]): SQL {
  const longer = scopes.filter((other) => other !== prefix && other.startsWith(prefix));
  const others = rangesOf(longer).map((range) => `NOT (${within(range)})`);
  return sql.raw([...rangesOf(prefix === '' ? [] : [prefix]).map(within), ...others, 'true'].join(' AND '));
}

function within({ from, end }: NameRange): string {
  return `id >= '${from}' AND id < '${end}'`;
}
