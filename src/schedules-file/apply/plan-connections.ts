import { type Change, type FileEntry, entryText, faultOf } from '../schedules-file.ts';
import { type ApiCaller, Refused, ask } from './caller.ts';
import type { NamedSets } from './named-sets.ts';

type Diff = Pick<Change, 'fields'> & { change: 'created' | 'updated' | 'unchanged' };

/** The changes of connections, each by a dry run: only the server can compare secret values. */
export async function planConnections(caller: ApiCaller, entries: readonly FileEntry[]): Promise<NamedSets> {
  const planned: NamedSets = { faults: [], changes: [], unchanged: 0, toSend: [], fresh: new Set() };
  for (const entry of entries) {
    const { id, kind, fields } = entry;
    const path = `connections/${encodeURIComponent(id)}`;
    try {
      const diff = (await ask(caller, 'POST', `${path}/dry-run`, entryText(entry, fields))) as Diff;
      if (diff.change === 'unchanged') {
        planned.unchanged += 1;
        continue;
      }
      if (diff.change === 'created') planned.fresh.add(id);
      planned.toSend.push({ entry, fields });
      planned.changes.push({ kind, id, change: diff.change, fields: diff.fields });
    } catch (error) {
      if (!(error instanceof Refused) || ![400, 409, 422].includes(error.status)) throw error;
      const { faults, message } = error;
      const said = faults.length > 0 ? faults : [{ path: '', message }];
      planned.faults.push(...said.map((fault) => faultOf(entry, fault.path, fault.message)));
      // That it does not exist is no other fault of the schedules that name it.
      if ((await caller.send('GET', path)).status === 404) planned.fresh.add(id);
    }
  }
  return planned;
}
