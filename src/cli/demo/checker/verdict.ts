import type { DeliveredRun } from '../load/delivery.ts';
import { dueMoments } from './due-moments.ts';
import { checkOverlap } from './check-overlap.ts';
import { checkRepeats } from './check-repeats.ts';
import { type Evidence, FAULTS, type Faults, occurrenceOf } from './evidence.ts';

export interface Verdict {
  ok: boolean;
  due: number;
  /** Of those, delivered. */
  delivered: number;
  /** Of those, recorded as skipped since the run before was under way. */
  skipped: number;
  /** Deliveries again after the death of their sender. */
  repeatedAfterDeath: number;
  /** Each with the occurrences or runs that it is about. */
  faults: Faults;
}

/** Compares what was due, by the schedules' own rules, with what has arrived. */
export function check(evidence: Evidence): Verdict {
  const faults = Object.fromEntries(Object.keys(FAULTS).map((fault) => [fault, []])) as unknown as Faults;
  const due = dueOf(evidence);
  const arrived = new Map<string, DeliveredRun>();
  for (const delivery of evidence.deliveries) {
    checkOne(delivery, { due, first: arrived.get(occurrenceOf(delivery)), faults });
    if (!arrived.has(occurrenceOf(delivery))) arrived.set(occurrenceOf(delivery), delivery);
  }
  const repeatedAfterDeath = checkRepeats(evidence, faults);
  const skipped = checkOverlap(evidence, { arrived, faults });
  faults.missing.push(...[...due].filter((one) => !arrived.has(one) && !skipped.has(one)));
  const { openRuns, ...ended } = evidence.ends;
  for (const [name, count] of Object.entries({ openRuns, ...ended }))
    if (count > 0) faults.unfinished.push(`${count} ${name.replace('Runs', '')}`);
  return {
    ok: Object.values(faults).every(({ length }) => length === 0),
    due: due.size,
    delivered: [...arrived.keys()].filter((one) => due.has(one)).length,
    skipped: [...skipped].filter((one) => due.has(one)).length,
    repeatedAfterDeath,
    faults,
  };
}

function dueOf({ schedules, from, to }: Evidence): Set<string> {
  return new Set(
    schedules.flatMap(({ id, rule }) =>
      dueMoments(rule, { from, to }).map((scheduledFor) => occurrenceOf({ scheduleId: id, scheduledFor })),
    ),
  );
}

/** The database's clock and the receiver's are one machine's; what is left is when each of them looks at it. */
const EARLY_MS = 50;

function checkOne(
  delivery: DeliveredRun,
  { due, first, faults }: { due: ReadonlySet<string>; first: DeliveredRun | undefined; faults: Faults },
): void {
  const text = occurrenceOf(delivery);
  if (!due.has(text)) faults.notDue.push(text);
  if (delivery.at < delivery.scheduledFor - EARLY_MS) faults.early.push(text);
  if (delivery.key !== delivery.runId) faults.otherKey.push(text);
  if (first !== undefined && first.runId !== delivery.runId) {
    faults.otherId.push(`${text}: ${first.runId}, then ${delivery.runId}`);
  }
}
