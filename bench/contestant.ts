/** What is put before a herd: the daemon, or one of those it is measured against. */
export interface Contestant {
  readonly name: string;
  /** Of the process that works, for its CPU time. */
  readonly pid: number;
  /** Of further ones that do. */
  readonly others?: readonly number[];
  /** Whether VACUUM and ANALYZE come before what is measured; else its database is as the import left it. */
  readonly vacuumed: boolean;
  /** How long it takes to arm that many, generously. */
  leadSeconds(count: number): number;
  /** Makes that many fires due at this moment (wall-clock ms). */
  arm(count: number, dueAt: number): Promise<void>;
  /** Resolves when all of them are settled, with the moment. What asks the database waits until all have arrived. */
  settled(count: number, dueAt: number, arrived: Promise<void>): Promise<number>;
  /** Throws unless history has exactly one good end for each fire; answers the run ids. */
  history(count: number, dueAt: number): Promise<Set<string>>;
  stop(): Promise<void>;
}

/** One that can also fire every second. */
export interface Recurring extends Contestant {
  /** That many schedules fire in each of these seconds, and in no other; those armed before are over. */
  armEverySecond(count: number, seconds: Seconds): Promise<void>;
  /** Resolves when all of them are settled. */
  settledEverySecond(seconds: Seconds): Promise<void>;
  /** As `history`, of each of these seconds. */
  historyEverySecond(count: number, seconds: Seconds): Promise<Set<string>>;
}

/** Whole seconds as wall-clock milliseconds, the last one excluded. */
export interface Seconds {
  from: number;
  until: number;
}

export function secondsIn({ from, until }: Seconds): number {
  return (until - from) / 1000;
}
