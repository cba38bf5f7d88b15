/** Whoever is put before a herd: the daemon, or one of the bare loops it is measured against. */
export interface Contestant {
  readonly name: string;
  /** Of the process that works, for its CPU time. */
  readonly pid: number;
  /** Whether its fires reach the receiver. */
  readonly posts: boolean;
  /** How long it takes to arm that many, generously. */
  leadSeconds(count: number): number;
  /** Makes that many fires due at this moment (wall-clock ms). */
  arm(count: number, dueAt: number): Promise<void>;
  /** Resolves when all of them are settled, with the moment if it knows it better than whoever waits. */
  settled(count: number, dueAt: number): Promise<number>;
  /** Throws unless history has exactly one good end for each fire; answers the run ids. */
  history(count: number, dueAt: number): Promise<Set<string>>;
  stop(): Promise<void>;
}
