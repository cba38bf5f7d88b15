import { sql } from 'drizzle-orm';
import type { Executor } from './executor.ts';
import { rowsOf } from './sql/rows.ts';

/**
 * How many more connections the server would give to this role in this database. Of the sessions of other roles one sees that they are
 * there, and not of what kind.
 */
export async function freeConnections(db: Executor): Promise<number> {
  const [row] = await rowsOf<{ free: number }>(db)(sql`-- freeConnections
    WITH used AS MATERIALIZED (
      SELECT datid, usesysid FROM pg_stat_activity
      WHERE datid IS NOT NULL AND coalesce(backend_type, 'client backend') = 'client backend'
    ), role AS (SELECT oid, rolconnlimit, rolsuper FROM pg_roles WHERE rolname = session_user)
    SELECT least(
      current_setting('max_connections')::int - current_setting('superuser_reserved_connections')::int
        - coalesce(current_setting('reserved_connections', true)::int, 0) - (SELECT count(*) FROM used),
      CASE WHEN rolconnlimit >= 0 AND NOT rolsuper
        THEN rolconnlimit - (SELECT count(*) FROM used WHERE usesysid = role.oid) END,
      (SELECT datconnlimit - (SELECT count(*) FROM used WHERE datid = d.oid) FROM pg_database d
        WHERE datname = current_database() AND datconnlimit >= 0 AND NOT rolsuper)
    )::int AS free FROM role`);
  return row?.free ?? 0;
}
