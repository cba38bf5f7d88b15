import { type Document, type Node, type Scalar, isAlias, isMap, isPair, isScalar, isSeq } from 'yaml';
import { isJson, pointer } from '../../core/json-text.ts';
import { keyText, resolved } from './places.ts';

interface Reading {
  document: Document;
  /** The whole file. */
  source: string;
  /** The replacement for a text at this place. */
  textAt: (text: string, path: readonly string[]) => string;
  fault: (path: string, message: string) => void;
  /** The remaining number of values that aliases may stand for. */
  expansion: { left: number };
}

/** Any call of the API allows 64; an entry of a batch is three levels deep in it. */
const DEEPEST = 61;
/** A few aliases of aliases can stand for billions of values. */
export const MAX_EXPANDED = 1_000_000;

/** The value of a node, as JSON.stringify writes it: numbers keep their digits. A value that JSON does not have is a fault. */
export function treeOf(
  node: unknown,
  reading: Reading,
  path: readonly string[] = [],
  inAlias = false,
): unknown {
  const { document, fault, expansion } = reading;
  const isExpanding = inAlias || isAlias(node);
  const at = resolved(node, document);
  if (isAlias(node) && at === null) fault(pointer(path), `there is no anchor ${node.source}`);
  if (isExpanding) expansion.left -= 1;
  if (expansion.left === 0) fault(pointer(path), `aliases stand for more than ${MAX_EXPANDED} values`);
  if (path.length > DEEPEST) fault(pointer(path), `is nested deeper than ${DEEPEST}`);
  if (at === null || expansion.left <= 0 || path.length > DEEPEST) return null;
  if (isMap(at)) {
    const members = at.items.map(({ key, value }): [string, unknown] => {
      const name = keyText(key);
      return [name, treeOf(value, reading, [...path, name], isExpanding)];
    });
    return Object.fromEntries(members);
  }
  if (isSeq(at)) {
    const elements: unknown[] = at.items.map((element) => (isPair(element) ? null : element));
    return elements.map((element, index) => treeOf(element, reading, [...path, String(index)], isExpanding));
  }
  return isScalar(at) ? scalarOf(at, reading, path) : null;
}

function scalarOf({ value, source }: Scalar, { textAt, fault }: Reading, path: readonly string[]): unknown {
  if (typeof value === 'string') return textAt(value, path);
  if (typeof value === 'boolean' || value === null) return value;
  const text = typeof value === 'number' && source !== undefined ? numberText(source) : null;
  if (typeof value === 'number' && text !== null) return text === String(value) ? value : JSON.rawJSON(text);
  fault(pointer(path), `is not a value that JSON has: ${source ?? typeof value}`);
  return null;
}

/** JSON text of a node: as it stands in the file if that is JSON, so that its bytes are kept, white space included. */
export function jsonTextOf(node: Node, reading: Reading, path: readonly string[]): string {
  const [start, end] = node.range ?? [0, 0];
  const written = reading.source.slice(start, end);
  const tree = treeOf(node, reading, path);
  return !isAlias(node) && isJson(written) ? written : JSON.stringify(tree);
}

/** A YAML number as JSON, with all of its digits; null: JSON has no such number (.inf, .nan). */
export function numberText(source: string): string | null {
  if (JSON_NUMBER.test(source)) return source;
  if (/^0[xo][\da-f]+$/i.test(source)) return BigInt(source).toString();
  if (/^[-+]?\d+$/.test(source)) return BigInt(source.replace('+', '')).toString();
  const [, sign = '', whole = '', fraction = '', exponent = ''] = YAML_FLOAT.exec(source) ?? [];
  if (whole === '' && fraction === '') return null;
  const digits = whole.replace(/^0+(?=\d)/, '') || '0';
  return (sign === '-' ? '-' : '') + digits + (fraction === '' ? '' : `.${fraction}`) + exponent;
}

const JSON_NUMBER = /^-?(?:0|[1-9]\d*)(?:\.\d+)?(?:e[+-]?\d+)?$/i;
const YAML_FLOAT = /^([-+]?)(\d*)\.?(\d*)((?:e[+-]?\d+)?)$/i;
