import type { DeliveredRun } from '../load/delivery.ts';
import { dueMoments } from '../load/schedule-mix.ts';
import { type Evidence, type Faults, occurrenceOf, FAULTS } from './evidence.ts';

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

/**
 * A run may come again only if the instance that sent it before was killed after it was due, and before it came again. (What a dead
 * instance has sent may still be on its way: on a busy machine it arrives after the death.) Answers how often that was so; every other
 * repeat is a fault.
 */
function checkRepeats({ deliveries, senders, kills }: Evidence, faults: Faults): number {
  const last = new Map<string, DeliveredRun>();
  let explained = 0;
  for (const delivery of deliveries) {
    const before = last.get(delivery.runId);
    last.set(delivery.runId, delivery);
    if (before === undefined) continue;
    const sender = senders.get(delivery.runId)?.find(({ attempt }) => attempt === before.attempt);
    const kill = kills.get(sender?.instanceId ?? '');
    const isExplained =
      kill !== undefined &&
      before.attempt !== delivery.attempt &&
      before.scheduledFor <= kill.to &&
      kill.from <= delivery.at;
    if (isExplained) explained += 1;
    else
      faults.repeated.push(`${occurrenceOf(delivery)}, attempts ${before.attempt} and ${delivery.attempt}`);
  }
  return explained;
}

interface Context {
  /** The first delivery of each occurrence. */
  arrived: ReadonlyMap<string, DeliveredRun>;
  faults: Faults;
}

/**
 * A run's row says when it ended. firelock knows of the end when the row has been written: a little later, or some seconds later where
 * the disk stalls.
 */
const WRITTEN_WITHIN_MS = 5_000;

/**
 * Of schedules whose runs must not overlap: no two were under way at once, and what was skipped was skipped for a run that was. Answers
 * the occurrences that were skipped rightly.
 */
function checkOverlap(evidence: Evidence, { arrived, faults }: Context): Set<string> {
  const skipped = new Set<string>();
  for (const runs of groupedBySchedule(evidence.overlapRuns)) {
    let busyUntil = -Infinity;
    for (const run of [...runs].sort((one, other) => one.scheduledFor - other.scheduledFor)) {
      if (run.status !== 'skipped') {
        busyUntil = Math.max(busyUntil, run.finishedAt ?? Infinity);
        continue;
      }
      const occurrence = occurrenceOf(run);
      if (run.reason !== 'overlap' || busyUntil + WRITTEN_WITHIN_MS < run.scheduledFor)
        faults.notHeldBack.push(occurrence);
      else skipped.add(occurrence);
      if (arrived.has(occurrence)) faults.notDue.push(`${occurrence}, which is recorded as skipped`);
    }
  }
  checkAtOnce(evidence, faults);
  return skipped;
}

function checkAtOnce({ schedules, deliveries }: Evidence, faults: Faults): void {
  const ids = new Set(schedules.filter(({ kind }) => kind === 'overlap').map(({ id }) => id));
  const alone = deliveries.filter(({ scheduleId }) => ids.has(scheduleId));
  for (const own of groupedBySchedule(alone)) {
    let underWay: DeliveredRun[] = [];
    for (const delivery of own) {
      underWay = underWay.filter(({ endedAt }) => endedAt === null || endedAt > delivery.at);
      const other = underWay.find(({ runId }) => runId !== delivery.runId);
      if (other !== undefined) faults.atOnce.push(`${occurrenceOf(delivery)}, during ${occurrenceOf(other)}`);
      underWay.push(delivery);
    }
  }
}

function groupedBySchedule<Item extends { scheduleId: string }>(items: readonly Item[]): Item[][] {
  return [...Map.groupBy(items, ({ scheduleId }) => scheduleId).values()];
}
