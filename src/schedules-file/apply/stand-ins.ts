import { isObject } from '../../api/http/json/json-body.ts';
import type { FileEntry, FieldChange } from '../schedules-file.ts';
import { followedBy } from './parents-first.ts';

/** Entries of the file that the server does not have yet, by id. */
export interface NotThereYet {
  limits: ReadonlySet<string>;
  calendars: ReadonlySet<string>;
  schedules: ReadonlySet<string>;
}

interface Replaced {
  path: string;
  standIn: unknown;
  real: unknown;
}

/**
 * For a dry run, which is refused if it names something that does not exist: no limit, no calendar, and "all schedules"
 * instead of the one that is followed. The server cannot have any of these values now, so each is a change.
 */
export function withStandIns({ fields }: FileEntry, missing: NotThereYet) {
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
  const parent = followedBy(fields);
  if (parent !== null && missing.schedules.has(parent)) {
    sent['after'] = { ...(fields['after'] as object), scheduleId: '*' };
    replaced.push({ path: '/after/scheduleId', standIn: '*', real: parent });
  }
  return { sent, replaced };
}

/** The changes of a dry run, with the real values in place of the stand-ins. */
export function withReal(
  changes: readonly FieldChange[],
  replaced: readonly Replaced[],
  { fields }: FileEntry,
): FieldChange[] {
  const result = [...changes];
  for (const { path, standIn, real } of replaced) {
    const index = result.findIndex((change) => path === change.path || path.startsWith(`${change.path}/`));
    const found = result[index];
    if (!found) result.push({ path, before: standIn, after: real });
    // The whole field is new: `exclude`, `after`.
    else result[index] = { ...found, after: found.path === path ? real : fields[found.path.slice(1)] };
  }
  return result;
}
