/** What an instance may run out of itself, by the code of the error (errno(3)): neither a target nor the database is at fault. */
export const OWN_SHORTAGES: ReadonlyMap<string, string> = new Map([
  ['EMFILE', 'this process has no file descriptor left'],
  ['ENFILE', 'this machine has no file descriptor left'],
  ['EADDRNOTAVAIL', 'this machine has no port left for another connection'],
  ['ENOBUFS', 'this machine has no buffer left for another connection'],
  ['ENOMEM', 'this machine has no memory left'],
]);

/** What an instance has to work with: its database, connections, file descriptors. */
export type ResourceEvent =
  /** Work of this instance failed because of its database (database-trouble.ts). */
  | { type: 'databaseFailed'; error: unknown }
  /** Runs that were written while the database's clock was ahead go on as of now. */
  | { type: 'runsBroughtBack'; count: number }
  | { type: 'migrationsApplied'; count: number }
  | { type: 'migrationWaits'; wait: MigrationWait }
  /** This instance has looked after its connections; `without`: for what it has none. */
  | { type: 'connectionsOpened'; without: readonly string[] }
  /** This instance lacks what it takes to send (own-resources.ts), and leaves runs to others; and it may have it again. */
  | { type: 'resourcesLacked'; code: string }
  | { type: 'resourcesBack' }
  /** How many file descriptors this instance may need, and how many it may have; null: the platform does not say. */
  | { type: 'descriptorsCounted'; needed: number; limit: number | null };

/** A migration cannot go on at this moment, and is tried again. */
export interface MigrationWait {
  migration: string;
  /** The beginning of the statement that could not have its lock. */
  statement: string;
  error: string;
  /** The limit that its role or its database has for statements, where that cut it off; null: it did not. */
  statementTimeout: string | null;
  /** How often it was tried so far. */
  tries: number;
  retryInMs: number;
  /** The oldest other transaction of the database, which is likely to be in the way; null: there is none. */
  oldest: { pid: number; seconds: number } | null;
}
