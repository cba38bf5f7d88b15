import { JsonText, stringifyJson } from '../../api/json.ts';

export interface Difference {
  /** A JSON pointer. */
  path: string;
  /** As JSON; null: it is not there. */
  before: string | null;
  after: string | null;
}

/** What the daemon says beside a definition; it is no part of it. */
const NOT_DEFINED = new Set(
  'id status late error nextFireAt lastFireAt lockedBy lockedAt version createdAt updatedAt'.split(' '),
);

/** The fields in which two definitions differ. A payload is compared as it was written. */
export function differencesOf(before: object, after: object): Difference[] {
  const own = (value: object) => Object.fromEntries(Object.entries(value).filter(([name]) => !NOT_DEFINED.has(name)));
  return compare(own(before), own(after), '');
}

function compare(before: unknown, after: unknown, path: string): Difference[] {
  if (!isPlain(before) || !isPlain(after)) {
    const [first, second] = [written(before), written(after)];
    return first === second ? [] : [{ path, before: first, after: second }];
  }
  const names = [...new Set([...Object.keys(before), ...Object.keys(after)])].sort();
  return names.flatMap((name) => compare(before[name], after[name], `${path}/${escaped(name)}`));
}

function written(value: unknown): string | null {
  return value === undefined ? null : stringifyJson(value);
}

function isPlain(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value) && !(value instanceof JsonText);
}

/** A step of a JSON pointer (RFC 6901). */
export function escaped(name: string): string {
  return name.replaceAll('~', '~0').replaceAll('/', '~1');
}
