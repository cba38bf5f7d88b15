import { compareToNumber, equalTrees, pointerSteps, treeIfJson, valueAt } from '../../json-text.ts';
import { keptText } from './kept-text.ts';
import { MAX_JUDGED_BYTES, type ResultBound } from '../../schedules/expect.ts';

/**
 * What does not hold of a result, in words for a person; null: all holds. They name places and bounds, and nothing of the result. Of a
 * text that is no JSON, such as what a command printed, the last line is judged.
 */
export function resultFault(bounds: readonly ResultBound[], result: string | null): string | null {
  if (result === null) return 'there was no result';
  if (Buffer.byteLength(result) > MAX_JUDGED_BYTES) return TOO_LONG;
  const tree = treeIfJson(result) ?? treeIfJson(lastLineOf(result));
  if (tree === undefined) return NO_JSON;
  const faults = bounds.flatMap((bound) => faultOf(bound, tree) ?? []);
  return faults.length === 0 ? null : keptText(Buffer.from(faults.join('; ')));
}

/** The same of the body of an answer, of which so much was read. Null: it could not be decoded. */
export function answerFault(bounds: readonly ResultBound[], body: Buffer | null): string | null {
  const text = body?.toString() ?? '';
  if (treeIfJson(text) !== undefined) return resultFault(bounds, text);
  return body !== null && body.length >= MAX_JUDGED_BYTES ? TOO_LONG : NO_JSON;
}

const NO_JSON = 'its result is no JSON';
const TOO_LONG = 'its result is longer than 64 KiB, of which nothing is judged';

function lastLineOf(text: string): string {
  const trimmed = text.trimEnd();
  return trimmed.slice(trimmed.lastIndexOf('\n') + 1);
}

function faultOf({ pointer, min, max, json }: ResultBound, tree: unknown): string | null {
  const place = pointer === '' ? 'its result' : `its result at ${JSON.stringify(pointer)}`;
  const value = valueAt(tree, pointerSteps(pointer) ?? [pointer]);
  if (value === undefined) return `its result has nothing at ${JSON.stringify(pointer)}`;
  if (json !== null && !equalTrees(value, treeIfJson(json))) return `${place} is not what is expected`;
  if (min === null && max === null) return null;
  if (compareToNumber(value, 0) === null) return `${place} is no number`;
  if (min !== null && (compareToNumber(value, min) ?? 0) < 0) return `${place} is less than ${min}`;
  return max !== null && (compareToNumber(value, max) ?? 0) > 0 ? `${place} is more than ${max}` : null;
}
