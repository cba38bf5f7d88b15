/**
 * Guarantees: runs that cannot be, or that depend on what is not there, are refused before anything depends on them. What callers call
 *   new runs, their batch among it, and who made them, is written with them.
 * Transaction: the caller's; a refusal thrown in it leaves nothing of the call.
 * If the process dies here: nothing of the call is written.
 */
import type { UnknownName } from '../references.ts';
import type { Batch, OneOffRun } from '../../core/runs/one-off-run.ts';
import { mayBeRunId, randomRunId } from '../../core/runs/run.ts';
import { type Instant, isoOrNull } from '../../core/instant.ts';
import type { Transaction } from '../../postgres/executor.ts';
import type { Auditor } from '../../store/audit/audit-rows.ts';
import { commonBatch, recordBatch, recordTags } from '../../store/runs/run-tags.ts';

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
    const message = `has too many dependencies with those before it: ${count}, of at most ${MAX_DEPENDENCIES_PER_CALL} in one call`;
    throw new CannotAccept([{ index: asked.length - 1, path: '/dependsOn', message }]);
  }
  const cycle = findCycle(asked);
  if (!cycle) return;
  const index = asked.findIndex(({ ref }) => ref === cycle[0]);
  throw new CannotAccept([{ index, path: '/dependsOn', message: `makes a cycle: ${cycle.join(' → ')}` }]);
}

/**
 * `there`: the dependencies that are; `unknown`: limits and connections that are not.
 * @throws CannotAccept
 */
export function refuseUnknown(
  drafts: readonly Draft[],
  { idOfRef, dependsOn }: Links,
  there: ReadonlySet<string>,
  unknown: readonly UnknownName<Draft>[],
): void {
  const faults = drafts.flatMap(({ run, created }, index) => [
    ...(created ? run.dependsOn : []).flatMap((name, position) => {
      const id = idOfRef.get(name) ?? name.toLowerCase();
      if (dependsOn.has(id) || there.has(id)) return [];
      return [{ index, path: `/dependsOn/${position}`, message: `names a run that does not exist: ${name}` }];
    }),
    ...unknown.filter(({ namer }) => namer === drafts[index]).map(({ path, message }) => ({ index, path, message })),
  ]);
  if (faults.length > 0) throw new CannotAccept(faults);
}

/**
 * A cycle among items that depend on each other by name: the names along it, with the first one again at the end; null:
 * there is none. Names that are not among the items are ignored. No recursion: a chain may be as long as a call has
 * items.
 */
function findCycle(items: readonly { ref: string | null; dependsOn: readonly string[] }[]): string[] | null {
  const dependsOn = new Map(items.flatMap(({ ref, ...item }) => (ref === null ? [] : [[ref, item.dependsOn]])));
  /** Everything reachable from this item has been visited, and leads into no cycle. */
  const clear = new Set<string>();
  for (const start of dependsOn.keys()) {
    const path: { ref: string; next: number }[] = [];
    const onPath = new Set<string>();
    const enter = (ref: string) => {
      path.push({ ref, next: 0 });
      onPath.add(ref);
    };
    if (!clear.has(start)) enter(start);
    for (let at = path.at(-1); at !== undefined; at = path.at(-1)) {
      const other = dependsOn.get(at.ref)?.[at.next];
      at.next += 1;
      if (other === undefined) {
        path.pop();
        onPath.delete(at.ref);
        clear.add(at.ref);
      } else if (onPath.has(other)) {
        const refs = path.map(({ ref }) => ref);
        return [...refs.slice(refs.indexOf(other)), other];
      } else if (dependsOn.has(other) && !clear.has(other)) {
        enter(other);
      }
    }
  }
  return null;
}

/** Answers the batch of the new runs; if none is new, the one that all of them are in. `batch` is null: one run was asked for alone. */
export async function tagRuns(
  tx: Transaction,
  drafts: readonly Draft[],
  batch: Batch | null,
  now: Instant,
): Promise<string | null> {
  const tags = drafts.flatMap(({ run: { ref, labels }, id: runId, created }, place) =>
    created ? [{ runId, ref, place, labels }] : [],
  );
  const isNamed = batch !== null && tags.length > 0;
  const batchId = isNamed ? randomRunId(now) : null;
  if (isNamed && batchId !== null) await recordBatch(tx, batchId, batch, now);
  await recordTags(tx, tags, batchId);
  if (batch === null || isNamed) return batchId;
  return commonBatch(
    tx,
    drafts.map(({ id }) => id),
  );
}

export async function noteCreated(
  tx: Transaction,
  auditor: Auditor | undefined,
  drafts: readonly Draft[],
  { batch, batchId }: { batch: Batch | null; batchId: string | null },
): Promise<void> {
  const created = drafts.filter((draft) => draft.created);
  const [first] = created;
  if (!auditor || !first) return;
  const { id, run } = first;
  const ofOne = { runAt: isoOrNull(run.runAt), dependencies: run.dependsOn.length };
  const counts = { created: created.length, existing: drafts.length - created.length };
  await auditor.note(tx, {
    action: 'run.create',
    subject: batchId ?? id,
    scheduleId: null,
    // The keys of a batch may be in several scopes.
    runName: batch ? null : run.key,
    detail: batch ? { name: batch.name, ...counts } : ofOne,
  });
}
