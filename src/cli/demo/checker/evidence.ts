import { type Instant, isoInstant } from '../../../core/instant.ts';
import type { DeliveredRun } from '../load/delivery.ts';
import type { DemoSchedule } from '../load/schedule-mix.ts';

/** All that the checker is given: what was asked for, what arrived, what was killed, and a few rows where they explain something. */
export interface Evidence {
  schedules: readonly DemoSchedule[];
  from: Instant;
  /** Exclusive. */
  to: Instant;
  /** In the order of arrival. */
  deliveries: readonly DeliveredRun[];
  /** Runs of the schedules that must not overlap. */
  overlapRuns: readonly OverlapRun[];
  /** Who made the attempts of the runs that came more than once, by run id. */
  senders: ReadonlyMap<string, readonly SentAttempt[]>;
  /** By the id of the instance. */
  kills: ReadonlyMap<string, KillTime>;
  /** How many runs have ended how, and how many have not, by firelock's own count. */
  ends: Ends;
}

export interface OverlapRun {
  scheduleId: string;
  scheduledFor: Instant;
  status: string;
  reason: string | null;
  /** Null: it has not ended. */
  finishedAt: Instant | null;
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

export interface Ends {
  openRuns: number;
  failedRuns: number;
  unknownRuns: number;
  abandonedRuns: number;
  cancelledRuns: number;
}

/** Kinds of broken promises, in the words of the verdict. */
export const FAULTS = {
  missing: 'due, and not delivered',
  notDue: 'delivered, and not due',
  early: 'delivered before their moment',
  otherId: 'delivered under a second run id',
  otherKey: 'delivered with another key than the run id',
  repeated: 'delivered again although their sender lived',
  atOnce: 'delivered while the run before was under way, which overlap "skip" forbids',
  notHeldBack: 'skipped for an overlap, with no run under way',
  unfinished: 'left open, or ended without success',
} as const;
export type FaultKind = keyof typeof FAULTS;
export type Faults = Record<FaultKind, string[]>;

/** What names one occurrence of one schedule. */
export function occurrenceOf({
  scheduleId,
  scheduledFor,
}: {
  scheduleId: string;
  scheduledFor: Instant;
}): string {
  return `${scheduleId}@${isoInstant(scheduledFor)}`;
}
