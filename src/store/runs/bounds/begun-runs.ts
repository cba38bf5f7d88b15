import { sql } from 'drizzle-orm';
import { uuids } from '../../../postgres/sql/arrays.ts';
import type { Transaction } from '../../../postgres/executor.ts';
import { BEFORE_BEGINNING, causesOfBeginnings, setBegun } from './bound-columns.ts';

/** Judges runs that this transaction has claimed for workers: an attempt of each began with its claim. */
export async function judgeBegunUnderLock(tx: Transaction, ids: readonly string[]): Promise<void> {
  if (ids.length === 0) return;
  await tx.execute(sql`-- judgeBegunUnderLock
    WITH begun AS MATERIALIZED (SELECT ${BEFORE_BEGINNING}, r.claimed_at FROM runs r WHERE r.id = ANY (${uuids(ids)})),
    judged AS (${causesOfBeginnings(sql`begun b`, sql`b.claimed_at`)})
    UPDATE runs r SET ${setBegun(sql`r.claimed_at`)} FROM begun WHERE r.id = begun.id`);
}
