import type { Instant } from '../core/instant.ts';

/** A run whose row the database has confirmed: recorded by its schedule, or ended by a plain success. */
export interface ConfirmedCommit {
  runId: string;
  kind: 'recorded' | 'succeeded';
  /** `recorded`: its created_at, `succeeded`: its finished_at. A run that is planned again has another. */
  at: Instant;
}

/**
 * Some of the newest commits of this instance. A failover takes back the newest ones: if the last heartbeat is still there, commits after
 * it may be gone.
 */
export interface ConfirmedCommits {
  note(commit: ConfirmedCommit): void;
  /** Oldest first. */
  noted(): readonly ConfirmedCommit[];
  /** Forgets these: whether they are there is known. */
  forget(commits: readonly ConfirmedCommit[]): void;
}

/** No failover is as quick: commits before and after it are never in one step, of which the newest is kept. */
const STEP_MS = 200;
/** As many steps as lie between two heartbeats, and as many again. */
const MOST = 20;

/** `monotonic` answers milliseconds. */
export function createConfirmedCommits(clock: { monotonic: () => number }): ConfirmedCommits {
  let kept: { step: number; commit: ConfirmedCommit }[] = [];
  return {
    note: (commit) => {
      const step = Math.floor(clock.monotonic() / STEP_MS);
      if (kept.at(-1)?.step === step) kept.pop();
      kept.push({ step, commit });
      if (kept.length > MOST) kept.shift();
    },
    noted: () => kept.map(({ commit }) => commit),
    forget: (commits) => {
      kept = kept.filter(({ commit }) => !commits.includes(commit));
    },
  };
}
