import { sql } from 'drizzle-orm';
import type { SecretText } from '../../core/secrets/key-ring.ts';
import { texts, uuids } from '../../postgres/sql/arrays.ts';
import { limitLockWaits } from '../../postgres/sql/lock-limit.ts';
import type { Executor, Transaction } from '../../postgres/executor.ts';
import { rowsOf } from '../../postgres/sql/rows.ts';

/** The key of an observed schedule, as it is stored. */
export interface StoredPingKey {
  uid: string;
  key: SecretText;
}

/** The next ones by uid; `last` is null once all were read. */
export async function pageOfPingKeys(
  db: Executor,
  { after, limit }: { after: StoredPingKey | null; limit: number },
): Promise<{ found: StoredPingKey[]; last: StoredPingKey | null }> {
  const further = after ? sql`WHERE schedule_uid > ${after.uid}::uuid` : sql``;
  const found = await rowsOf<StoredPingKey>(db)(sql`-- pageOfPingKeys
    SELECT schedule_uid AS uid, key FROM ping_keys ${further} ORDER BY schedule_uid LIMIT ${limit}`);
  return { found, last: found.length < limit ? null : (found.at(-1) ?? null) };
}

/** As `rewriteConnections`: a key that was replaced meanwhile is written as it is now. */
export async function rewritePingKeys(
  tx: Transaction,
  keys: readonly StoredPingKey[],
  anew: (stored: StoredPingKey) => StoredPingKey,
): Promise<void> {
  await limitLockWaits(tx);
  const rows = await rowsOf<StoredPingKey>(tx)(sql`-- rewritePingKeys
    SELECT schedule_uid AS uid, key FROM ping_keys WHERE schedule_uid = ANY (${uuids(keys.map(({ uid }) => uid))})
    ORDER BY schedule_uid FOR NO KEY UPDATE`);
  const written = rows.map(anew);
  await tx.execute(sql`-- rewritePingKeys
    UPDATE ping_keys p SET key = k.key::jsonb
    FROM unnest(${uuids(written.map(({ uid }) => uid))}, ${texts(written.map(({ key }) => JSON.stringify(key)))}) AS k(uid, key)
    WHERE p.schedule_uid = k.uid`);
}
