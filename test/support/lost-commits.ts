import { sql } from 'drizzle-orm';
import type { Store } from './pipeline.ts';

/** A copy of all rows, as a standby has them that gets nothing more. Instances stay: a heartbeat follows soon. */
interface Standby {
  /** The database is what the standby was, as after a failover that lost all commits since. */
  promote(): Promise<void>;
}

const KEPT = new Set(['instances', 'firelock_migrations']);

export async function standbyOf(store: Pick<Store, 'rows' | 'database'>): Promise<Standby> {
  const tables = await store.rows<{ name: string }>(sql`SELECT c.relname AS name FROM pg_class c
    WHERE c.relnamespace = current_schema()::regnamespace AND c.relkind IN ('r', 'p') AND NOT c.relispartition ORDER BY 1`);
  const copied = tables
    .filter(({ name }) => !KEPT.has(name))
    .map(({ name }) => ({ name: sql.identifier(name), copy: sql.identifier(`copy of ${name}`) }));
  for (const { name, copy } of copied) await store.rows(sql`CREATE TABLE ${copy} AS TABLE ${name}`);
  return {
    promote: () =>
      store.database.transaction(async (tx) => {
        for (const { name, copy } of copied) {
          await tx.execute(sql`DELETE FROM ${name}`);
          await tx.execute(sql`INSERT INTO ${name} OVERRIDING SYSTEM VALUE TABLE ${copy}`);
        }
      }),
  };
}
