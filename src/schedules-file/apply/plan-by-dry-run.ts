import {
  type Change,
  type FileEntry,
  type FileFault,
  type ToSend,
  entryText,
  faultOf,
} from '../schedules-file.ts';
import { type ApiCaller, Refused, ask } from './caller.ts';
import { type StoodIn, withReal } from './stand-ins.ts';

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
export async function planByDryRun(
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
