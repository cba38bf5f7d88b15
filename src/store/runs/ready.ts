import { type SQL, sql } from 'drizzle-orm';

/** In a row of these columns, written or about to be. */
interface ReadyColumns {
  dueAt: SQL;
  limitId: SQL;
  /** Left out: the run is recorded now, and has no place yet. */
  admittedAt?: SQL;
  /** Left out: it is to be sent. */
  observed?: SQL;
}

/**
 * The value of `ready`, for all statements that write it: without a limit a run may be claimed once it is due, with a limit while it
 * has a place of it. The constraint `runs_place` refuses anything else.
 */
export function isReady({ dueAt, limitId, admittedAt, observed }: ReadyColumns, now: SQL): SQL {
  const isAdmitted = admittedAt ? sql`${admittedAt} IS NOT NULL` : sql`false`;
  const isSent = observed ? sql`WHEN ${observed} THEN false ` : sql``;
  return sql`CASE ${isSent}WHEN ${limitId} IS NULL THEN ${dueAt} <= ${now} ELSE ${isAdmitted} END`;
}
