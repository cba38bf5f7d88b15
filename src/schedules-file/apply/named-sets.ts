import { isDeepStrictEqual } from 'node:util';
import type { z } from 'zod';
import { calendarInput } from '../../api/calendars/schemas.ts';
import { checkValue } from '../../api/http/validation.ts';
import { limitInput } from '../../api/limits/schemas.ts';
import {
  type FileEntry,
  type FileFault,
  faultOf,
  type Change,
  type FieldChange,
  type ToSend,
} from '../schedules-file.ts';
import { type ApiCaller, listAll } from './caller.ts';

/** Limits, calendars, connections or notifiers. */
export interface NamedSets {
  faults: FileFault[];
  changes: Change[];
  unchanged: number;
  toSend: ToSend[];
  /** Ids that do not exist yet. */
  fresh: Set<string>;
}

/**
 * The changes of limits or calendars. The API has no dry run for them, so this checks them with the API's schemas; the
 * API checks them again when they are sent.
 */
export async function planNamedSets(
  caller: ApiCaller,
  kind: 'limits' | 'calendars',
  entries: readonly FileEntry[],
): Promise<NamedSets> {
  const planned: NamedSets = { faults: [], changes: [], unchanged: 0, toSend: [], fresh: new Set() };
  if (entries.length === 0) return planned;
  const stored = new Map<unknown, Record<string, unknown>>();
  for await (const item of listAll(caller, kind)) stored.set(item['id'], item);
  for (const entry of entries) {
    const { id, fields } = entry;
    const before = stored.get(id);
    if (before === undefined) planned.fresh.add(id);
    const checked = checkValue<Record<string, unknown>>(SETS[kind].schema, plainOf(fields));
    if ('faults' in checked) {
      planned.faults.push(...checked.faults.map(({ path, message }) => faultOf(entry, path, message)));
      continue;
    }
    const changed = before === undefined ? [] : changedFields(SETS[kind].compared, before, checked.value);
    if (before !== undefined && changed.length === 0) {
      planned.unchanged += 1;
      continue;
    }
    planned.toSend.push({ entry, fields });
    planned.changes.push({ kind, id, change: before === undefined ? 'created' : 'updated', fields: changed });
  }
  return planned;
}

function changedFields(
  names: readonly string[],
  stored: Readonly<Record<string, unknown>>,
  said: Readonly<Record<string, unknown>>,
): FieldChange[] {
  return names.flatMap((name) => {
    const change = { path: `/${name}`, before: plainOf(stored[name] ?? null), after: said[name] };
    return isDeepStrictEqual(change.before, change.after) ? [] : [change];
  });
}

const SETS = {
  limits: {
    schema: limitInput as z.ZodType<Record<string, unknown>>,
    compared: ['description', 'maxRunning'],
  },
  calendars: {
    schema: calendarInput as z.ZodType<Record<string, unknown>>,
    compared: ['description', 'dates'],
  },
};

/** With numbers for raw JSON. */
function plainOf(value: unknown): unknown {
  return JSON.parse(JSON.stringify(value));
}
