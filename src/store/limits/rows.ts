import { sql } from 'drizzle-orm';
import type { NamedRows, NamedThing } from '../names/find-named.ts';
import { runsInScope } from '../scopes/in-scope.ts';

/** How many of its runs may be under way at once, and how they stand at this moment: those that a caller of some scope sees. */
export interface Limit extends NamedThing {
  description: string | null;
  maxRunning: number;
  /** Under way: claimed, or `running`. */
  running: number;
  /** Due, and not under way. */
  waiting: number;
}

export const LIMIT_ROWS: NamedRows<Limit> = {
  table: 'limits',
  whole: (page, scope) => {
    const conditions = [sql`r.limit_id = n.id`, ...runsInScope(scope, 'read')];
    return sql`SELECT n.*, counted.*, 0 AS row_bytes FROM (${page}) AS n, LATERAL (
      SELECT count(*) FILTER (WHERE r.status = 'running' OR r.claimed_by IS NOT NULL)::int AS running,
        count(*) FILTER (WHERE r.status = 'pending' AND r.claimed_by IS NULL
          AND r.due_at <= (SELECT clock_timestamp()))::int AS waiting
      FROM runs r WHERE ${sql.join(conditions, sql` AND `)}) AS counted`;
  },
  columnsOf: ({ description, maxRunning }) => ({ description, max_running: maxRunning }),
};
