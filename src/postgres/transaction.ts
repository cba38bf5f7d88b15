import type postgres from 'postgres';
import { isSessionLost } from './errors.ts';

/** After which a transaction is ended in which nothing happens. */
export const TRANSACTION_LIMIT_MS = 15_000;

/**
 * The store locks in one statement and looks in the next, which READ COMMITTED is needed for, whatever a role or database says is its
 * default.
 *
 * A process that is frozen, or cut off, in the middle of a transaction must not hold its row locks for ever.
 *
 * All of it is one message, so that it costs no round trip more than BEGIN.
 */
const BEGIN = `BEGIN ISOLATION LEVEL READ COMMITTED;
  SET LOCAL idle_in_transaction_session_timeout = ${TRANSACTION_LIMIT_MS}`;

/** Statements as the query builder sends them. */
interface Sender {
  unsafe(text: string, parameters?: unknown[]): postgres.PendingQuery<postgres.Row[]>;
}

/** What the query builder takes for the driver's transaction, and for its savepoints. */
export interface Scope extends Sender {
  savepoint<T>(work: (scope: Scope) => Promise<T>): Promise<T>;
}

/**
 * Not the driver's own begin(): that one knows no message before the work's first, has its COMMIT prepared by name, and writes a ROLLBACK
 * to a socket that is gone, which would end the process.
 */
export async function transaction<T>(client: Sender, work: (scope: Scope) => Promise<T>): Promise<T> {
  await client.unsafe(BEGIN);
  const result = await scoped(client, work, () => client.unsafe('ROLLBACK'));
  const { command } = await client.unsafe('COMMIT');
  if (command !== 'COMMIT') throw new Error('the transaction had failed, and was rolled back');
  return result;
}

async function scoped<T>(
  client: Sender,
  work: (scope: Scope) => Promise<T>,
  rollBack: () => Promise<unknown>,
): Promise<T> {
  let isOver = false;
  const unsafe: Sender['unsafe'] = (text, parameters) => {
    // What is late would be done in no transaction, or in that of the next work.
    if (isOver) throw new Error('the transaction is over');
    return client.unsafe(text, parameters);
  };
  try {
    return await work({ unsafe, savepoint: (inner) => savepoint({ unsafe }, inner) });
  } catch (error) {
    isOver = true;
    if (!isSessionLost(error)) await rollBack();
    throw error;
  } finally {
    isOver = true;
  }
}

async function savepoint<T>(outer: Sender, work: (scope: Scope) => Promise<T>): Promise<T> {
  await outer.unsafe('SAVEPOINT nested');
  return scoped(outer, work, () => outer.unsafe('ROLLBACK TO nested'));
}
