import type { MigrationWait } from './migration-wait.ts';

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
