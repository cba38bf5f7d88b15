import { pointer } from '../../core/json-text.ts';
import type { FieldChange } from '../schedules-file.ts';

/** What a file changes in a payload, place by place; what is not there is undefined. None: they differ in white space at most. */
export function payloadChanges({ path, before, after }: FieldChange): FieldChange[] {
  if (JSON.stringify(before) === JSON.stringify(after)) return [];
  const changes = changesIn(before, after, []);
  // Members in another order, which the target gets as they stand.
  if (changes.length === 0) return [{ path, before, after }];
  return changes.map((change) => ({ ...change, path: path + change.path }));
}

function changesIn(before: unknown, after: unknown, path: readonly string[]): FieldChange[] {
  const [one, other] = [membersOf(before), membersOf(after)];
  if (one === null || other === null || Array.isArray(before) !== Array.isArray(after))
    return JSON.stringify(before) === JSON.stringify(after) ? [] : [{ path: pointer(path), before, after }];
  const names = new Set([...Object.keys(one), ...Object.keys(other)]);
  return [...names].flatMap((name) => changesIn(ownOf(one, name), ownOf(other, name), [...path, name]));
}

/** Null: neither an object nor a list. */
function membersOf(value: unknown): object | null {
  return typeof value === 'object' && value !== null && !JSON.isRawJSON(value) ? value : null;
}

function ownOf(members: object, name: string): unknown {
  return Object.hasOwn(members, name) ? (members as Record<string, unknown>)[name] : undefined;
}
