import { randomUUID } from 'node:crypto';
import { isObject } from './json-body.ts';
import { parseKeepingDigits } from '../../../core/json-text.ts';

/** JSON text that goes into an answer or a request unchanged: parsing would change the digits of its numbers. */
export class RawJson {
  readonly text: string;

  constructor(text: string) {
    this.text = text;
  }

  toJSON(): string {
    spliced.push(this.text);
    return MARK;
  }
}

export function rawJsonOrNull(text: string | null): RawJson | null {
  return text === null ? null : new RawJson(text);
}

/** As JSON.stringify, but inserts each RawJson as it is. */
export function stringify(value: unknown): string {
  spliced = [];
  const parts = JSON.stringify(value).split(`"${MARK}"`);
  const texts = spliced;
  let json = parts[0] ?? '';
  for (let index = 1; index < parts.length; index += 1) json += (texts[index - 1] ?? 'null') + (parts[index] ?? '');
  return json;
}

/** Stands where raw text will; it is not known outside of the process. */
const MARK = randomUUID();

/** The texts that the present stringify has met, in order; JSON.stringify is synchronous. */
let spliced: string[] = [];

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
