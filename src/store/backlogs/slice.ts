/** What one transaction may do of a backlog. */
export interface SliceSize {
  /** Runs at most. */
  limit: number;
  /** Ids of runs that the database has refused to change: they are left out for now. */
  besides: readonly string[];
  /** Called with the ids of the runs that it is about to change. */
  noteRuns: (ids: readonly string[]) => void;
}

export interface Slice {
  /** How many runs were ended or marked. */
  changed: number;
  effects: number;
  /** Some of them may have given up the place of a limit. */
  toAdmit: boolean;
  position: string | null;
  isDone: boolean;
  /** Other transactions have the rows locked that are next, or another backlog comes first. */
  isHeldUp: boolean;
}
