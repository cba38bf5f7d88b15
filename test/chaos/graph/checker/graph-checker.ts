/**
 * Says from a graph campaign's history which promises were broken. What it expects it computes by itself, from what the client asked for
 * and what receiver, workers and observer saw: nothing here imports the daemon's code.
 */
import { checkEnds } from './graph-check-ends.ts';
import { checkLeases } from './graph-check-leases.ts';
import { checkOrder } from './graph-check-order.ts';
import type { GraphHistory } from './graph-history.ts';
import { trace } from './graph-trace.ts';
import { type GraphFound, createGraphReport } from './graph-violations.ts';

export interface GraphVerdict {
  ok: boolean;
  violations: GraphFound;
}

export function checkGraph(history: GraphHistory): GraphVerdict {
  const report = createGraphReport();
  const traced = trace(history, report);
  checkEnds(history, traced, report);
  checkOrder(traced, report);
  checkLeases(history, traced, report);
  if (history.releasedByBackstop > 0) report.add('backstop', 'see the logs', history.releasedByBackstop);
  if (history.uncounted > 0) report.add('uncounted', 'edges in the database', history.uncounted);
  for (const refusal of history.refusals) report.add('refusal', refusal);
  for (const instance of history.unready) report.add('liveness', instance);
  return { ok: Object.values(report.found).every(({ count }) => count === 0), violations: report.found };
}
