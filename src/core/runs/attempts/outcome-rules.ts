import { compareToNumber, equalTrees, pointerSteps, treeIfJson, valueAt } from '../../json-text.ts';
import type { Delivery, OutcomeRules, StatusPattern } from '../../schedules/schedule.ts';
import { type AttemptError, answerError, classifyStatus, keptText } from './outcome.ts';
import { type ResultBound, MAX_JUDGED_BYTES } from '../../schedules/expect.ts';

/** What a whole answer means; `error` is the rule of the schedule that says so, null: the status says it. */
type AnswerVerdict = { kind: 'accepted' } | { kind: 'rejected' | 'transient'; error: AttemptError | null };

interface WholeAnswer {
  statusCode: number;
  /** As much of it as is read. */
  body: Buffer;
  /** False: what it says cannot be told. */
  isDecoded: boolean;
}

/**
 * The lists judge first, then firelock's own rule by status; what is a success by then must have what `require` names.
 * The message names the rule and nothing of the answer, which the run keeps beside it.
 */
export function judge(rules: OutcomeRules | null, answer: WholeAnswer, delivery: Delivery): AnswerVerdict {
  const { statusCode } = answer;
  if (rules === null) return byStatus(statusCode);
  const listed = LISTS.find((list) => rules[list].some((pattern) => matches(pattern, statusCode)));
  const verdict = listed === undefined ? byStatus(statusCode) : byList(listed, statusCode);
  if (verdict.kind !== 'accepted' || rules.require === null) return verdict;
  const missing = answer.isDecoded ? missingFrom(answer.body, rules.require) : UNDECODED;
  if (missing === null) return verdict;
  const { message } = answerError(statusCode);
  const error: AttemptError = { kind: 'http', message: `${message}, and ${missing}`, statusCode };
  // Another attempt would get such bytes again.
  if (!answer.isDecoded) return { kind: 'rejected', error };
  const otherwise = rules.otherwise ?? (delivery === 'atMostOnce' ? 'fail' : 'retry');
  return { kind: otherwise === 'fail' ? 'rejected' : 'transient', error };
}

const UNDECODED = 'its body cannot be decoded, so outcome.require is not met';

/** What is wrong with a pattern as text or number; null: nothing. */
export function patternFault(pattern: StatusPattern): string | null {
  const range = rangeOf(pattern);
  if (range === null) return 'must be a status (409), a class ("4xx") or a range ("400-404"), of 200 to 599';
  return range[0] > range[1] ? 'ends before it begins' : null;
}

/** Whether some status matches both. */
export function overlap(a: StatusPattern, b: StatusPattern): boolean {
  const [one, other] = [rangeOf(a), rangeOf(b)];
  return one !== null && other !== null && one[0] <= other[1] && other[0] <= one[1];
}

const LISTS = ['succeed', 'retry', 'fail'] as const;

function byStatus(statusCode: number): AnswerVerdict {
  const kind = classifyStatus(statusCode);
  return kind === 'accepted' ? { kind } : { kind, error: null };
}

function byList(list: (typeof LISTS)[number], statusCode: number): AnswerVerdict {
  if (list === 'succeed') return { kind: 'accepted' };
  const { message } = answerError(statusCode);
  const error: AttemptError = {
    kind: 'http',
    message: `${message}, which is in outcome.${list}`,
    statusCode,
  };
  return { kind: list === 'fail' ? 'rejected' : 'transient', error };
}

function matches(pattern: StatusPattern, statusCode: number): boolean {
  const [first, last] = rangeOf(pattern) ?? [NaN, NaN];
  return first <= statusCode && statusCode <= last;
}

function rangeOf(pattern: StatusPattern): [first: number, last: number] | null {
  const text = String(pattern).toLowerCase();
  const inClass = /^([2-5])xx$/.exec(text);
  if (inClass) return [Number(inClass[1]) * 100, Number(inClass[1]) * 100 + 99];
  const [, first, last = first] = /^([2-5]\d\d)(?:-([2-5]\d\d))?$/.exec(text) ?? [];
  return first === undefined ? null : [Number(first), Number(last)];
}

/** Null: it is there. */
function missingFrom(body: Buffer, required: NonNullable<OutcomeRules['require']>): string | null {
  const text = body.toString();
  if ('contains' in required)
    return text.includes(required.contains) ? null : 'its text does not contain what outcome.require.contains says';
  const { pointer, json } = required;
  const found = valueAt(treeIfJson(text), pointerSteps(pointer) ?? [pointer]);
  if (found !== undefined && equalTrees(found, treeIfJson(json))) return null;
  return `its JSON at ${JSON.stringify(pointer)} is not what outcome.require.equals says`;
}

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
