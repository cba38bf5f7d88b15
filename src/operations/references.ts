/**
 * Guarantees: what a schedule, an open run or a notifier names is not deleted, and what does not exist is not named.
 * Transaction: the caller's. One that names a thing keeps its row until it ends; one that deletes it has locked that row.
 * If the process dies here: nothing of the caller's transaction is written.
 */
import { isDeepStrictEqual } from 'node:util';
import { type Scope, sees } from '../core/access/scope.ts';
import type { NamedNoun } from '../core/events.ts';
import { type HandoffTarget, connectionOf } from '../core/schedules/schedule.ts';
import type { Executor, Transaction } from '../postgres/executor.ts';
import { type NamedTable, type Namers, keepNamed, namersOf } from '../store/names/named-rows.ts';
import { OperationRefused } from './operation-refused.ts';

/** A reader does not need more. */
const MAX_NAMED = 100;

function namesOf(kind: string, ids: readonly string[]): string[] {
  if (ids.length === 0) return [];
  const andMore = ids.length > MAX_NAMED ? ' and more' : '';
  return [`${kind} ${ids.slice(0, MAX_NAMED).join(', ')}${andMore}`];
}

/**
 * The caller has locked its row: a call that names it anew waits until the transaction ends. `withSecrets`: only those
 * count that have secret values of their own. @throws OperationRefused, which names those that the caller's scope has
 */
export async function refuseWhileNamed(
  tx: Transaction,
  table: NamedTable,
  { id, scope, which = 'all' }: { id: string; scope: Scope; which?: 'all' | 'withSecrets' },
): Promise<void> {
  const namers = await namersOf(tx, { table, id, which, scope: null }, MAX_NAMED + 1);
  if (countOf(namers) === 0) return;
  const seen = scope === null ? namers : await namersOf(tx, { table, id, which, scope }, MAX_NAMED + 1);
  const named = [
    ...namesOf('schedules', seen.schedules),
    ...namesOf('open runs', seen.runs),
    ...namesOf('notifiers', seen.notifiers),
  ].join(' and ');
  const others = countOf(seen) < countOf(namers) ? ['by others, outside your scope'] : [];
  const by = [...(named === '' ? [] : [`by ${named}`]), ...others].join(' and ');
  const why = which === 'all' ? '' : ', whose own header values or signing secret would go to the other origin';
  throw new OperationRefused(409, `the ${NOUNS[table]} is named ${by}${why}`);
}

function countOf({ schedules, runs, notifiers }: Namers): number {
  return schedules.length + runs.length + notifiers.length;
}

const NOUNS: Record<NamedTable, NamedNoun> = {
  calendars: 'calendar',
  limits: 'limit',
  connections: 'connection',
  notifiers: 'notifier',
};

/** What a schedule or a one-off run may name. */
interface Naming {
  limit: string | null;
  target: HandoffTarget<unknown>;
}

/** `path`: the field that names something missing. */
export interface UnknownName<Namer> {
  namer: Namer;
  path: string;
  message: string;
}

/**
 * What these name and is missing, or beyond the caller's scope; but what one named before (`before`), it may go on naming. What is there
 * is kept from being deleted until the transaction ends.
 */
export async function unknownNamesOf<Namer>(
  tx: Executor,
  namers: readonly Namer[],
  namingOf: (namer: Namer) => Naming,
  scope: Scope,
  before: (namer: Namer) => Naming | null = () => null,
): Promise<UnknownName<Namer>[]> {
  const unknown: UnknownName<Namer>[] = [];
  for (const { table, path, what, nameIn } of NAMED) {
    const naming = namers.flatMap((namer) => {
      const name = nameIn(namingOf(namer));
      if (name === null) return [];
      const named = before(namer);
      return [{ namer, name, mayName: sees(scope, name) || (named !== null && nameIn(named) === name) }];
    });
    const there = await keepNamed(
      tx,
      table,
      naming.flatMap(({ name, mayName }) => (mayName ? [name] : [])),
    );
    for (const { namer, name, mayName } of naming)
      if (!mayName || !there.has(name))
        unknown.push({ namer, path, message: `names a ${what} that does not exist: ${name}` });
  }
  return unknown;
}

/** What is sent under the login of a connection: the words of a caller who does not see the connection may not. */
const HELD = ['url', 'method', 'headers', 'body', 'lookup', 'cancel'] as const;

/** Which fields of a target a caller changes, who does not see the connection that it goes through, before and after. */
export function heldFields(
  target: HandoffTarget<unknown>,
  before: HandoffTarget<unknown> | null,
  scope: Scope,
): { field: string; message: string }[] {
  const connection = connectionOf(target);
  if (connection === null || before === null || connectionOf(before) !== connection) return [];
  const [call, known] = [callOf(target), callOf(before)];
  if (sees(scope, connection) || call === null || known === null) return [];
  return HELD.filter((field) => !isDeepStrictEqual(call[field], known[field])).map((field) => ({
    field,
    message: 'stays as it is: the target goes through a connection outside your scope; name one of yours in its place',
  }));
}

function callOf(target: HandoffTarget<unknown>) {
  return target.type === 'http' ? target : null;
}

const NAMED: readonly {
  table: NamedTable;
  what: string;
  path: string;
  nameIn: (naming: Naming) => string | null;
}[] = [
  { table: 'limits', what: 'limit', path: '/limit', nameIn: ({ limit }) => limit },
  {
    table: 'connections',
    what: 'connection',
    path: '/target/connection',
    nameIn: ({ target }) => connectionOf(target),
  },
];
