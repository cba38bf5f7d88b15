/** What a receiver answers. */
export interface Reply {
  status: number;
  headers: Record<string, string>;
  body: string;
}

export type Verdict =
  /** Not seen yet, or no attempt of it has succeeded: work on it. */
  | { state: 'new' }
  /** It is done, and this was answered. */
  | { state: 'done'; reply: Reply }
  /** An earlier attempt is being worked on. */
  | { state: 'busy' }
  /** A higher attempt was seen: this one has no say any more. */
  | { state: 'stale'; seen: number };

/**
 * What a receiver remembers of runs. A store that several processes share decides in its database: `begin` in one
 * transaction, with the run's id as primary key. A process may die between `begin` and what ends it, so such a store has to
 * answer `new` instead of `busy` when the work cannot be under way any more. Keep runs for as long as firelock does
 * (FIRELOCK_RETENTION_DAYS, 30 days unless set, and two days more): so long may a run be sent again.
 */
export interface RunStore {
  /** Notes the attempt and says what to do with it, in one step: of two calls at once for a run, one is `new`. */
  begin(runId: string, attempt: number): Promise<Verdict>;
  /** The work is done: from now on the run is `done`. When this resolves, it outlives the process. */
  finish(runId: string, attempt: number, reply: Reply): Promise<void>;
  /** The work has failed: another attempt may do it. The attempt stays noted. */
  release(runId: string, attempt: number): Promise<void>;
}

export interface Remembered {
  attempt: number;
  isBusy: boolean;
  reply: Reply | null;
}

/**
 * Remembers runs in this process, the newest `maxRuns` of them (10,000). It forgets all when the process ends, and knows
 * nothing of other processes: a run that is sent again after a restart, or to another process, is done again. Use it where
 * that does no harm.
 */
export function memoryStore({ maxRuns = 10_000 }: { maxRuns?: number } = {}): RunStore {
  const runs = new Map<string, Remembered>();
  return {
    begin: (runId, attempt) => {
      const verdict = judge(runs, runId, attempt);
      for (const [id, { isBusy }] of runs) {
        if (runs.size <= maxRuns) break;
        if (!isBusy) runs.delete(id);
      }
      return Promise.resolve(verdict);
    },
    finish: (runId, attempt, reply) => {
      end(runs, runId, attempt, reply);
      return Promise.resolve();
    },
    release: (runId, attempt) => {
      end(runs, runId, attempt, null);
      return Promise.resolve();
    },
  };
}

/** Notes an attempt in the map. */
export function judge(runs: Map<string, Remembered>, runId: string, attempt: number): Verdict {
  const known = runs.get(runId);
  if (known !== undefined && attempt < known.attempt) return { state: 'stale', seen: known.attempt };
  const isBusy = known?.isBusy ?? false;
  const reply = known?.reply ?? null;
  runs.set(runId, { attempt, isBusy: isBusy || reply === null, reply });
  if (reply !== null) return { state: 'done', reply };
  return { state: isBusy ? 'busy' : 'new' };
}

/** Notes the end of the work of an attempt; `reply` null: it failed. */
export function end(runs: Map<string, Remembered>, runId: string, attempt: number, reply: Reply | null): void {
  const highest = Math.max(attempt, runs.get(runId)?.attempt ?? 0);
  runs.set(runId, { attempt: highest, isBusy: false, reply });
}
