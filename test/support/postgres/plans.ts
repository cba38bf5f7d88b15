/** A node of what EXPLAIN (ANALYZE, FORMAT JSON) answers. */
export interface PlanNode {
  'Actual Rows': number;
  'Actual Loops': number;
  'Rows Removed by Filter'?: number;
  'Rows Removed by Index Recheck'?: number;
  'Relation Name'?: string;
  Filter?: string;
  Plans?: PlanNode[];
}

/** Rows that all nodes of a plan came by, those they dropped included. */
export function rowsIn(node: PlanNode | undefined): number {
  if (!node) throw new Error('there is no plan');
  const dropped = (node['Rows Removed by Filter'] ?? 0) + (node['Rows Removed by Index Recheck'] ?? 0);
  const own = (node['Actual Rows'] + dropped) * node['Actual Loops'];
  return (node.Plans ?? []).reduce((sum, below) => sum + rowsIn(below), own);
}

/** How often a plan looked at a table. */
export function loopsOver(table: string, node: PlanNode | undefined): number {
  if (!node) throw new Error('there is no plan');
  const own = node['Relation Name'] === table ? node['Actual Loops'] : 0;
  return (node.Plans ?? []).reduce((sum, below) => sum + loopsOver(table, below), own);
}

/** The conditions that all nodes of a plan check row by row. */
export function filtersIn(node: PlanNode | undefined): string[] {
  if (!node) throw new Error('there is no plan');
  const own = node.Filter === undefined ? [] : [node.Filter];
  return [...own, ...(node.Plans ?? []).flatMap((below) => filtersIn(below))];
}
