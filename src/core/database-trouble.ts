import { OWN_SHORTAGES } from './own-resources.ts';

/** The code of the error or of what caused it (the query builder wraps the driver's error). */
export function codeOf(error: unknown): string | undefined {
  for (let at = error; at instanceof Error; at = at.cause) {
    if ('code' in at && typeof at.code === 'string') return at.code;
  }
  return undefined;
}

/** A connection could not be opened, or is gone. */
export const CONNECTION_CODES: ReadonlySet<string> = new Set([
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

/** Why the database does not do its work, in words that may be told to anybody; null: it is no fault of the database. */
export function databaseTrouble(error: unknown): string | null {
  const code = codeOf(error);
  if (code === undefined) return null;
  if (/^57P0[1-3]$/.test(code)) return 'the database is shutting down or starting';
  if (CONNECTION_CODES.has(code) || /^(08|57P|25P0[34])/.test(code)) return OUT_OF_REACH;
  return OWN_SHORTAGES.get(code) ?? lastingTrouble(error);
}

export const OUT_OF_REACH = 'the database is out of reach';

/** The same of faults that last until an operator corrects them. */
export function lastingTrouble(error: unknown): string | null {
  const code = codeOf(error) ?? '';
  return LASTING.find(([codes]) => codes.test(code))?.[1] ?? null;
}

/** By SQLSTATE (PostgreSQL documentation, "PostgreSQL Error Codes"), and by the codes of `postgres/errors.ts`. */
const LASTING: readonly [codes: RegExp, words: string][] = [
  [/^53100$/, 'the disk of the database is full'],
  [/^53300$/, 'the database has too many connections'],
  [/^53/, 'the database lacks memory or another resource'],
  [/^58/, 'the machine of the database has a fault'],
  [/^28/, 'the database refuses the login: its role, its password, or the address that it comes from'],
  [/^3D000$/, 'the database does not exist'],
  [/^3F000$/, 'no schema of search_path exists that the role may use'],
  [/^42501$/, 'the role lacks a right in the database'],
  [/^25006$/, 'the database may only be read'],
  [/^NOT_UTF8$/, 'the database has an encoding other than UTF8'],
  [/^TLS_FAILED$/, 'the connection to the database is not as safe as sslmode asks'],
  [/^NOT_READ_COMMITTED$/, 'the database has a default isolation that a pooler keeps from being changed'],
];
