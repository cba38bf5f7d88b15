import { type Scope, owns, scopeText } from '../../core/access/scope.ts';
import {
  type SchedulesFile,
  type ToDelete,
  type Change,
  type FilePlan,
  type FileFault,
  type FileEntry,
  type ToSend,
  SET_LABEL,
  KINDS,
  faultOf,
  entryText,
} from '../schedules-file.ts';
import { type ApiCaller, listAll, ask, Refused } from './caller.ts';
import {
  type StoodIn,
  FALLBACKS,
  followedBy,
  FOLLOWERS,
  parentsFirst,
  withNotifierStandIns,
  withReal,
} from './stand-ins.ts';
import { planSchedules } from './plan-schedules.ts';

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
async function besideFile(caller: ApiCaller, { set, entries }: SchedulesFile, scope: Scope): Promise<ToDelete[]> {
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
    for (let at = doomed.get(id)?.parent ?? null; at !== null; at = doomed.get(at)?.parent ?? null) steps += 1;
    return steps;
  };
  return [...doomed.values()]
    .map(({ id, version }) => ({ id, version, depth: depth(id) }))
    .sort((a, b) => b.depth - a.depth)
    .map(({ id, version }) => ({ id, version }));
}

/** What the caller's token may change; null: all names. */
async function scopeOfCaller(caller: ApiCaller): Promise<Scope> {
  const { scope } = (await ask(caller, 'GET', 'me')) as { scope?: string[] | null };
  return scope ?? null;
}

/** The entries of this scope; each other one is a fault. */
function entriesInScope({ entries }: SchedulesFile, scope: Scope): Pick<SchedulesFile, 'entries' | 'faults'> {
  const kept: SchedulesFile['entries'] = { ...entries };
  const faults: FileFault[] = [];
  for (const kind of KINDS) {
    kept[kind] = entries[kind].filter(({ id }) => owns(scope, id));
    const foreign = entries[kind].filter((entry) => !kept[kind].includes(entry));
    const message = `is beyond the scope of your token, which is ${scopeText(scope ?? [])}`;
    faults.push(...foreign.map((entry) => faultOf(entry, '', message)));
  }
  return { entries: kept, faults };
}

type Diff = Pick<Change, 'fields'> & { change: 'created' | 'updated' | 'unchanged' };

/** Limits, calendars, connections or notifiers. */
interface PlannedThings {
  faults: FileFault[];
  changes: Change[];
  unchanged: number;
  toSend: ToSend[];
  /** Ids that do not exist yet. */
  fresh: Set<string>;
}

/**
 * The changes of named things, each by a dry run: only the server can compare secret values. `standIn` gets the ids of earlier entries that
 * the server does not have yet.
 */
async function planByDryRun(
  caller: ApiCaller,
  entries: readonly FileEntry[],
  standIn: (entry: FileEntry, fresh: ReadonlySet<string>) => StoodIn = ({ fields }) => ({
    ...{ sent: fields, replaced: [] },
  }),
): Promise<PlannedThings> {
  const planned: PlannedThings = { faults: [], changes: [], unchanged: 0, toSend: [], fresh: new Set() };
  for (const entry of entries) {
    const { id, kind, fields } = entry;
    const path = `${kind}/${encodeURIComponent(id)}`;
    const { sent, replaced } = standIn(entry, planned.fresh);
    try {
      const diff = (await ask(caller, 'POST', `${path}/dry-run`, entryText(entry, sent))) as Diff;
      if (diff.change === 'unchanged' && replaced.length === 0) {
        planned.unchanged += 1;
        continue;
      }
      if (diff.change === 'created') planned.fresh.add(id);
      planned.toSend.push({ entry, fields });
      const change = diff.change === 'created' ? diff.change : 'updated';
      const changed = change === 'created' ? [] : withReal(diff.fields, replaced);
      planned.changes.push({ kind, id, change, fields: changed });
    } catch (error) {
      if (!(error instanceof Refused) || ![400, 409, 422].includes(error.status)) throw error;
      const { faults, message } = error;
      const said = faults.length > 0 ? faults : [{ path: '', message }];
      planned.faults.push(...said.map((fault) => faultOf(entry, fault.path, fault.message)));
      // That it does not exist is no other fault of what names it.
      if ((await caller.send('GET', path)).status === 404) planned.fresh.add(id);
    }
  }
  return planned;
}
