import { sql } from 'drizzle-orm';
import type { Scope } from '../../core/access/scope.ts';
import { TryAgain } from '../../postgres/errors.ts';
import type { Executor, Transaction } from '../../postgres/executor.ts';
import { texts, uuids } from '../../postgres/sql/arrays.ts';
import { onlyColumnOf, rowsOf } from '../../postgres/sql/rows.ts';
import { runIsSeen } from '../scopes/in-scope.ts';
import { presentAmong } from './lock-and-save.ts';

/** Keys of one-off runs are unique over all of them: one scope. Those of manual fires have their schedule's uid for a scope. */
export const ONE_OFF_KEYS = '00000000-0000-0000-0000-000000000000';

interface KeyToTake {
  key: string;
  bodyHash: Buffer;
  runId: string;
}

/** The run that a key stands for, and the hash of the body that it was used with. */
interface KeyHolder {
  runId: string;
  bodyHash: string;
}

/**
 * Takes the keys of a scope that stand for no run yet, for the given runs; answers the run of each other key. A key is free again when
 * its run has left history. If another call takes a key at the same moment, this one waits for it. In key order, as everywhere.
 * @throws TryAgain if another call takes a free key, or the sweep deletes it, at the same moment
 */
export async function takeKeysUnlessTaken(
  tx: Transaction,
  scope: string,
  keys: readonly KeyToTake[],
): Promise<Map<string, KeyHolder>> {
  if (keys.length === 0) return new Map();
  const sorted = [...keys].sort((a, b) => (a.key < b.key ? -1 : 1));
  await tx.execute(sql`-- takeKeysUnlessTaken
    INSERT INTO run_keys (scope, key, body_hash, run_id)
    SELECT ${scope}::uuid, k.key, decode(k.hash, 'hex'), k.run_id
    FROM unnest(${texts(sorted.map(({ key }) => key))}, ${texts(sorted.map(({ bodyHash }) => bodyHash.toString('hex')))},
      ${uuids(sorted.map(({ runId }) => runId))}) WITH ORDINALITY AS k(key, hash, run_id, place)
    ORDER BY place ON CONFLICT DO NOTHING`);
  const holders = await holdersOf(tx, scope, sorted);
  const present = await presentAmong(
    tx,
    [...holders.values()].map(({ runId }) => runId),
  );
  const free = sorted.flatMap((wanted) => {
    const holder = holders.get(wanted.key);
    return !holder || present.has(holder.runId) ? [] : [{ ...wanted, goneId: holder.runId }];
  });
  await replaceHolders(tx, scope, free);
  for (const { key } of free) holders.delete(key);
  return holders;
}

/**
 * Leaves out keys that were taken just now. A separate statement, so that it sees what the other call has committed meanwhile.
 * @throws TryAgain if a row that was in the way is gone by now: no row stands for the new run either
 */
async function holdersOf(tx: Transaction, scope: string, keys: readonly KeyToTake[]): Promise<Map<string, KeyHolder>> {
  const rows = await rowsOf<{ key: string; body_hash: string; run_id: string }>(tx)(sql`-- holdersOf
    SELECT key, encode(body_hash, 'hex') AS body_hash, run_id FROM run_keys
    WHERE key = ANY (${texts(keys.map(({ key }) => key))}) AND scope = ${scope}::uuid`);
  if (rows.length < keys.length) throw new TryAgain('a key was swept at the same moment');
  const own = new Set(keys.map(({ runId }) => runId));
  const others = rows.filter(({ run_id }) => !own.has(run_id));
  return new Map(others.map(({ key, body_hash, run_id }) => [key, { runId: run_id, bodyHash: body_hash }]));
}

async function replaceHolders(
  tx: Transaction,
  scope: string,
  free: readonly (KeyToTake & { goneId: string })[],
): Promise<void> {
  if (free.length === 0) return;
  const rows = await rowsOf(tx)(sql`-- replaceHolders
    WITH held AS MATERIALIZED (
      SELECT k.key, f.hash, f.run_id
      FROM unnest(${texts(free.map(({ key }) => key))}, ${texts(free.map(({ bodyHash }) => bodyHash.toString('hex')))},
        ${uuids(free.map(({ runId }) => runId))}, ${uuids(free.map(({ goneId }) => goneId))}) AS f(key, hash, run_id, gone_id)
      JOIN run_keys k ON k.key = f.key AND k.scope = ${scope}::uuid AND k.run_id = f.gone_id
      ORDER BY k.key COLLATE "C" FOR UPDATE OF k
    )
    UPDATE run_keys k SET body_hash = decode(h.hash, 'hex'), run_id = h.run_id
    FROM held h WHERE k.key = h.key AND k.scope = ${scope}::uuid RETURNING k.key`);
  if (rows.length < free.length) throw new TryAgain('a key was taken at the same moment');
}

/** Ids of the runs in scope that a client's key stands for: one for each schedule it was used with, and a one-off run. */
export async function runIdsOfKey(db: Executor, key: string, scope: Scope): Promise<string[]> {
  const seen = scope === null ? sql`` : sql` AND ${runIsSeen(sql`run_id`, scope)}`;
  return onlyColumnOf<string>(db)(sql`-- runIdsOfKey
    SELECT run_id FROM run_keys WHERE key = ${key}${seen}`);
}
