/** What the store's callers can act on. Decided by SQLSTATE and connection codes, never by an error's text. */

/** The client-side time limit of a statement or transaction ran out: what it did is unknown. */
export class QueryTimeout extends Error {
  override readonly name = 'QueryTimeout';
  constructor(limitMs: number) {
    super(`no answer from the database within ${limitMs} ms`);
  }
}

/** The work found its data changed under it and wants to be done again from the start. */
export class TryAgain extends Error {
  override readonly name = 'TryAgain';
}

/** The work cannot be done at this moment, through no fault of the caller; later it can. */
export class NotNow extends Error {
  override readonly name = 'NotNow';
}

/** A connection that was not had, or is gone, as this side has found. */
export class ConnectionLost extends Error {
  override readonly name = 'ConnectionLost';
  readonly code: string;
  constructor(code: 'CONNECT_TIMEOUT' | 'CONNECTION_CLOSED' | 'CONNECTION_ENDED', message: string) {
    super(message);
    this.code = code;
  }
}

/** A server that may not be written where another one, or none, is wanted. */
export class ServerReadOnly extends Error {
  override readonly name = 'ServerReadOnly';
  readonly code = READ_ONLY;
}

/** What this process must not set, and the database has otherwise. */
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

/** None of the servers of a URL can be used; its code is that of the one that says most of why. */
export class NoServer extends Error {
  override readonly name = 'NoServer';
  readonly code: string | undefined;
  constructor(tried: readonly { host: string; error: unknown }[]) {
    super(
      `no server can be used: ${tried.map(({ host, error }) => `${host}: ${messageOf(error)}`).join('; ')}`,
    );
    const codes = tried.map(({ error }) => codeOf(error) ?? '');
    this.code = codes.find((code) => !CONNECTION_CODES.has(code)) ?? codes[0];
  }
}

/** The database is out of reach, refuses work, or did not answer in time: nothing the caller sent was wrong. */
export function isUnavailable(error: unknown): boolean {
  if (error instanceof QueryTimeout || error instanceof NotNow) return true;
  const code = codeOf(error);
  if (code === undefined) return false;
  return (
    CONNECTION_CODES.has(code) ||
    /^(08|28|53|57|58)/.test(code) ||
    [READ_ONLY, NOT_READ_COMMITTED, '3D000'].includes(code)
  );
}

/** The session may not write, and will not as long as it lives, even where the database's default is another by now. */
export function isReadOnly(error: unknown): boolean {
  return codeOf(error) === READ_ONLY;
}

/** The connection is gone, or the server has said that it ends it. */
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
 * A value of the batch cannot be written: refused by the database (SQLSTATE classes 21 cardinality, 22 data, 23 constraint,
 * 54 limit), or already on this side. The others of the batch can.
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

/** Anywhere else a RangeError or a TypeError is a mistake of the program, and says nothing about data. */
export function markAsOfDatabaseWork(error: unknown): void {
  if (error instanceof Error) ofDatabaseWork.add(error);
}

const ofDatabaseWork = new WeakSet<Error>();

export function isUniqueViolation(error: unknown): boolean {
  return codeOf(error) === '23505';
}

/** Another transaction is in the way for now: a lock was not had in time, an object is in use, or a row must not be there yet. */
export function isNotNow(error: unknown): boolean {
  return [LOCK_NOT_AVAILABLE, '55006', '57014', '23514'].includes(codeOf(error) ?? '');
}

/** A row that the statement writes was held by another transaction for too long; it has written nothing. */
export function isLockedByOthers(error: unknown): boolean {
  return codeOf(error) === LOCK_NOT_AVAILABLE;
}

/** The server stopped the statement, since its time was up. */
export function isStatementCancelled(error: unknown): boolean {
  return codeOf(error) === '57014';
}

/** A table is gone. */
export function isTableGone(error: unknown): boolean {
  return codeOf(error) === '42P01';
}

const READ_ONLY = '25006';
const NOT_READ_COMMITTED = 'NOT_READ_COMMITTED';
const LOCK_NOT_AVAILABLE = '55P03';
const CONNECTION_CODES = new Set([
  'CONNECTION_CLOSED',
  'CONNECTION_ENDED',
  'CONNECTION_DESTROYED',
  'CONNECT_TIMEOUT',
  'ECONNREFUSED',
  'ECONNRESET',
  'ECONNABORTED',
  'EPIPE',
  'ETIMEDOUT',
  'EHOSTUNREACH',
  'ENETUNREACH',
  'ENETDOWN',
  'ENOTFOUND',
  'EAI_AGAIN',
  'ENOENT',
]);

function messageOf(error: unknown): string {
  // Where a name has several addresses, the error of all of them has no text.
  return error instanceof Error && error.message !== '' ? error.message : (codeOf(error) ?? String(error));
}

/** The code of the error or of what caused it (the query builder wraps the driver's error). */
function codeOf(error: unknown): string | undefined {
  for (let at = error; at instanceof Error; at = at.cause) {
    if ('code' in at && typeof at.code === 'string') return at.code;
  }
  return undefined;
}
