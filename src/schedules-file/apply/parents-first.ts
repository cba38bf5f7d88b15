import { isObject } from '../../api/http/json/json-body.ts';
import { followedPrefix } from '../../core/timing/timing.ts';
import { type FileEntry, type FileFault, faultOf } from '../schedules-file.ts';

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
