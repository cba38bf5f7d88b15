import { sql } from 'drizzle-orm';
import type { Notifier } from '../../core/alerts/notifier.ts';
import { texts } from '../../postgres/sql/arrays.ts';
import type { Executor, Transaction } from '../../postgres/executor.ts';
import { type InstantText, rowsOf, toInstant } from '../../postgres/sql/rows.ts';

interface Row {
  uid: string;
  id: string;
  description: string | null;
  enabled: boolean;
  kinds: Notifier['on'];
  filter: Notifier['filter'];
  channel: Notifier['channel'];
  remind_seconds: number | null;
  fallback: string | null;
  version: number;
  updated_at: InstantText;
}

function toNotifier({ kinds, remind_seconds, updated_at, ...row }: Row): Notifier {
  return { ...row, on: kinds, remindSeconds: remind_seconds, updatedAt: toInstant(updated_at) };
}

/** Those that are enabled. */
export async function readEnabledNotifiers(db: Executor): Promise<Notifier[]> {
  const rows = await rowsOf<Row>(db)(sql`-- readEnabledNotifiers
    SELECT * FROM notifiers WHERE enabled ORDER BY id`);
  return rows.map(toNotifier);
}

/**
 * Locks these notifiers, by id, where they are enabled. Under this lock it is decided which message tells of an episode, and when a message
 * is closed. `locked`: other transactions have these.
 */
export async function lockNotifiersToTell(
  tx: Transaction,
  ids: readonly string[],
): Promise<{ free: ReadonlyMap<string, Notifier>; locked: ReadonlySet<string> }> {
  if (ids.length === 0) return { free: new Map(), locked: new Set() };
  const named = sql`SELECT * FROM notifiers WHERE id = ANY (${texts([...new Set(ids)])}) AND enabled`;
  const rows = await rowsOf<Row>(tx)(sql`-- lockNotifiersToTell
    ${named} ORDER BY id FOR NO KEY UPDATE SKIP LOCKED`);
  const free = new Map(rows.map((row) => [row.id, toNotifier(row)]));
  const there = await rowsOf<Row>(tx)(sql`-- lockNotifiersToTell
    ${named}`);
  return { free, locked: new Set(there.map(({ id }) => id).filter((id) => !free.has(id))) };
}
