import { isObject } from './json-body.ts';
import { parseKeepingDigits } from '../../../core/json-text.ts';

/** RFC 7396. Own properties only, whatever their names. */
export function mergePatch(target: unknown, patch: unknown): unknown {
  if (!isTree(patch)) return patch;
  const merged = new Map(isTree(target) ? Object.entries(target) : []);
  for (const [key, value] of Object.entries(patch)) {
    if (value === null) merged.delete(key);
    else merged.set(key, mergePatch(merged.get(key), value));
  }
  return Object.fromEntries(merged);
}

/**
 * The same over JSON texts: numbers keep their digits, and what does not change stays byte for byte. Null stands for
 * no payload.
 */
export function mergeJsonText(target: string | null, patch: string): string | null {
  const patchTree = parseKeepingDigits(patch);
  if (patchTree === null) return null;
  if (!isTree(patchTree)) return patch;
  const targetTree = target === null ? undefined : parseKeepingDigits(target);
  const merged = JSON.stringify(mergePatch(targetTree, patchTree));
  return isTree(targetTree) && JSON.stringify(targetTree) === merged ? target : merged;
}

/** An object, and not a number that keeps its digits. */
export function isTree(value: unknown): value is Record<string, unknown> {
  return isObject(value) && !JSON.isRawJSON(value);
}
