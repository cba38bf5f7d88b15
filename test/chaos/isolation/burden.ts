import type { IsolationStage } from './isolation-stage.ts';

/** One user's volume, or one user's targets, that must not hold up the others. */
export interface Burden {
  name: string;
  title: string;
  /** So many ms it may add to the 99th percentile of others; without it, what cannot be told from noise. */
  allowedMs?: number;
  /** Further settings of the daemons. */
  variables?: Record<string, string>;
  /** Before the witnesses are measured without it: what takes long to make. */
  prepare?(stage: IsolationStage): Promise<void>;
  /** Lays the burden on. Answers what is to be true of the burden itself once the witnesses were measured beside it. */
  begin(stage: IsolationStage): Promise<() => Promise<Fact[]>>;
}

/** What came of the burden itself. */
export interface Fact {
  what: string;
  holds: boolean;
}
