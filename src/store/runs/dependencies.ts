import { sql } from 'drizzle-orm';
import { isEnd } from '../../core/runs/run.ts';
import type { RunRecord } from '../../core/runs/run-record.ts';
import { ints, uuids } from '../../postgres/sql/arrays.ts';
import { TryAgain } from '../../postgres/errors.ts';
import type { Transaction } from '../../postgres/executor.ts';
import { lockEndedRuns, lockOpenRuns, presentAmong } from './lock-and-save.ts';

/**
 * Locks runs that get dependents, marks them, and answers where they stand; missing ones are left out. No other transaction ends or
 * opens one until this transaction ends. A transaction that ends one afterwards sees by its row that it has dependents.
 *
 * Locks in id order, and exclusive: shared locks would overtake a transaction that waits for an exclusive one, for ever if there are many.
 * @throws TryAgain if one moves from one table to the other between the questions
 */
export async function lockDependencies(tx: Transaction, ids: readonly string[]): Promise<Map<string, RunRecord>> {
  if (ids.length === 0) return new Map();
  const open = await lockOpenRuns(tx, ids, 'wait');
  const isOpen = new Set(open.map(({ id }) => id));
  const ended = await lockEndedRuns(
    tx,
    ids.filter((id) => !isOpen.has(id)),
    'wait',
  );
  const found = new Map([...open, ...ended].map((run) => [run.id, run]));
  const missing = ids.filter((id) => !found.has(id));
  if ((await presentAmong(tx, missing)).size > 0) throw new TryAgain('a run ended while it was looked at');
  await markAsDependedOn(
    tx,
    [...found.values()].filter(({ hasDependents }) => !hasDependents),
  );
  return found;
}

async function markAsDependedOn(tx: Transaction, runs: readonly RunRecord[]): Promise<void> {
  const idsOf = (ended: boolean) => runs.filter(({ status }) => isEnd(status) === ended).map(({ id }) => id);
  const [open, ended] = [idsOf(false), idsOf(true)];
  if (open.length > 0)
    await tx.execute(sql`-- markAsDependedOn
      UPDATE runs SET has_dependents = true WHERE id = ANY (${uuids(open)})`);
  if (ended.length > 0)
    await tx.execute(sql`-- markAsDependedOn
      UPDATE history SET has_dependents = true WHERE id = ANY (${uuids(ended)})`);
}

/** That one run waits for another. */
export interface Edge {
  runId: string;
  dependsOn: string;
  /** Its place in the list of the run that waits. */
  position: number;
}

/** In one statement. */
export const MAX_EDGES_AT_ONCE = 5_000;

/** At most MAX_EDGES_AT_ONCE of them. */
export async function recordDependencies(tx: Transaction, edges: readonly Edge[]): Promise<void> {
  await tx.execute(sql`-- recordDependencies
    INSERT INTO run_dependencies (run_id, depends_on, position)
    SELECT * FROM unnest(${uuids(edges.map((edge) => edge.runId))}, ${uuids(edges.map((edge) => edge.dependsOn))},
      ${ints(edges.map(({ position }) => position))})`);
}
