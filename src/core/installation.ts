import type { Instant } from './instant.ts';

/**
 * What the instances of a database do. `plansNothing` and `holds` are maintenance: no schedule is planned; recorded runs are handed
 * off, or wait for its end. `observes`: they answer reads, and change nothing.
 */
export type Mode = 'works' | 'plansNothing' | 'holds' | 'observes';

export interface InstallationState {
  mode: Mode;
  /** When the maintenance, or observing, began; null: the database does not say so. */
  since: Instant | null;
  /** It works again from this moment on; null: until somebody says so. */
  until: Instant | null;
  reason: string | null;
}

export const WORKS: InstallationState = { mode: 'works', since: null, until: null, reason: null };

/** One installation has taken over from another one. */
export interface TakeOver {
  at: Instant;
  /** What was due from this moment on is fired. */
  since: Instant;
  /** The name of the caller; null: it has none. */
  by: string | null;
}

/** What the database says about all of its instances. */
export interface Installation extends InstallationState {
  /** The last one. */
  tookOver: TakeOver | null;
}

/** The state that one instance acts on. */
export interface KnownState extends InstallationState {
  /** FIRELOCK_OBSERVE, which concerns this instance alone, or the database, which concerns all instances. */
  because: 'setting' | 'database';
  /** The database accepts no writes: it is a standby that nobody has promoted. */
  isReadOnly: boolean;
}
