import { isObject } from '../../api/http/json/json-body.ts';
import { type FileEntry, type FileFault, faultOf } from '../schedules-file.ts';

/** The id of the schedule that a definition follows; null: none, or all. */
export function followedBy(fields: Readonly<Record<string, unknown>>): string | null {
  const { after } = fields;
  const id = isObject(after) ? after['scheduleId'] : null;
  return typeof id === 'string' && id !== '*' ? id : null;
}

/** Schedules before their followers, otherwise in their order; a schedule of a cycle is a fault, and left out. */
export function parentsFirst(entries: readonly FileEntry[]): { sorted: FileEntry[]; faults: FileFault[] } {
  const byId = new Map(entries.map((entry) => [entry.id, entry]));
  const sorted = new Set<FileEntry>();
  const faults: FileFault[] = [];
  const circular = new Set<FileEntry>();
  for (const entry of entries) {
    // From a schedule up to one that is in order already. A loop: chains may be longer than the stack.
    const chain = new Set<FileEntry>();
    let above: FileEntry | undefined = entry;
    while (above && !sorted.has(above) && !circular.has(above) && !chain.has(above)) {
      chain.add(above);
      const parent = followedBy(above.fields);
      above = parent === null ? undefined : byId.get(parent);
    }
    const closes = above && chain.has(above) ? above : null;
    const upwards = [...chain];
    const circle = closes === null ? [] : upwards.slice(upwards.indexOf(closes));
    for (const one of circle) {
      circular.add(one);
      const message = `makes a cycle: ${followedBy(one.fields) ?? ''} follows this schedule, directly or through others`;
      faults.push(faultOf(one, '/after/scheduleId', message));
    }
    for (const one of upwards.reverse()) if (!circular.has(one)) sorted.add(one);
  }
  return { sorted: [...sorted], faults };
}
