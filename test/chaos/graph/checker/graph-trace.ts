import type { Asked, Delivery, FinalRow, GraphHistory, Word } from './graph-history.ts';
import type { GraphReport } from './graph-violations.ts';

/** All there is of one run. */
export interface Traced {
  asked: Asked;
  row: FinalRow;
  /** In the order of time, both. */
  deliveries: Delivery[];
  words: Word[];
  dependsOn: Traced[];
  /** It may not start, as one that it needs did not succeed. */
  inVain: boolean;
}

const TERMINAL = ['succeeded', 'failed', 'unknown', 'abandoned', 'skipped', 'cancelled'];

export function hasEnded({ row }: Pick<Traced, 'row'>): boolean {
  return TERMINAL.includes(row.status);
}

/** For the examples. */
export function nameOf({ asked, row }: Traced): string {
  return `${asked.ref} (${row.id})`;
}

/**
 * Puts together what belongs together; what belongs to nothing is a phantom, what is not there is lost. A run that a call without an answer
 * asked for may be there or not; where it is, it is one like the others.
 */
export function trace(history: GraphHistory, report: GraphReport): Traced[] {
  const rows = new Map(history.rows.map((row) => [row.id, row]));
  const byKey = new Map(history.rows.map((row) => [row.key, row]));
  const deliveries = Map.groupBy(history.deliveries, ({ runId }) => runId);
  const words = Map.groupBy(history.words, ({ runId }) => runId);
  const traced = new Map<string, Traced>();
  for (const asked of history.asked) {
    const row = asked.outcome === 'unknown' ? byKey.get(asked.ref) : rows.get(asked.id ?? '');
    if (row?.key !== asked.ref) {
      if (asked.outcome === 'accepted') report.add('lost', `${asked.ref} (${asked.id ?? 'no id'})`);
      continue;
    }
    rows.delete(row.id);
    traced.set(asked.ref, {
      asked,
      row,
      deliveries: (deliveries.get(row.id) ?? []).sort((a, b) => a.at - b.at),
      words: (words.get(row.id) ?? []).sort((a, b) => a.sentAt - b.sentAt),
      dependsOn: [],
      inVain: false,
    });
    deliveries.delete(row.id);
  }
  checkWhole(history.asked, traced, report);
  for (const { id, key } of rows.values()) report.add('phantom', `row ${id}, key ${key ?? 'none'}`);
  for (const id of deliveries.keys()) report.add('phantom', `a delivery of ${id}`);
  // Only now: a batch may name what comes after.
  for (const one of traced.values()) {
    one.dependsOn = one.asked.dependsOn.flatMap((ref) => traced.get(ref) ?? []);
    one.inVain =
      one.asked.onDependencyFailure === 'fail' &&
      one.dependsOn.some((other) => hasEnded(other) && other.row.status !== 'succeeded');
  }
  return [...traced.values()];
}

/** Of a call without an answer too, all that it asked for is there, or nothing. */
function checkWhole(asked: readonly Asked[], traced: ReadonlyMap<string, Traced>, report: GraphReport): void {
  const unknown = asked.filter(({ outcome }) => outcome === 'unknown');
  for (const [call, runs] of Map.groupBy(unknown, (one) => one.call)) {
    const missing = runs.filter(({ ref }) => !traced.has(ref));
    if (missing.length === 0 || missing.length === runs.length) continue;
    report.add(
      'lost',
      `of call ${call}: ${missing.map(({ ref }) => ref).join(', ')}, and others of it are there`,
    );
  }
}
