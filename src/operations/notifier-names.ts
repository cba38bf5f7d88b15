/**
 * Guarantees: a notifier names only what exists and what its caller's scope has, and no fallback leads back to itself.
 * Transaction: the caller's, in which lockFallbacks keeps others from naming fallbacks; what is named stays until it ends.
 * If the process dies here: nothing of the caller's transaction is written.
 */
import { beyondScope, type Scope, sees, seesAllOf } from '../core/access/scope.ts';
import { connectionOf } from '../core/schedules/schedule.ts';
import type { Transaction } from '../postgres/executor.ts';
import type { Asked, NamedFault } from './named-changes.ts';
import { heldFields } from './references.ts';
import { keepNamed } from '../store/names/named-rows.ts';
import { readFallbacks, type StoredNotifier } from '../store/notifiers/rows.ts';

type Naming = Pick<StoredNotifier, 'filter' | 'target' | 'fallback'>;

/** What it names already, it may keep. */
type Named = Asked<StoredNotifier, Naming>;

export async function faultsOfNames(tx: Transaction, named: Named): Promise<NamedFault[]> {
  const { scope, before, content } = named;
  const held = heldFields(content.target, before?.target ?? null, scope);
  return [
    ...filterFaults(named),
    ...held.map(({ field, message }) => ({ path: `/channel/target/${field}`, message })),
    ...(await missingIn(tx, named)),
    ...(await fallbackFaults(tx, named)),
  ];
}

/** Judges the whole filter, not only what the edit adds: the caller who writes a notifier decides where its messages go. */
function filterFaults({ scope, content: { filter } }: Named): NamedFault[] {
  if (scope === null) return [];
  if (filter.ids.length === 0)
    return [{ path: '/filter/ids', message: `must name what it tells of: everything ${beyondScope(scope)}` }];
  return filter.ids.flatMap((pattern, index) =>
    isWithin(scope, pattern) ? [] : [{ path: `/filter/ids/${index}`, message: beyondScope(scope) }],
  );
}

function isWithin(scope: Scope, pattern: string): boolean {
  return pattern.endsWith('*') ? seesAllOf(scope, pattern.slice(0, -1)) : sees(scope, pattern);
}

async function missingIn(tx: Transaction, { scope, before, content }: Named): Promise<NamedFault[]> {
  const connection = connectionOf(content.target);
  if (connection === null) return [];
  const mayName = sees(scope, connection) || (before !== null && connection === connectionOf(before.target));
  if (mayName && (await keepNamed(tx, 'connections', [connection])).has(connection)) return [];
  const message = `names a connection that does not exist: ${connection}`;
  return [{ path: '/channel/target/connection', message }];
}

async function fallbackFaults(
  tx: Transaction,
  { id, scope, before, content: { fallback } }: Named,
): Promise<NamedFault[]> {
  const fault = (message: string) => [{ path: '/fallback', message }];
  if (fallback === null) return [];
  if (fallback === id) return fault('names the notifier itself');
  const mayName = sees(scope, fallback) || fallback === before?.fallback;
  if (!mayName || !(await keepNamed(tx, 'notifiers', [fallback])).has(fallback))
    return fault(`names a notifier that does not exist: ${fallback}`);
  const next = await readFallbacks(tx);
  const chain = [id];
  for (let at: string | undefined = fallback; at !== undefined; at = next.get(at)) {
    chain.push(sees(scope, at) ? at : '…');
    if (at === id) return fault(`makes a cycle: ${chain.join(' → ')}`);
  }
  return [];
}
