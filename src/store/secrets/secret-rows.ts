import { type SQL, sql } from 'drizzle-orm';
import type { Connection } from '../../core/connections/connection.ts';
import type { HandoffTarget } from '../../core/schedules/schedule.ts';
import type { SecretText } from '../../core/secrets/key-ring.ts';
import type { Executor, Transaction } from '../../postgres/executor.ts';
import { ints, texts, uuids } from '../../postgres/sql/arrays.ts';
import { limitLockWaits, recordsOf } from '../../postgres/sql/rows.ts';
import { columnsIn, CONNECTION_ROWS, definitionText } from '../connections/find-connections.ts';
import { listNamed } from '../names/named-rows.ts';
import { type Sample, COST, oneSample } from '../reports/gauges.ts';

/** Rows of one kind with secret values. */
export interface SecretRows<Key, Row extends Key> {
  /** Those with such values, among the next ones by their key; `last` is null once all were read. */
  page(db: Executor, at: PageAt<Key>): Promise<SecretPage<Key, Row>>;
  /**
   * Locks rows, in the order of their keys, and writes what `anew` makes from their state under the lock. What they say stays as it is.
   * @throws an error for which isLockedByOthers is true if another transaction has one of them locked for longer than a moment
   */
  rewrite(tx: Transaction, rows: readonly Key[], anew: (stored: Row) => Row): Promise<void>;
}

export interface PageAt<Key> {
  after: Key | null;
  limit: number;
}

export interface SecretPage<Key, Row> {
  found: Row[];
  last: Key | null;
}

interface Rewritten<Key, Row> {
  /** Of the table, as `t`, the rows of these keys, as a FROM. */
  stored: (keys: readonly Key[]) => SQL;
  order: SQL;
  columns: SQL;
  /** What an UPDATE says from the name of the table on. */
  update: (rows: readonly Row[]) => SQL;
}

function rewriterOf<Key, Row extends Key & object>(of: Rewritten<Key, Row>): SecretRows<Key, Row>['rewrite'] {
  return async (tx, keys, anew) => {
    await limitLockWaits(tx);
    await tx.execute(sql`-- rewriterOf
      SELECT FROM ${of.stored(keys)} ORDER BY ${of.order} FOR NO KEY UPDATE OF t`);
    // In another statement, which sees their present state.
    const rows = await recordsOf<Row>(tx)(sql`-- rewriterOf
      SELECT ${of.columns} FROM ${of.stored(keys)}`);
    await tx.execute(sql`-- rewriterOf
      UPDATE ${of.update(rows.map(anew))}`);
  };
}

function lastOf<Key>(rows: readonly Key[], { limit }: PageAt<Key>): Key | null {
  return rows.length < limit ? null : (rows.at(-1) ?? null);
}

/** One version of a schedule or notifier, or the definition of one-off runs. */
export interface DefinitionKey {
  uid: string;
  version: number;
}

export interface StoredSecrets extends DefinitionKey {
  target: HandoffTarget;
}

const HOLDS_SECRETS = sql`(jsonb_path_exists(definition, '$.target.headers.*') OR jsonb_path_exists(definition, '$.target.lookup.headers.*')
  OR jsonb_path_exists(definition, '$.target.cancel.headers.*') OR jsonb_path_exists(definition, '$.target.secret ? (@ != null)')
  OR jsonb_path_exists(definition, '$.target.body.secrets.*'))`;

export const DEFINITION_SECRETS: SecretRows<DefinitionKey, StoredSecrets> = {
  page: pageOfDefinitions,
  rewrite: rewriterOf({
    stored: (keys) => sql`schedule_versions t
      JOIN unnest(${uuids(keys.map(({ uid }) => uid))}, ${ints(keys.map(({ version }) => version))}) AS k(uid, version)
      ON t.schedule_uid = k.uid AND t.version = k.version`,
    order: sql`t.schedule_uid, t.version`,
    columns: sql`t.schedule_uid AS uid, t.version, t.definition->'target' AS target`,
    update: (rows) => sql`schedule_versions t SET definition = jsonb_set(t.definition, '{target}', k.target::jsonb)
      FROM unnest(${uuids(rows.map(({ uid }) => uid))}, ${ints(rows.map(({ version }) => version))},
        ${texts(rows.map(({ target }) => JSON.stringify(target)))}) AS k(uid, version, target)
      WHERE t.schedule_uid = k.uid AND t.version = k.version`,
  }),
};

async function pageOfDefinitions(
  db: Executor,
  at: PageAt<DefinitionKey>,
): Promise<SecretPage<DefinitionKey, StoredSecrets>> {
  const further = at.after
    ? sql`WHERE (schedule_uid, version) > (${at.after.uid}::uuid, ${at.after.version}::int)`
    : sql``;
  type Row = DefinitionKey & { target: HandoffTarget | null };
  const rows = await recordsOf<Row>(db)(sql`-- pageOfDefinitions
    WITH page AS MATERIALIZED (
      SELECT schedule_uid AS uid, version, definition FROM schedule_versions ${further}
      ORDER BY schedule_uid, version LIMIT ${at.limit}
    )
    SELECT uid, version, CASE WHEN ${HOLDS_SECRETS} THEN definition->'target' END AS target FROM page ORDER BY uid, version`);
  return {
    found: rows.flatMap(({ target, ...key }) => (target ? [{ ...key, target }] : [])),
    last: lastOf(rows, at),
  };
}

export const CONNECTION_SECRETS: SecretRows<Connection, Connection> = {
  page: async (db, at) => {
    const found = await listNamed(db, CONNECTION_ROWS, { scope: null, after: at.after?.id, limit: at.limit });
    return { found, last: lastOf(found, at) };
  },
  rewrite: rewriterOf({
    stored: (connections) => sql`connections t WHERE t.id = ANY (${texts(connections.map(({ id }) => id))})`,
    order: sql`t.id`,
    columns: columnsIn(sql`t`),
    update: (rows) => sql`connections t SET definition = k.definition::jsonb
      FROM unnest(${texts(rows.map(({ id }) => id))}, ${texts(rows.map(definitionText))}) AS k(id, definition) WHERE t.id = k.id`,
  }),
};

/** The key of an observed schedule, as it is stored. */
export interface StoredPingKey {
  uid: string;
  key: SecretText;
}

const PING_KEY = sql`t.schedule_uid AS uid, t.key`;

/** One that was replaced meanwhile is written as it is now. */
export const PING_KEY_SECRETS: SecretRows<StoredPingKey, StoredPingKey> = {
  page: pageOfPingKeys,
  rewrite: rewriterOf({
    stored: (keys) => sql`ping_keys t WHERE t.schedule_uid = ANY (${uuids(keys.map(({ uid }) => uid))})`,
    order: sql`t.schedule_uid`,
    columns: PING_KEY,
    update: (rows) => sql`ping_keys t SET key = k.key::jsonb
      FROM unnest(${uuids(rows.map(({ uid }) => uid))}, ${texts(rows.map(({ key }) => JSON.stringify(key)))}) AS k(uid, key)
      WHERE t.schedule_uid = k.uid`,
  }),
};

async function pageOfPingKeys(
  db: Executor,
  at: PageAt<StoredPingKey>,
): Promise<SecretPage<StoredPingKey, StoredPingKey>> {
  const further = at.after ? sql`WHERE t.schedule_uid > ${at.after.uid}::uuid` : sql``;
  const found = await recordsOf<StoredPingKey>(db)(sql`-- pageOfPingKeys
    SELECT ${PING_KEY} FROM ping_keys t ${further} ORDER BY t.schedule_uid LIMIT ${at.limit}`);
  return { found, last: lastOf(found, at) };
}

interface UsedKeys {
  /** Each once. */
  keyIds: string[];
  /** Where the next page begins; null: this was the last. */
  next: string | null;
}

/**
 * The keys that encrypt the secret values of some schedules, by uid: as many schedules as can be read in a moment. The
 * first page has those of all connections and notifiers too, which are few.
 */
export function sampleUsedKeys(db: Executor, after: string | null): Promise<Sample<UsedKeys>> {
  const further = after === null ? sql`` : sql`WHERE uid > ${after}::uuid`;
  return oneSample<UsedKeys>(
    db,
    sql`-- sampleUsedKeys
    WITH page AS MATERIALIZED (SELECT uid, version FROM schedules ${further} ORDER BY uid LIMIT ${PAGE}),
    paths(path) AS (VALUES ('$.target.headers.*.keyId'::jsonpath), ('$.target.secret[*].keyId'),
      ('$.target.body.secrets.*.keyId'), ('$.target.body.secrets.*.seal.keyId'), ('$.target.lookup.headers.*.keyId'), ('$.target.cancel.headers.*.keyId')),
    used AS (
      SELECT key.id FROM page JOIN schedule_versions v ON v.schedule_uid = page.uid AND v.version = page.version,
        paths, LATERAL jsonb_path_query(v.definition, paths.path) AS key(id)
      UNION
      SELECT k.key->'keyId' FROM page JOIN ping_keys k ON k.schedule_uid = page.uid WHERE jsonb_typeof(k.key) = 'object'
      UNION
      SELECT key.id FROM connections c,
        LATERAL jsonb_path_query(c.definition, '$.**.keyId ? (@.type() == "string")') AS key(id) WHERE ${after === null}
      UNION
      SELECT key.id FROM notifiers n JOIN schedule_versions v ON v.schedule_uid = n.uid AND v.version = n.version,
        LATERAL jsonb_path_query(v.definition, '$.target.**.keyId ? (@.type() == "string")') AS key(id) WHERE ${after === null}
    )
    SELECT (SELECT coalesce(json_agg(id), '[]') FROM used) AS key_ids,
      (SELECT uid FROM page ORDER BY uid OFFSET ${PAGE - 1}) AS next, ${COST} AS cost_ms`,
  );
}

const PAGE = 10_000;
