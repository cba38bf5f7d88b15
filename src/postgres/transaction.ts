import type postgres from 'postgres';
import { isSessionLost } from './errors.ts';

/** A transaction in which nothing happens for this long is ended. */
export const TRANSACTION_LIMIT_MS = 15_000;

/**
 * The store locks in one statement and reads in the next, which needs READ COMMITTED, whatever default a role or
 * database has. A process that freezes, or is cut off, in the middle of a transaction must not keep its row locks for
 * ever. All of this is one message, so that it costs no more round trips than BEGIN.
 */
const BEGIN = `BEGIN ISOLATION LEVEL READ COMMITTED;
  SET LOCAL idle_in_transaction_session_timeout = ${TRANSACTION_LIMIT_MS}`;

/** Statements as the query builder sends them. */
interface Sender {
  unsafe(text: string, parameters?: unknown[]): postgres.PendingQuery<postgres.Row[]>;
}

/** What the query builder uses as the driver's transaction, and for its savepoints. */
export interface InTransaction extends Sender {
  savepoint<T>(work: (scope: InTransaction) => Promise<T>): Promise<T>;
}

/**
 * The driver's own begin() does not do: it allows no message before the first of the work, prepares COMMIT by name, and
 * writes a ROLLBACK to a socket that is gone, which would end the process.
 */
export async function transaction<T>(client: Sender, work: (scope: InTransaction) => Promise<T>): Promise<T> {
  await client.unsafe(BEGIN);
  const result = await scoped(client, work, () => client.unsafe('ROLLBACK'));
  const { command } = await client.unsafe('COMMIT');
  if (command !== 'COMMIT') throw new Error('the transaction had failed, and was rolled back');
  return result;
}

async function scoped<T>(
  client: Sender,
  work: (scope: InTransaction) => Promise<T>,
  rollBack: () => Promise<unknown>,
): Promise<T> {
  let isOver = false;
  const unsafe: Sender['unsafe'] = (text, parameters) => {
    // A late statement would run outside of a transaction, or in the next one.
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

async function savepoint<T>(outer: Sender, work: (scope: InTransaction) => Promise<T>): Promise<T> {
  await outer.unsafe('SAVEPOINT nested');
  return scoped(outer, work, () => outer.unsafe('ROLLBACK TO nested'));
}
