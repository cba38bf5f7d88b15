import { type Scope, owns } from '../../core/access/scope.ts';
import {
  SET_LABEL,
  type SchedulesFile,
  type ToDelete,
  type Change,
  type FilePlan,
} from '../schedules-file.ts';
import { type ApiCaller, listAll } from './caller.ts';
import { entriesInScope, scopeOfCaller } from './file-in-scope.ts';
import { FALLBACKS, FOLLOWERS, followedBy, parentsFirst } from './parents-first.ts';
import { planByDryRun } from './plan-by-dry-run.ts';
import { planSchedules } from './plan-schedules.ts';
import { withNotifierStandIns } from './stand-ins.ts';

/**
 * What applying the file would change, and every fault, including those from reading it. Changes nothing. If a file has
 * faults, the plan is incomplete and must not be applied.
 * @throws Refused, and the errors of the caller
 */
export async function planFile(
  caller: ApiCaller,
  file: SchedulesFile,
  { prune }: { prune: boolean },
): Promise<FilePlan> {
  const scope = await scopeOfCaller(caller);
  const { entries, faults: foreign } = entriesInScope(file, scope);
  const named = await planNamed(caller, entries);
  const { sorted, faults: circles } = parentsFirst(entries.schedules, FOLLOWERS);
  const inOrder = new Set(sorted);
  const schedules = await planSchedules(caller, sorted, {
    limits: named.limits.fresh,
    calendars: named.calendars.fresh,
    connections: named.connections.fresh,
    circular: entries.schedules.filter((entry) => !inOrder.has(entry)).map(({ id }) => id),
  });
  const planned = { ...named, schedules };
  const all = Object.values(planned);
  const faults = [...file.faults, ...foreign, ...circles, ...all.flatMap((one) => one.faults)];
  const beside = faults.length === 0 ? await besideFile(caller, file, scope) : [];
  const toDelete = prune || file.prune ? beside : [];
  const deleted = toDelete.map(({ id }) => deletionOf(id));
  return {
    faults,
    changes: [...all.flatMap(({ changes }) => changes), ...deleted],
    unchanged: all.reduce((sum, { unchanged }) => sum + unchanged, 0),
    toSend: {
      limits: planned.limits.toSend,
      calendars: planned.calendars.toSend,
      connections: planned.connections.toSend,
      notifiers: planned.notifiers.toSend,
      schedules: schedules.toSend,
    },
    toDelete,
    left: prune || file.prune ? [] : beside.map(({ id }) => id),
  };
}

function deletionOf(id: string): Change {
  return { kind: 'schedules', id, change: 'deleted', fields: [] };
}

/** What schedules name, and notifiers. */
async function planNamed(caller: ApiCaller, entries: SchedulesFile['entries']) {
  const limits = await planByDryRun(caller, entries.limits);
  const calendars = await planByDryRun(caller, entries.calendars);
  const connections = await planByDryRun(caller, entries.connections);
  const { sorted, faults } = parentsFirst(entries.notifiers, FALLBACKS);
  const notifiers = await planByDryRun(caller, sorted, (entry, fresh) =>
    withNotifierStandIns(entry, { connections: connections.fresh, notifiers: fresh }),
  );
  notifiers.faults.push(...faults);
  return { limits, calendars, connections, notifiers };
}

/** Schedules of the caller that have the label of the set and are not in the file; followers come before the schedules that they follow. */
async function besideFile(
  caller: ApiCaller,
  { set, entries }: SchedulesFile,
  scope: Scope,
): Promise<ToDelete[]> {
  if (set === null) return [];
  const inFile = new Set(entries.schedules.map(({ id }) => id));
  const doomed = new Map<string, ToDelete & { parent: string | null }>();
  const label = encodeURIComponent(`${SET_LABEL}:${set}`);
  for await (const item of listAll(caller, `schedules?label=${label}`)) {
    const { id, version } = item as unknown as ToDelete;
    if (!inFile.has(id) && owns(scope, id)) doomed.set(id, { id, version, parent: followedBy(item) });
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
