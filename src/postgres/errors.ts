/** The errors on which the store's callers can act. Recognised by SQLSTATE and connection codes, never by an error's text. */
import { CONNECTION_CODES, codeOf } from '../core/database-trouble.ts';
import type { BatchFault } from '../runtime/loop/batch.ts';

/** The client-side time limit of a statement or transaction passed: its effect is unknown. */
export class QueryTimeout extends Error {
  override readonly name: string = 'QueryTimeout';
  constructor(limitMs: number) {
    super(`no answer from the database within ${limitMs} ms`);
  }
}

/** The same, of work that had begun, while the database went on answering others: the work was too much, or a row of it is locked. */
export class OutOfTime extends QueryTimeout {
  override readonly name: string = 'OutOfTime';
}

/** The work found its data changed meanwhile and must be done again from the start. */
export class TryAgain extends Error {
  override readonly name = 'TryAgain';
}

/** The work cannot be done at this moment, through no fault of the caller; later it can. */
export class NotNow extends Error {
  override readonly name = 'NotNow';
}

/** This side found that a connection could not be opened, or is gone. */
export class ConnectionLost extends Error {
  override readonly name = 'ConnectionLost';
  readonly code: string;
  constructor(code: 'CONNECT_TIMEOUT' | 'CONNECTION_CLOSED' | 'CONNECTION_ENDED', message: string) {
    super(message);
    this.code = code;
  }
}

/** The connection to a server is not as safe as the URL demands. */
export class TlsFailed extends Error {
  override readonly name = 'TlsFailed';
  readonly code = TLS_FAILED;
}

/** The server does not accept writes: another server must be used, or none. */
export class ServerReadOnly extends Error {
  override readonly name = 'ServerReadOnly';
  readonly code = READ_ONLY;
}

/** A setting of the database that firelock cannot use and must not change. */
export class NotReadCommitted extends Error {
  override readonly name = 'NotReadCommitted';
  readonly code = NOT_READ_COMMITTED;
  constructor(role: string, isolation: string) {
    super(
      `statements of role ${role} run as ${isolation}, and a pooler is between, so that a session cannot set it: ` +
        `ALTER ROLE ${role} SET default_transaction_isolation = 'read committed', then let the pooler open its connections anew`,
    );
  }
}

/** None of the servers of a URL can be used; the code is that of the most informative error. */
export class NoServer extends Error {
  override readonly name = 'NoServer';
  readonly code: string | undefined;
  constructor(tried: readonly { host: string; error: unknown }[]) {
    super(`no server can be used: ${tried.map(({ host, error }) => `${host}: ${messageOf(error)}`).join('; ')}`);
    const codes = tried.map(({ error }) => codeOf(error) ?? '');
    this.code = codes.find((code) => !CONNECTION_CODES.has(code)) ?? codes[0];
  }
}

/** The database is out of reach, refuses work, or did not answer in time: the caller's input was not at fault. */
export function isUnavailable(error: unknown): boolean {
  if (error instanceof QueryTimeout || error instanceof NotNow) return true;
  const code = codeOf(error);
  if (code === undefined) return false;
  return (
    CONNECTION_CODES.has(code) ||
    /^(08|28|53|57|58)/.test(code) ||
    [READ_ONLY, NOT_READ_COMMITTED, TLS_FAILED, '3D000'].includes(code)
  );
}

/** The session may not write, and never will, even if the database's default has changed meanwhile. */
export function isReadOnly(error: unknown): boolean {
  return codeOf(error) === READ_ONLY;
}

/** The connection is gone, or the server has announced that it ends it. */
export function isSessionLost(error: unknown): boolean {
  const code = codeOf(error);
  return code !== undefined && (CONNECTION_CODES.has(code) || /^(08|57P|25P03|25P04)/.test(code));
}

/** Deadlock, serialization failure, or data that moved: the whole transaction can be repeated. */
export function isRepeatable(error: unknown): boolean {
  if (error instanceof TryAgain) return true;
  const code = codeOf(error);
  return code === '40P01' || code === '40001';
}

/**
 * One value of the batch cannot be written: the database refused it (SQLSTATE classes 21 cardinality, 22 data, 23
 * constraint, 54 limit), or this side did. The other values of the batch can be written.
 */
export function isDataRefused(error: unknown): boolean {
  const code = codeOf(error);
  if (code !== undefined) return /^(21|22|23|54)/.test(code);
  let isOfDatabaseWork = false;
  for (let at = error; at instanceof Error; at = at.cause) {
    isOfDatabaseWork ||= ofDatabaseWork.has(at);
    if (isOfDatabaseWork && (at instanceof RangeError || at instanceof TypeError)) return true;
  }
  return false;
}

/** What is wrong with the batch of work that failed so; null: nothing that could be known. A loop divides a batch at fault. */
export function batchFaultOf(error: unknown): BatchFault | null {
  if (isDataRefused(error)) return 'refused';
  return error instanceof OutOfTime || isStatementCancelled(error) ? 'outOfTime' : null;
}

/** Anywhere else, a RangeError or a TypeError is a mistake of the program, and says nothing about the data. */
export function markAsOfDatabaseWork(error: unknown): void {
  if (error instanceof Error) ofDatabaseWork.add(error);
}

const ofDatabaseWork = new WeakSet<Error>();

export function isUniqueViolation(error: unknown): boolean {
  return codeOf(error) === '23505';
}

/** Another transaction is in the way for now: a lock was not free in time, an object is in use, or a row must not exist yet. */
export function isNotNow(error: unknown): boolean {
  return [LOCK_NOT_AVAILABLE, '55006', '57014', '23514'].includes(codeOf(error) ?? '');
}

/** Another transaction had a row locked for too long that the statement writes; the statement has written nothing. */
export function isLockedByOthers(error: unknown): boolean {
  return codeOf(error) === LOCK_NOT_AVAILABLE;
}

/** The server stopped the statement, since its time limit passed. */
export function isStatementCancelled(error: unknown): boolean {
  return codeOf(error) === '57014';
}

/** The role lacks the right. */
export function isRightMissing(error: unknown): boolean {
  return codeOf(error) === '42501';
}

/** A table no longer exists. */
export function isTableGone(error: unknown): boolean {
  return codeOf(error) === '42P01';
}

const READ_ONLY = '25006';
const TLS_FAILED = 'TLS_FAILED';
const NOT_READ_COMMITTED = 'NOT_READ_COMMITTED';
const LOCK_NOT_AVAILABLE = '55P03';

function messageOf(error: unknown): string {
  // If a name has several addresses, the error that covers all of them has no text.
  return error instanceof Error && error.message !== '' ? error.message : (codeOf(error) ?? String(error));
}
