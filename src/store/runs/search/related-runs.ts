import { type SQL, sql } from 'drizzle-orm';
import type { Scope } from '../../../core/access/scope.ts';
import { anyUid, uuids } from '../../../postgres/sql/arrays.ts';
import type { Executor } from '../../../postgres/executor.ts';
import { rowsOf } from '../../../postgres/sql/rows.ts';
import { runsInScope } from '../../scopes/in-scope.ts';

/** Which other runs are shown of a run. */
export interface Shown {
  scope: Scope;
  /** Of each kind. */
  limit: number;
}

/** By id: runs whose dependencies, and whose dependents, are asked for; and what runs follow. */
interface Asked {
  waited: readonly string[];
  waitedFor: readonly string[];
  parents: readonly string[];
}

interface RelatedRuns {
  /** As listed. */
  dependsOn: ReadonlyMap<string, string[]>;
  /** The oldest first; they may be any number. */
  dependents: ReadonlyMap<string, string[]>;
  isSeen: (parentId: string | null) => boolean;
}

/** A run that many may name can have any number of dependents of others: of each run, so many for each one to show are looked at. */
const LOOKED_AT_FOR_EACH = 10;

/** What the scope allows to see of it, by one statement, whatever there is; none if nothing is asked for. */
export async function relatedRuns(db: Executor, asked: Asked, shown: Shown): Promise<RelatedRuns> {
  const { scope, limit } = shown;
  const isAsked = asked.waited.length + asked.waitedFor.length > 0;
  const rows = isAsked
    ? await rowsOf<Row>(db)(sql`-- relatedRuns
    ${related(asked, shown)}`)
    : [];
  const of = (kind: Row['kind']) =>
    new Map(rows.filter((row) => row.kind === kind).map(({ id, others }) => [id, others.split(',').slice(0, limit)]));
  const parents = of('parent');
  return {
    dependsOn: of('dependsOn'),
    dependents: of('dependent'),
    isSeen: (id) => id !== null && (scope === null || parents.has(id)),
  };
}

interface Row {
  kind: 'dependsOn' | 'dependent' | 'parent';
  id: string;
  /** Joined by commas. */
  others: string;
}

function related({ waited, waitedFor, parents }: Asked, { scope, limit }: Shown): SQL {
  const most = scope === null ? limit : limit * LOOKED_AT_FOR_EACH;
  const each = (ids: readonly string[]) => sql`unnest(${uuids(ids)}) AS i(id)`;
  return sql`WITH related AS MATERIALIZED (
      SELECT 'dependsOn' AS kind, i.id, e.other, e.place FROM ${each(waited)}, LATERAL (
        SELECT depends_on AS other, position AS place FROM run_dependencies WHERE run_id = i.id ORDER BY position LIMIT ${most}) AS e
      WHERE ${anyUid(sql`i.id`)}
      UNION ALL
      SELECT 'dependent', i.id, e.other, 0 FROM ${each(waitedFor)}, LATERAL (
        SELECT run_id AS other FROM run_dependencies WHERE depends_on = i.id ORDER BY run_id LIMIT ${most}) AS e
      WHERE ${anyUid(sql`i.id`)}
      UNION ALL
      SELECT 'parent', i.id, i.id, 0 FROM unnest(${uuids(parents)}) AS i(id)
    )${scope === null ? sql`` : seen(scope)}
    SELECT kind, id, string_agg(other::text, ',' ORDER BY place, other) AS others FROM related
    ${scope === null ? sql`` : sql`WHERE other IN (TABLE seen)`} GROUP BY kind, id`;
}

/**
 * The history of all days is named once, however many kinds are asked for. It is asked for ids alone (OFFSET 0 keeps the scope outside): so
 * the planner does not estimate for each day how many runs are in the scope.
 */
function seen(scope: readonly string[]): SQL {
  return sql`, seen AS MATERIALIZED (SELECT r.id FROM (
      SELECT id, schedule_id, trigger, key, notifier_id FROM all_runs WHERE id = ANY (ARRAY(SELECT other FROM related)) OFFSET 0
    ) AS r WHERE ${sql.join(runsInScope(scope, 'read'), sql` AND `)})`;
}
