import { type Document, isAlias, isMap, isNode, isScalar, isSeq, type Node } from 'yaml';

/** The node itself, or the node that an alias stands for. */
export function resolved(node: unknown, document: Document): Node | null {
  const target = isAlias(node) ? node.resolve(document) : node;
  return isNode(target) ? target : null;
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
  for (const step of stepsOf(pointer)) {
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

function stepsOf(pointer: string): string[] {
  return pointer
    .split('/')
    .slice(1)
    .map((step) => step.replaceAll('~1', '/').replaceAll('~0', '~'));
}
