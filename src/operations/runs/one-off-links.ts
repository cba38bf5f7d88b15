/**
 * Guarantees: runs that cannot be, or that depend on what is not there, are refused before anything depends on them.
 * Transaction: none of its own; a refusal thrown inside the caller's leaves nothing of the call.
 * If the process dies here: nothing of the call is written.
 */
import { findCycle } from '../../core/runs/dependency-cycle.ts';
import { noSuchLimitNamed } from '../limit-changes.ts';
import type { OneOffRun } from '../../core/runs/one-off-run.ts';
import { mayBeRunId } from '../../core/runs/run.ts';

/** In an item: `path` is a JSON pointer within it. */
export interface ItemFault {
  index: number;
  path: string;
  message: string;
}

/** Well-formed, and impossible: nothing was recorded. */
export class CannotAccept extends Error {
  override readonly name = 'CannotAccept';
  readonly faults: readonly ItemFault[];

  constructor(faults: readonly ItemFault[]) {
    super(faults.map(({ message }) => message).join('; '));
    this.faults = faults;
  }
}

/** In one call. */
export const MAX_DEPENDENCIES_PER_CALL = 100_000;

export interface Draft {
  run: OneOffRun;
  id: string;
  /** False: its key already stands for this run. */
  created: boolean;
}

/** The dependencies of the new runs, by their ids. */
export interface Links {
  idOfRef: ReadonlyMap<string, string>;
  dependsOn: ReadonlyMap<string, readonly string[]>;
  /** New runs that others of the call depend on. */
  depended: ReadonlySet<string>;
  /** Dependencies that this call does not record. */
  others: readonly string[];
}

export function linksOf(drafts: readonly Draft[], created: readonly Draft[]): Links {
  const idOfRef = new Map(drafts.flatMap(({ run, id }) => (run.ref === null ? [] : [[run.ref, id]])));
  const idOf = (name: string) => idOfRef.get(name) ?? name.toLowerCase();
  // The ref of an item whose key stands for a run, and the id of that run, name the same one.
  const dependsOn = new Map(created.map(({ run, id }) => [id, [...new Set(run.dependsOn.map(idOf))]]));
  const depended = new Set([...dependsOn.values()].flat());
  const others = [...depended].filter((id) => !dependsOn.has(id) && mayBeRunId(id));
  return { idOfRef, dependsOn, depended, others };
}

/** @throws CannotAccept */
export function refuseWhatCannotBe(asked: readonly OneOffRun[]): void {
  const count = asked.reduce((sum, { dependsOn }) => sum + dependsOn.length, 0);
  if (count > MAX_DEPENDENCIES_PER_CALL) {
    const message = `are ${count} in all; one call can have ${MAX_DEPENDENCIES_PER_CALL}`;
    throw new CannotAccept([{ index: asked.length - 1, path: '/dependsOn', message }]);
  }
  const cycle = findCycle(asked);
  if (!cycle) return;
  const index = asked.findIndex(({ ref }) => ref === cycle[0]);
  throw new CannotAccept([{ index, path: '/dependsOn', message: `is a cycle: ${cycle.join(' → ')}` }]);
}

/**
 * `limits` are there.
 * @throws CannotAccept
 */
export function refuseUnknown(
  drafts: readonly Draft[],
  { idOfRef, dependsOn }: Links,
  there: ReadonlySet<string>,
  limits: ReadonlySet<string>,
): void {
  const faults = drafts.flatMap(({ run, created }, index) => [
    ...(created ? run.dependsOn : []).flatMap((name, position) => {
      const id = idOfRef.get(name) ?? name.toLowerCase();
      if (dependsOn.has(id) || there.has(id)) return [];
      return [{ index, path: `/dependsOn/${position}`, message: `there is no run ${name}` }];
    }),
    ...(created && run.limit !== null && !limits.has(run.limit)
      ? [{ index, path: '/limit', message: noSuchLimitNamed(run.limit) }]
      : []),
  ]);
  if (faults.length > 0) throw new CannotAccept(faults);
}
