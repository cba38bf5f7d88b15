import { isObject } from '../../api/http/json/json-body.ts';
import { addressFault } from '../../api/targets/http-call-schemas.ts';
import { type FieldChange, type FileEntry, type FileFault, faultOf } from '../schedules-file.ts';
import { followedPrefix } from '../../core/timing/timing.ts';

/** Entries of the file that the server does not have yet, by id. */
export interface NotThereYet {
  limits: ReadonlySet<string>;
  calendars: ReadonlySet<string>;
  connections: ReadonlySet<string>;
  schedules: ReadonlySet<string>;
}

/** What is sent to a dry run, and what it stands for. */
export interface StoodIn {
  sent: Readonly<Record<string, unknown>>;
  replaced: readonly Replaced[];
}

interface Replaced {
  path: string;
  standIn: unknown;
  real: unknown;
}

/**
 * For a dry run, which is refused if it names something that does not exist: no limit, no calendar, "all that begin so"
 * instead of the one that is followed (the caller's scope has them too), and a host that nobody has instead of a connection. The server
 * cannot have any of the real values now, so each is a change.
 */
export function withStandIns({ fields }: FileEntry, missing: NotThereYet): StoodIn {
  const replaced: Replaced[] = [];
  const sent: Record<string, unknown> = { ...fields };
  const { limit, exclude } = fields;
  if (typeof limit === 'string' && missing.limits.has(limit)) {
    sent['limit'] = null;
    replaced.push({ path: '/limit', standIn: null, real: limit });
  }
  const calendars: unknown = isObject(exclude) ? exclude['calendars'] : null;
  if (isObject(exclude) && Array.isArray(calendars)) {
    const known = calendars.filter((id) => !missing.calendars.has(String(id)));
    if (known.length < calendars.length) {
      sent['exclude'] = { ...exclude, calendars: known };
      replaced.push({ path: '/exclude/calendars', standIn: known, real: calendars });
    }
  }
  const { target } = fields;
  if (isObject(target) && missing.connections.has(String(target['connection']))) {
    const without = withoutConnection(target, '/target');
    if (without !== null) {
      sent['target'] = without.sent;
      replaced.push(...without.replaced);
    }
  }
  const parent = followedBy(fields);
  if (parent !== null && missing.schedules.has(parent)) {
    const standIn = `${parent}*`;
    sent['after'] = { ...(fields['after'] as object), scheduleId: standIn };
    replaced.push({ path: '/after/scheduleId', standIn, real: parent });
  }
  return { sent, replaced };
}

/** Likewise: no fallback, and a host that nobody has instead of a connection. */
export function withNotifierStandIns(
  { fields }: FileEntry,
  missing: { connections: ReadonlySet<string>; notifiers: ReadonlySet<string> },
): StoodIn {
  const replaced: Replaced[] = [];
  const sent: Record<string, unknown> = { ...fields };
  const { fallback, channel } = fields;
  if (typeof fallback === 'string' && missing.notifiers.has(fallback)) {
    sent['fallback'] = null;
    replaced.push({ path: '/fallback', standIn: null, real: fallback });
  }
  const target = isObject(channel) ? channel['target'] : null;
  if (isObject(channel) && isObject(target) && missing.connections.has(String(target['connection']))) {
    const without = withoutConnection(target, '/channel/target');
    if (without !== null) {
      sent['channel'] = { ...channel, target: without.sent };
      replaced.push(...without.replaced);
    }
  }
  return { sent, replaced };
}

const NOWHERE = 'https://connection.invalid';

/** Null: a path is faulty. The server finds that, whether or not there is such a connection. */
function withoutConnection(target: Readonly<Record<string, unknown>>, at: string) {
  const { connection } = target;
  const replaced: Replaced[] = [{ path: `${at}/connection`, standIn: null, real: connection }];
  const elsewhere = (call: Readonly<Record<string, unknown>>, path: string) => {
    const real = call['url'];
    if (typeof real !== 'string' || addressFault(String(connection), real) !== null) return null;
    replaced.push({ path: `${path}/url`, standIn: NOWHERE + real, real });
    return { ...call, url: NOWHERE + real };
  };
  const sent = elsewhere({ ...target, connection: null }, at);
  for (const name of ['lookup', 'cancel'] as const) {
    const call = target[name];
    if (!isObject(call)) continue;
    const moved = elsewhere(call, `${at}/${name}`);
    if (sent === null || moved === null) return null;
    Object.assign(sent, { [name]: moved });
  }
  return sent && { sent, replaced };
}

/** The changes of a dry run, with the real values in place of the stand-ins. */
export function withReal(changes: readonly FieldChange[], replaced: readonly Replaced[]): FieldChange[] {
  const result = [...changes];
  for (const { path, standIn, real } of replaced) {
    const index = result.findIndex((change) => path === change.path || path.startsWith(`${change.path}/`));
    const found = result[index];
    if (!found) result.push({ path, before: standIn, after: real });
    // Where the whole field is new: in it. The server has masked it, and the file has not.
    else result[index] = { ...found, after: withMember(found.after, stepsBetween(found.path, path), real) };
  }
  return result;
}

function stepsBetween(above: string, path: string): string[] {
  return path.slice(above.length).split('/').slice(1);
}

function withMember(root: unknown, [step, ...rest]: readonly string[], value: unknown): unknown {
  if (step === undefined) return value;
  const members = isObject(root) ? root : {};
  return { ...members, [step]: withMember(members[step], rest, value) };
}

/** The id of the schedule that a definition follows; null: none, or many. */
export function followedBy(fields: Readonly<Record<string, unknown>>): string | null {
  const { after } = fields;
  const id = isObject(after) ? after['scheduleId'] : null;
  return typeof id === 'string' && followedPrefix(id) === null ? id : null;
}

/** How entries of one kind name each other. */
interface Naming {
  /** The id of the one that must be there first; null: none. */
  parentOf: (fields: FileEntry['fields']) => string | null;
  /** Where it stands. */
  path: string;
  /** What is wrong with an entry whose parent has it as a parent, directly or through others. */
  circleOf: (parent: string) => string;
}

export const FOLLOWERS: Naming = {
  parentOf: followedBy,
  path: '/after/scheduleId',
  circleOf: (parent) => `makes a cycle: ${parent} follows this schedule, directly or through others`,
};

export const FALLBACKS: Naming = {
  parentOf: ({ fallback }) => (typeof fallback === 'string' ? fallback : null),
  path: '/fallback',
  circleOf: (parent) => `makes a cycle: ${parent} falls back to this notifier, directly or through others`,
};

/** Schedules before their followers, and fallbacks first, otherwise in their order; an entry of a circle is a fault, and left out. */
export function parentsFirst(
  entries: readonly FileEntry[],
  { parentOf, path, circleOf }: Naming,
): { sorted: FileEntry[]; faults: FileFault[] } {
  const byId = new Map(entries.map((entry) => [entry.id, entry]));
  const sorted = new Set<FileEntry>();
  const faults: FileFault[] = [];
  const circular = new Set<FileEntry>();
  for (const entry of entries) {
    // From an entry up to one that is in order already. A loop: chains may be longer than the stack.
    const chain = new Set<FileEntry>();
    let above: FileEntry | undefined = entry;
    while (above && !sorted.has(above) && !circular.has(above) && !chain.has(above)) {
      chain.add(above);
      const parent = parentOf(above.fields);
      above = parent === null ? undefined : byId.get(parent);
    }
    const closes = above && chain.has(above) ? above : null;
    const upwards = [...chain];
    const circle = closes === null ? [] : upwards.slice(upwards.indexOf(closes));
    for (const one of circle) {
      circular.add(one);
      faults.push(faultOf(one, path, circleOf(parentOf(one.fields) ?? '')));
    }
    for (const one of upwards.reverse()) if (!circular.has(one)) sorted.add(one);
  }
  return { sorted: [...sorted], faults };
}
