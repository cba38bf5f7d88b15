import { type SQL, sql } from 'drizzle-orm';
import { type ScopeShares, prefixRanges } from '../../core/access/scope.ts';
import { BEFORE_SCOPE, laneOfQueue } from '../../core/runs/run-lane.ts';

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
 * Schedules that belong to this one of the scopes, the rest among them: whose longest prefix it is. As ranges of ids, and as literals: the
 * server can tell from its statistics how many rows these are, and finds few of them by an index of ids.
 */
export function isOfScope(prefix: string, scopes: readonly string[]): SQL {
  const longer = scopes.filter((other) => other !== prefix && other.startsWith(prefix));
  const [whole] = prefixRanges(prefix === '' ? [] : [prefix]);
  const parts: string[] = [];
  let from = whole?.from;
  for (const hole of prefixRanges(longer)) {
    parts.push(between(from, hole.from));
    from = hole.end;
  }
  parts.push(between(from, whole?.end));
  return sql.raw(`(${parts.join(' OR ')})`);
}

function between(from: string | undefined, end: string | undefined): string {
  const bounds = [
    ...(from === undefined ? [] : [`id >= '${from}'`]),
    ...(end === undefined ? [] : [`id < '${end}'`]),
  ];
  return bounds.length === 0 ? 'true' : bounds.join(' AND ');
}
