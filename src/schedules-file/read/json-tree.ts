import {
  type Alias,
  type Document,
  type Node,
  type Scalar,
  isAlias,
  isMap,
  isNode,
  isPair,
  isScalar,
  isSeq,
  visit,
} from 'yaml';
import { isJson, pointer, pointerSteps } from '../../core/json-text.ts';
import { type FileVariables, fileVariable } from '../../core/secrets/file-variables.ts';
import type { Kind } from '../schedules-file.ts';

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
export function treeOf(node: unknown, reading: Reading, path: readonly string[] = [], inAlias = false): unknown {
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

/** The node itself, or the node that an alias stands for. */
export function resolved(node: unknown, document: Document): Node | null {
  if (isAlias(node)) return targetsIn(document).get(node) ?? null;
  return isNode(node) ? node : null;
}

const known = new WeakMap<Document, ReadonlyMap<Alias, Node>>();

/** What each alias stands for, found in one walk: `Alias.resolve` walks through the whole document for each. */
function targetsIn(document: Document): ReadonlyMap<Alias, Node> {
  const before = known.get(document);
  if (before !== undefined) return before;
  const anchored = new Map<string, Node>();
  const targets = new Map<Alias, Node>();
  visit(document, {
    Node: (_, node) => {
      const target = isAlias(node) ? anchored.get(node.source) : undefined;
      if (isAlias(node) && target !== undefined) targets.set(node, target);
      else if (!isAlias(node) && node.anchor !== undefined) anchored.set(node.anchor, node);
    },
  });
  known.set(document, targets);
  return targets;
}

/**
 * The position at which something begins, in characters from the start of the file; null: it has none, for example an
 * absent value.
 */
export function offsetOf(node: unknown): number | null {
  return isNode(node) && node.range ? node.range[0] : null;
}

/**
 * The position of the value that a JSON pointer into a node names, or of the nearest value around it. For a member, the
 * position of its name.
 */
export function offsetAt(root: Node, pointer: string, document: Document): number {
  let at: Node | null = resolved(root, document);
  let offset = offsetOf(at) ?? 0;
  for (const step of pointerSteps(pointer) ?? []) {
    let below: unknown;
    if (isMap(at)) {
      const pair = at.items.find(({ key }) => keyText(key) === step);
      offset = offsetOf(pair?.key) ?? offset;
      below = pair?.value;
    } else if (isSeq(at)) {
      below = at.items[Number(step)];
      offset = offsetOf(below) ?? offset;
    }
    at = resolved(below, document);
  }
  return offset;
}

export function keyText(key: unknown): string {
  return isScalar(key) ? String(key.value) : '';
}

/** `${NAME}` becomes the value of the variable, and `$${NAME}` the text `${NAME}`. */
export function substitute(text: string, variables: FileVariables): { text: string; faults: string[] } {
  const faults: string[] = [];
  const replaced = text.replace(/\$(\$?)\{([A-Za-z_]\w*)\}/g, (_, escaped: string, name: string) => {
    if (escaped !== '') return `\${${name}}`;
    const found = fileVariable(name, variables);
    if ('value' in found) return found.value;
    faults.push(found.fault);
    // A value with which no other fault arises.
    return name;
  });
  return { text: replaced, faults };
}

/**
 * Whether a place of an entry holds a secret: a header's value, one of a body or a signing secret of a target, a header's value or a
 * credential of a connection, the routing key of a notifier. Variables are replaced nowhere else.
 */
export function isSecret(kind: Kind, path: readonly string[]): boolean {
  if (kind === 'notifiers')
    return path[0] === 'channel' && (path.join('.') === 'channel.routingKey' || isSecretOfTarget(path.slice(1)));
  return kind === 'connections' ? isCredential(path) : kind === 'schedules' && isSecretOfTarget(path);
}

function isCredential(path: readonly string[]): boolean {
  return path.length === 2 && (path[0] === 'headers' || CREDENTIALS.includes(path.join('.')));
}

function isSecretOfTarget([target, ...below]: readonly string[]): boolean {
  if (target !== 'target') return false;
  const [name] = below;
  if (name === 'secret') return true;
  if (name === 'body') return below[1] === 'secrets' && below.length === 3;
  const call = name === 'lookup' || name === 'cancel' ? below.slice(1) : below;
  return call[0] === 'headers' && call.length === 2;
}

const CREDENTIALS = ['auth.token', 'auth.password', 'auth.clientSecret', 'tls.key'];
