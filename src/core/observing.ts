import type { Instant } from './instant.ts';

/** An instance that observes plans nothing, sends nothing and changes nothing: it answers reads. */
export interface Observing {
  /** FIRELOCK_OBSERVE, which concerns this instance alone, or a row of the database, which concerns all instances. */
  because: 'setting' | 'database';
  /** Null: the database does not say so. */
  since: Instant | null;
  reason: string | null;
  /** The database accepts no writes: it is a standby that nobody has promoted. */
  isReadOnly: boolean;
}

/** One installation has taken over from another one. */
export interface TakeOver {
  at: Instant;
  /** What was due from this moment on is fired. */
  since: Instant;
  /** The name of the caller; null: it has none. */
  by: string | null;
}

/** What the database says about all of its instances. */
export interface Installation {
  /** Null: they work. */
  observingSince: Instant | null;
  reason: string | null;
  /** The last one. */
  tookOver: TakeOver | null;
}
