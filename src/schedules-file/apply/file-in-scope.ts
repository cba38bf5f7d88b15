import { type Scope, owns, scopeText } from '../../core/access/scope.ts';
import { type FileFault, KINDS, type SchedulesFile, faultOf } from '../schedules-file.ts';
import { type ApiCaller, ask } from './caller.ts';

/** What the caller's token may change; null: all names. */
export async function scopeOfCaller(caller: ApiCaller): Promise<Scope> {
  const { scope } = (await ask(caller, 'GET', 'me')) as { scope?: string[] | null };
  return scope ?? null;
}

/** The entries of this scope; each other one is a fault. */
export function entriesInScope(
  { entries }: SchedulesFile,
  scope: Scope,
): Pick<SchedulesFile, 'entries' | 'faults'> {
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
