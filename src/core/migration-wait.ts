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
