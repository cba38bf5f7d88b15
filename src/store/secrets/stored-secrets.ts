import { sql } from 'drizzle-orm';
import type { HandoffTarget } from '../../core/schedules/schedule.ts';
import type { StoredDefinition } from '../../core/schedules/stored-definition.ts';
import { ints, texts, uuids } from '../../postgres/sql/arrays.ts';
import { limitLockWaits } from '../../postgres/sql/lock-limit.ts';
import type { Executor, Transaction } from '../../postgres/executor.ts';
import { rowsOf } from '../../postgres/sql/rows.ts';

/** One version of a schedule or notifier, or the definition of one-off runs. */
export interface DefinitionKey {
  uid: string;
  version: number;
}

export interface StoredSecrets extends DefinitionKey {
  target: HandoffTarget;
}

interface Row extends DefinitionKey {
  definition: StoredDefinition;
}

const HOLDS_SECRETS = sql`(jsonb_path_exists(definition, '$.target.headers.*') OR jsonb_path_exists(definition, '$.target.lookup.headers.*')
  OR jsonb_path_exists(definition, '$.target.cancel.headers.*') OR jsonb_path_exists(definition, '$.target.secret ? (@ != null)')
  OR jsonb_path_exists(definition, '$.target.body.secrets.*'))`;

/** The definitions with secret values, among the next ones by number; `last` is null once all were read. */
export async function pageOfSecrets(
  db: Executor,
  { after, limit }: { after: DefinitionKey | null; limit: number },
): Promise<{ found: StoredSecrets[]; last: DefinitionKey | null }> {
  const further = after
    ? sql`WHERE (schedule_uid, version) > (${after.uid}::uuid, ${after.version}::int)`
    : sql``;
  const rows = await rowsOf<Omit<Row, 'definition'> & { definition: StoredDefinition | null }>(
    db,
  )(sql`-- pageOfSecrets
    WITH page AS MATERIALIZED (
      SELECT schedule_uid AS uid, version, definition FROM schedule_versions ${further}
      ORDER BY schedule_uid, version LIMIT ${limit}
    )
    SELECT uid, version, CASE WHEN ${HOLDS_SECRETS} THEN definition END AS definition FROM page ORDER BY uid, version`);
  const found = rows.flatMap(({ definition, ...key }) =>
    definition ? [withTarget({ ...key, definition })] : [],
  );
  return { found, last: rows.length < limit ? null : (rows.at(-1) ?? null) };
}

/**
 * Locks definitions, in the order of their keys, and writes the targets that `anew` makes from their state under the
 * lock.
 * @throws an error for which isLockedByOthers is true if another transaction has one of them locked for longer than a moment
 */
export async function rewriteTargets(
  tx: Transaction,
  keys: readonly DefinitionKey[],
  anew: (stored: StoredSecrets) => StoredSecrets,
): Promise<void> {
  await limitLockWaits(tx);
  const wanted = sql`unnest(${uuids(keys.map(({ uid }) => uid))}, ${ints(keys.map(({ version }) => version))}) AS k(uid, version)`;
  await tx.execute(sql`-- rewriteTargets
    SELECT FROM schedule_versions v JOIN ${wanted} ON v.schedule_uid = k.uid AND v.version = k.version
    ORDER BY v.schedule_uid, v.version FOR NO KEY UPDATE OF v`);
  // In another statement, which sees their present state.
  const rows = await rowsOf<Row>(tx)(sql`-- rewriteTargets
    SELECT v.schedule_uid AS uid, v.version, v.definition FROM schedule_versions v
    JOIN ${wanted} ON v.schedule_uid = k.uid AND v.version = k.version`);
  const targets = rows.map((row) => JSON.stringify(anew(withTarget(row)).target));
  await tx.execute(sql`-- rewriteTargets
    UPDATE schedule_versions v SET definition = jsonb_set(v.definition, '{target}', k.target::jsonb)
    FROM unnest(${uuids(rows.map(({ uid }) => uid))}, ${ints(rows.map(({ version }) => version))}, ${texts(targets)})
      AS k(uid, version, target)
    WHERE v.schedule_uid = k.uid AND v.version = k.version`);
}

function withTarget({ uid, version, definition }: Row): StoredSecrets {
  return { uid, version, target: definition.target };
}
