/**
 * Guarantees: what a schedule or an open run names is not deleted, and what does not exist is not named.
 * Transaction: the caller's. One that names a thing keeps its row until it ends; one that deletes it has locked that row.
 * If the process dies here: nothing of the caller's transaction is written.
 */
import type { Executor, Transaction } from '../postgres/executor.ts';
import { type NamedTable, keepNamed, namersOf } from '../store/names/named-rows.ts';

/** Schedules or open runs name it: it cannot be deleted. */
export class StillNamed extends Error {
  override readonly name = 'StillNamed';

  readonly what: string;

  constructor(what: string, schedules: readonly string[], runs: readonly string[]) {
    const named = [...namesOf('schedules', schedules), ...namesOf('open runs', runs)];
    super(`named by ${named.join(' and ')}`);
    this.what = what;
  }
}

/** A reader does not need more. */
const MAX_NAMED = 100;

function namesOf(kind: string, ids: readonly string[]): string[] {
  if (ids.length === 0) return [];
  const andMore = ids.length > MAX_NAMED ? ' and more' : '';
  return [`${kind} ${ids.slice(0, MAX_NAMED).join(', ')}${andMore}`];
}

/** The caller has locked its row: a call that names it anew waits until the transaction ends. @throws StillNamed */
export async function refuseWhileNamed(tx: Transaction, table: NamedTable, id: string): Promise<void> {
  const { schedules, runs } = await namersOf(tx, table, id, MAX_NAMED + 1);
  if (schedules.length > 0 || runs.length > 0)
    throw new StillNamed(table === 'limits' ? 'limit' : 'connection', schedules, runs);
}

/** Those that name something missing. What the others name is kept from being deleted until the transaction ends. */
export async function namersOfMissing<Namer>(
  tx: Executor,
  table: NamedTable,
  namers: readonly Namer[],
  nameIn: (namer: Namer) => string,
): Promise<Namer[]> {
  const there = await keepNamed(tx, table, namers.map(nameIn));
  return namers.filter((namer) => !there.has(nameIn(namer)));
}
