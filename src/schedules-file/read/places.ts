import { type Alias, type Document, isAlias, isMap, isNode, isScalar, isSeq, type Node, visit } from 'yaml';
import { pointerSteps } from '../../core/json-text.ts';

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
