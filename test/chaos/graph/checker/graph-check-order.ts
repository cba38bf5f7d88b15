import { endsNotBefore } from './graph-check-ends.ts';
import type { Delivery, FinalRow } from './graph-history.ts';
import { type Traced, nameOf } from './graph-trace.ts';
import type { GraphReport } from './graph-violations.ts';

/** That nothing starts before what it depends on has ended, and that it is told how. */
export function checkOrder(traced: readonly Traced[], report: GraphReport): void {
  const endOf = endsNotBefore(traced);
  for (const one of traced) {
    const [first] = one.deliveries;
    if (!first) continue;
    for (const dependency of one.dependsOn) {
      const end = endOf(dependency);
      if (first.at >= end) continue;
      const early = Number.isFinite(end) ? `${Math.round(end - first.at)} ms before` : 'without';
      report.add('tooEarly', `${nameOf(one)} started ${early} the end of ${nameOf(dependency)}`);
    }
    for (const delivery of one.deliveries) {
      const wrong = wrongOutcome(one, delivery);
      if (wrong !== null) report.add('wrongOutcome', `${nameOf(one)}, attempt ${delivery.attempt}: ${wrong}`);
    }
  }
}

/** What is wrong with what an attempt was told; the ends it is told of do not change any more. */
function wrongOutcome({ dependsOn }: Traced, { outcomes }: Delivery): string | null {
  if (outcomes.length !== dependsOn.length)
    return `of ${outcomes.length} dependencies, not ${dependsOn.length}`;
  const rows = new Map(dependsOn.map(({ row }) => [row.id, row]));
  for (const one of outcomes) {
    const row = rows.get(one.runId);
    rows.delete(one.runId);
    if (!row) return `of ${one.runId}, on which it does not depend, or twice`;
    const difference = differenceOf(row, one);
    if (difference !== null) return `of ${one.runId}: ${difference}`;
  }
  return null;
}

function differenceOf(row: FinalRow, shown: Pick<FinalRow, 'status' | 'errorKind' | 'body'>): string | null {
  for (const field of ['status', 'errorKind', 'body'] as const) {
    if (row[field] !== shown[field]) return `${field} ${String(shown[field])}, not ${String(row[field])}`;
  }
  return null;
}
