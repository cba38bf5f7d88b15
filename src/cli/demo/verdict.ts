import { type Instant, isoInstant } from '../../core/instant.ts';
import type { DeliveredRun } from './demo-receiver.ts';
import { type DemoSchedule, dueMoments } from './schedule-mix.ts';

/** All that the checker is given: what was asked for, what arrived, what was killed, and what explains a second delivery. */
export interface Evidence {
  schedules: readonly DemoSchedule[];
  from: Instant;
  /** Exclusive. */
  to: Instant;
  /** In the order of arrival. */
  deliveries: readonly DeliveredRun[];
  /** Who made the attempts of the runs that came more than once, by run id. */
  senders: ReadonlyMap<string, readonly SentAttempt[]>;
  /** By the id of the instance. */
  kills: ReadonlyMap<string, KillTime>;
  /** How many runs are open, and have ended how, by firelock's own count. */
  ends: Record<(typeof UNFINISHED)[number], number>;
}

export interface SentAttempt {
  attempt: number;
  instanceId: string;
}

/** From the moment of the kill to that at which the process was gone. */
export interface KillTime {
  from: Instant;
  to: Instant;
}

const UNFINISHED = ['openRuns', 'failedRuns', 'unknownRuns', 'abandonedRuns', 'cancelledRuns'] as const;

/** Kinds of broken promises, in the words of the verdict. */
export const FAULTS = {
  missing: 'due, and not delivered',
  notDue: 'delivered, and not due',
  early: 'delivered before their moment',
  otherId: 'delivered under a second run id',
  otherKey: 'delivered with another key than the run id',
  repeated: 'delivered again although their sender lived',
  unfinished: 'left open, or ended without success',
} as const;
export type Faults = Record<keyof typeof FAULTS, string[]>;

export interface Verdict {
  ok: boolean;
  due: number;
  /** Of those, delivered. */
  delivered: number;
  /** Deliveries again after the death of their sender. */
  repeatedAfterDeath: number;
  /** Each with the occurrences or runs that it is about. */
  faults: Faults;
}

/** The database's clock and the receiver's are one machine's; what is left is when each of them looks at it. */
const EARLY_MS = 50;

/** Compares what was due, by the schedules' own rules, with what has arrived. */
export function check(evidence: Evidence): Verdict {
  const { schedules, deliveries, ends } = evidence;
  const occurrences = schedules.flatMap(({ id: scheduleId, rule }) =>
    dueMoments(rule, evidence).map((scheduledFor) => occurrenceOf({ scheduleId, scheduledFor })),
  );
  const due = new Set(occurrences);
  const first = new Map<string, DeliveredRun>();
  for (const one of deliveries) if (!first.has(occurrenceOf(one))) first.set(occurrenceOf(one), one);
  const those = (isFault: (delivery: DeliveredRun) => boolean) =>
    deliveries.filter(isFault).map(occurrenceOf);
  const firstIdOf = (one: DeliveredRun) => first.get(occurrenceOf(one))?.runId;
  const { explained, repeated } = checkRepeats(evidence);
  const faults: Faults = {
    missing: [...due].filter((one) => !first.has(one)),
    notDue: those((one) => !due.has(occurrenceOf(one))),
    early: those(({ at, scheduledFor }) => at < scheduledFor - EARLY_MS),
    otherId: deliveries.flatMap((one) =>
      one.runId === firstIdOf(one) ? [] : [`${occurrenceOf(one)}: ${firstIdOf(one)}, then ${one.runId}`],
    ),
    otherKey: those(({ key, runId }) => key !== runId),
    repeated,
    unfinished: UNFINISHED.flatMap((name) =>
      ends[name] > 0 ? [`${ends[name]} ${name.replace('Runs', '')}`] : [],
    ),
  };
  return {
    ok: Object.values(faults).every(({ length }) => length === 0),
    due: due.size,
    delivered: [...first.keys()].filter((one) => due.has(one)).length,
    repeatedAfterDeath: explained,
    faults,
  };
}

/**
 * A run may come again only if the instance that sent it before was killed after it was due, and before it came again. (What a dead
 * instance has sent may still be on its way: on a busy machine it arrives after the death.) Every other repeat is a fault.
 */
function checkRepeats({ deliveries, senders, kills }: Evidence): { explained: number; repeated: string[] } {
  const last = new Map<string, DeliveredRun>();
  const found = { explained: 0, repeated: [] as string[] };
  for (const delivery of deliveries) {
    const before = last.get(delivery.runId);
    last.set(delivery.runId, delivery);
    if (before === undefined) continue;
    const sender = senders.get(delivery.runId)?.find(({ attempt }) => attempt === before.attempt);
    const kill = kills.get(sender?.instanceId ?? '');
    const isOther = before.attempt !== delivery.attempt;
    if (isOther && kill !== undefined && before.scheduledFor <= kill.to && kill.from <= delivery.at)
      found.explained += 1;
    else found.repeated.push(`${occurrenceOf(delivery)}, attempts ${before.attempt} and ${delivery.attempt}`);
  }
  return found;
}

/** What names one occurrence of one schedule. */
function occurrenceOf({
  scheduleId,
  scheduledFor,
}: Pick<DeliveredRun, 'scheduleId' | 'scheduledFor'>): string {
  return `${scheduleId}@${isoInstant(scheduledFor)}`;
}
