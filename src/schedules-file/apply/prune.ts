import { SET_LABEL, type SchedulesFile } from '../schedules-file.ts';
import { type ApiCaller, listAll } from './caller.ts';
import { followedBy } from './parents-first.ts';
import type { ToDelete } from './file-plan.ts';

/** Schedules that have the label of the set and are not in the file; followers come before the schedules that they follow. */
export async function toPrune(caller: ApiCaller, { set, entries }: SchedulesFile): Promise<ToDelete[]> {
  if (set === null) return [];
  const inFile = new Set(entries.schedules.map(({ id }) => id));
  const doomed = new Map<string, ToDelete & { parent: string | null }>();
  const label = encodeURIComponent(`${SET_LABEL}:${set}`);
  for await (const item of listAll(caller, `schedules?label=${label}`)) {
    const { id, version } = item as unknown as ToDelete;
    if (!inFile.has(id)) doomed.set(id, { id, version, parent: followedBy(item) });
  }
  const depth = (id: string): number => {
    let steps = 0;
    for (let at = doomed.get(id)?.parent ?? null; at !== null; at = doomed.get(at)?.parent ?? null)
      steps += 1;
    return steps;
  };
  return [...doomed.values()]
    .map(({ id, version }) => ({ id, version, depth: depth(id) }))
    .sort((a, b) => b.depth - a.depth)
    .map(({ id, version }) => ({ id, version }));
}
