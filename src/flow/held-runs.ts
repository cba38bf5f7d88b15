/**
 * Guarantees: of one run, this process acts on one claim at a time; a later one waits for the end of the earlier.
 * Transaction: none; this is memory.
 * If the process dies here: what it held is found by its rows.
 */
import type { ClaimedRun } from '../store/claims.ts';

/** Every claim of this process, until its outcome is written or it is given up. */
export interface HeldRuns {
  /** False: an earlier claim of the run is still acted on here, as when the answer of a settlement was lost; it waits. */
  take(run: ClaimedRun): boolean;
  /** Gives a claim up; answers the later one that waited for it and is taken with that. */
  drop(run: ClaimedRun): ClaimedRun | null;
  holds(runId: string, attempt: number): boolean;
  waiting(): ClaimedRun[];
}

export function createHeldRuns(): HeldRuns {
  const held = new Map<string, ClaimedRun>();
  /** In the order of their claims. */
  const later = new Map<string, ClaimedRun[]>();

  return {
    take: (run) => {
      if (!held.has(run.id)) {
        held.set(run.id, run);
        return true;
      }
      later.set(run.id, [...(later.get(run.id) ?? []), run]);
      return false;
    },
    drop: (run) => {
      const waiting = later.get(run.id) ?? [];
      const others = waiting.filter((other) => other !== run);
      if (others.length === 0) later.delete(run.id);
      else later.set(run.id, others);
      if (others.length < waiting.length || held.get(run.id) !== run) return null;
      held.delete(run.id);
      const [next, ...rest] = others;
      if (!next) return null;
      if (rest.length === 0) later.delete(run.id);
      else later.set(run.id, rest);
      // The earlier attempt may just have settled the run.
      const confirmed = { ...next, confirm: true };
      held.set(run.id, confirmed);
      return confirmed;
    },
    holds: (runId, attempt) =>
      [held.get(runId), ...(later.get(runId) ?? [])].some((run) => run?.attempt === attempt),
    waiting: () => [...later.values()].flat(),
  };
}
