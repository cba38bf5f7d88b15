import type { Batch } from '../../../../clients/typescript/src/generated/types.gen.ts';

type Item = Batch['items'][number];

/** A run of the batch, in the column after those of all that it depends on. */
export interface Node extends Item {
  column: number;
  row: number;
}

interface Layout {
  nodes: Node[];
  edges: [from: Node, to: Node][];
  columns: number;
  rows: number;
}

/** Of the first `most` runs of the batch, and the one of this id. */
export function layoutOf(items: readonly Item[], id: string, most: number): Layout {
  const shown = items.filter((item, index) => index < most || item.id === id);
  const byRef = new Map(shown.map((item) => [item.ref, item]));
  const columnOf = columnsOf(byRef);
  const filled: number[] = [];
  const nodes = shown.map((item): Node => {
    const column = columnOf.get(item.ref) ?? 0;
    const row = filled[column] ?? 0;
    filled[column] = row + 1;
    return { ...item, column, row };
  });
  const nodeOf = new Map(nodes.map((node) => [node.ref, node]));
  const edges = nodes.flatMap((to) =>
    to.dependsOn.flatMap((ref): [Node, Node][] => {
      const from = nodeOf.get(ref);
      return from ? [[from, to]] : [];
    }),
  );
  return { nodes, edges, columns: filled.length, rows: Math.max(0, ...filled) };
}

/** Longest ways from what depends on nothing. Batches have no cycles. */
function columnsOf(byRef: ReadonlyMap<string, Item>): ReadonlyMap<string, number> {
  const columns = new Map<string, number>();
  const columnOf = (ref: string): number => {
    const known = columns.get(ref);
    if (known !== undefined) return known;
    const before = byRef.get(ref)?.dependsOn.filter((other) => byRef.has(other)) ?? [];
    const column = before.reduce((most, other) => Math.max(most, columnOf(other) + 1), 0);
    columns.set(ref, column);
    return column;
  };
  for (const ref of byRef.keys()) columnOf(ref);
  return columns;
}
