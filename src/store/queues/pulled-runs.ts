import { type Parent, isParentRun } from '../../core/runs/parent.ts';
import { type Dependency, type Run, dependencyOf, mayBeRunId } from '../../core/runs/run.ts';
import type { Scope } from '../../core/access/scope.ts';
import type { Transaction } from '../../postgres/executor.ts';
import { findOutcomes, listRuns } from '../runs/search/find-runs.ts';
import { runsSeen } from '../scopes/in-scope.ts';

/** A run as a worker gets it. */
export interface PulledRun {
  run: Run;
  /** The outcomes of its dependencies, and of the run that it follows, as far as they are kept. */
  dependencies: Dependency[];
  /** What it follows, as far as that is kept. */
  parent: Parent | null;
  /** No worker had started it before. */
  isFirst: boolean;
}

/**
 * Each outcome has up to 4 KiB of a result: as many as one answer can carry, and one process can hold for it. Every
 * answer has at least one run.
 */
export const MAX_DEPENDENCIES_SHOWN = 2_000;

/**
 * By id; without a run that cannot be read. What it depended on belongs to a run, whoever works on it; of its dependents a worker gets
 * those that its scope sees.
 */
export async function readPulledRuns(
  tx: Transaction,
  claimed: readonly { id: string; is_first: boolean; scope: Scope }[],
): Promise<Map<string, PulledRun>> {
  const ids = claimed.map(({ id }) => id).filter(mayBeRunId);
  if (ids.length === 0) return new Map();
  // By their status they are looked for among open runs alone, and in no day of history.
  const filter = { ids, statuses: ['running' as const], limit: ids.length, scope: null };
  const runs = await listRuns(tx, filter, MAX_DEPENDENCIES_SHOWN);
  const dependents = await dependentsSeen(tx, runs, new Map(claimed.map(({ id, scope }) => [id, scope])));
  const found = await findOutcomes(tx, [...new Set(runs.flatMap(dependencyIds))]);
  const started = new Set(claimed.filter((row) => !row.is_first).map(({ id }) => id));
  return new Map(
    runs.map((run) => [
      run.id,
      {
        run: { ...run, dependents: dependents.get(run.id) ?? run.dependents },
        dependencies: dependencyIds(run)
          .flatMap((id) => found.get(id) ?? [])
          .filter(isParentRun)
          .map(dependencyOf),
        parent: run.parentId === null ? null : (found.get(run.parentId) ?? null),
        isFirst: !started.has(run.id),
      },
    ]),
  );
}

/** By run, of those that are worked on by callers with a scope. */
async function dependentsSeen(
  tx: Transaction,
  runs: readonly Run[],
  scopes: ReadonlyMap<string, Scope>,
): Promise<ReadonlyMap<string, string[]>> {
  const asked = runs.flatMap(({ id, dependents }) => {
    const scope = scopes.get(id) ?? null;
    return scope === null || dependents.length === 0 ? [] : [{ id, dependents, scope }];
  });
  const seen = new Map<string, string[]>();
  // A claim is asked for by few callers: one statement for each kind of them.
  for (const of of Map.groupBy(asked, ({ scope }) => scope.join(' ')).values()) {
    const all = of.flatMap(({ dependents }) => dependents);
    const among = await runsSeen(tx, all, of[0]?.scope ?? []);
    for (const { id, dependents } of of)
      seen.set(
        id,
        dependents.filter((dependent) => among.has(dependent)),
      );
  }
  return seen;
}

function dependencyIds({ parentId, dependsOn }: Run): string[] {
  return parentId === null ? [...dependsOn] : [parentId, ...dependsOn];
}
