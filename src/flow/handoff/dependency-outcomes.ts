import { type Parent, isParentRun } from '../../core/runs/parent.ts';
import { type Dependency, dependencyOf } from '../../core/runs/run.ts';
import { batchCalls } from '../../runtime/loop/batch.ts';
import type { ClaimedRun } from '../../store/runs/claims/claimed-run.ts';
import type { Database } from '../../postgres/database.ts';
import { findDependencyIds, findOutcomes } from '../../store/runs/search/find-runs.ts';

/**
 * The outcomes of its parent, or of the runs it waited for, in their order, as far as they are kept; null: they cannot
 * be read now.
 */
export type ReadDependencies = (run: ClaimedRun) => Promise<ReadOutcomes | null>;

export interface ReadOutcomes {
  dependencies: readonly Dependency[];
  /** Null: it has none, or it is no longer kept. */
  parent: Parent | null;
}

/** Runs, each with up to 1,000 ids. */
const MAX_RUNS = 100;
/** Outcomes, of up to 4 KiB each. */
const MAX_OUTCOMES = 1_000;

export const NO_OUTCOMES: ReadOutcomes = { dependencies: [], parent: null };

/** An attempt whose dependencies cannot be read is not made. Attempts that begin at the same moment read together. */
export function createDependencyReader(database: Database): ReadDependencies {
  const idsOf = batchCalls<string, readonly string[]>({
    maxWeight: MAX_RUNS,
    work: async (runIds) => {
      const found = await database.run((db) => findDependencyIds(db, runIds));
      return runIds.map((id) => found.get(id) ?? []);
    },
  });
  const outcomesOf = batchCalls<readonly string[], Parent[]>({
    maxWeight: MAX_OUTCOMES,
    weightOf: (ids) => ids.length,
    work: async (asked) => {
      const found = await database.run((db) => findOutcomes(db, [...new Set(asked.flat())]));
      return asked.map((ids) => ids.flatMap((id) => found.get(id) ?? []));
    },
  });

  return async ({ id, parentId, hasDependencies }) => {
    const ids = parentId === null ? [] : [parentId];
    try {
      if (hasDependencies) ids.push(...(await idsOf(id)));
      if (ids.length === 0) return NO_OUTCOMES;
      const outcomes = await outcomesOf(ids);
      const parent = outcomes.find(({ runId }) => runId === null || runId === parentId) ?? null;
      return { dependencies: outcomes.filter(isParentRun).map(dependencyOf), parent };
    } catch {
      return null;
    }
  };
}
