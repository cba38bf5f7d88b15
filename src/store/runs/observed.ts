import { hash, randomBytes } from 'node:crypto';
import { sql, type SQL } from 'drizzle-orm';
import type { Instant } from '../../core/instant.ts';
import type { KeyRing, SecretText } from '../../core/secrets/key-ring.ts';
import { openPingKey, sealPingKey } from '../../core/secrets/sealed-values.ts';
import { texts, uuids } from '../../postgres/sql/arrays.ts';
import type { Executor, Transaction } from '../../postgres/executor.ts';
import { type InstantText, rowsOf, toInstant } from '../../postgres/sql/rows.ts';
import type { Report } from '../../core/runs/observed-report.ts';
import type { RunRecord } from '../../core/runs/run-record.ts';
import { type RecordRow, RECORD_COLUMNS, toRecord } from './record-columns.ts';

const FREE = sql`r.observed AND r.execution_id IS NULL`;

/**
 * The open runs that decide which one a report is for (`matchReport`): of each rule the first, by an index of its own. The schedule's row
 * is locked, so no other report takes one of them; they may still expire, or be cancelled.
 */
export async function openFor(tx: Transaction, uid: string, { kind, rid }: Report): Promise<RunRecord[]> {
  const first = (status: 'pending' | 'running') => sql`(SELECT ${RECORD_COLUMNS.runs} FROM runs r
      WHERE r.schedule_uid = ${uid} AND ${FREE} AND r.status = ${status} ORDER BY r.id LIMIT 1)`;
  const parts = [
    ...(rid === null ? [] : [ofRid('runs', uid, rid)]),
    first('pending'),
    ...(kind === 'start' ? [] : [first('running')]),
  ];
  const rows = await rowsOf<RecordRow>(tx)(sql`-- openFor
    ${oneAfterAnother(parts)}`);
  return rows.map(toRecord);
}

/** Those that have ended: each day of history is asked, so only where none that is open decides. */
export async function endedFor(tx: Transaction, uid: string, { kind, rid }: Report): Promise<RunRecord[]> {
  const expired = sql`(SELECT ${RECORD_COLUMNS.history} FROM history r
      WHERE r.schedule_uid = ${uid} AND ${FREE} AND r.status = 'failed' AND r.error->>'kind' = 'expired' ORDER BY r.id DESC LIMIT 1)`;
  const parts = [
    ...(rid === null ? [] : [ofRid('history', uid, rid)]),
    ...(kind === 'success' || kind === 'failure' ? [expired] : []),
  ];
  if (parts.length === 0) return [];
  const rows = await rowsOf<RecordRow>(tx)(sql`-- endedFor
    ${oneAfterAnother(parts)}`);
  return rows.map(toRecord);
}

function ofRid(table: 'runs' | 'history', uid: string, rid: string): SQL {
  return sql`(SELECT ${RECORD_COLUMNS[table]} FROM ${sql.raw(table)} r
      WHERE r.schedule_uid = ${uid} AND r.observed AND r.execution_id = ${rid} LIMIT 1)`;
}

function oneAfterAnother(parts: SQL[]): SQL {
  return sql.join(parts, sql` UNION ALL `);
}

const KEY_BYTES = 16;

/** As it can be sent: 22 characters. */
const PING_KEY = /^[A-Za-z0-9_-]{22}$/;

export function isPingKey(text: string): boolean {
  return PING_KEY.test(text);
}

/** By which a key is found: the table does not say what the key is, where it is encrypted. */
export function hashOfPingKey(key: string): string {
  return hash('sha256', key);
}

interface KeyRow {
  uid: string;
  key: SecretText;
}

/** Gives each of these schedules another key; those that they had are unknown from the commit on. Answers the keys in this order. */
export async function mintPingKeys(
  tx: Transaction,
  ring: KeyRing | undefined,
  uids: readonly string[],
): Promise<string[]> {
  if (uids.length === 0) return [];
  const keys = uids.map(() => randomBytes(KEY_BYTES).toString('base64url'));
  const stored = keys.map((key, index) => JSON.stringify(sealPingKey(ring, uids[index] ?? '', key)));
  await tx.execute(sql`-- mintPingKeys
    INSERT INTO ping_keys (schedule_uid, key_hash, key)
    SELECT k.uid, decode(k.hash, 'hex'), k.key::jsonb
    FROM unnest(${uuids(uids)}, ${texts(keys.map(hashOfPingKey))}, ${texts(stored)}) AS k(uid, hash, key)
    ON CONFLICT (schedule_uid) DO UPDATE SET key_hash = excluded.key_hash, key = excluded.key`);
  return keys;
}

export async function deletePingKeys(tx: Transaction, uids: readonly string[]): Promise<void> {
  if (uids.length === 0) return;
  await tx.execute(sql`-- deletePingKeys
    DELETE FROM ping_keys WHERE schedule_uid = ANY (${uuids(uids)})`);
}

/**
 * The schedule that has the key with this hash, its row locked as an edit locks it, and the moment since when; null: the key is unknown,
 * also where an edit took it away while its lock was waited for.
 */
export async function lockByPingKey(
  tx: Transaction,
  keyHash: string,
): Promise<{ uid: string; id: string; now: Instant } | null> {
  const [row] = await rowsOf<{ uid: string; id: string; now: InstantText }>(tx)(sql`-- lockByPingKey
    WITH locked AS MATERIALIZED (
      SELECT s.uid, s.id FROM ping_keys k JOIN schedules s ON s.uid = k.schedule_uid
      WHERE k.key_hash = decode(${keyHash}, 'hex') FOR NO KEY UPDATE OF s, k
    ) SELECT uid, id, clock_timestamp() AS now FROM locked`);
  return row ? { ...row, now: toInstant(row.now) } : null;
}

/** By uid; without keys that no key of this process decrypts. They work all the same. */
export async function readPingKeys(db: Executor, ring: KeyRing, uids: readonly string[]): Promise<Map<string, string>> {
  if (uids.length === 0) return new Map();
  const rows = await rowsOf<KeyRow>(db)(sql`-- readPingKeys
    SELECT schedule_uid AS uid, key FROM ping_keys WHERE schedule_uid = ANY (${uuids(uids)})`);
  return new Map(
    rows.flatMap((row) => {
      const text = openPingKey(ring, row);
      return text === null ? [] : [[row.uid, text] as const];
    }),
  );
}
