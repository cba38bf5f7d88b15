import type { Instant } from '../../../core/instant.ts';

/** One run that has reached the one who does it: a request at the receiver, or a run that the worker has claimed. */
export interface DeliveredRun {
  scheduleId: string;
  scheduledFor: Instant;
  runId: string;
  attempt: number;
  /** The idempotency key that came with it; a worker has the run id. */
  key: string;
  at: Instant;
  /** When its answer was out, or its connection gone; null: neither has happened. */
  endedAt: Instant | null;
}

/** What has been delivered so far, in the order of arrival, counted as it comes. */
export interface Deliveries {
  readonly all: readonly DeliveredRun[];
  /** Occurrences that have come once at least. */
  readonly occurrences: number;
  /** How late each of them came first, in milliseconds. */
  readonly lateness: readonly number[];
  add(delivery: DeliveredRun): void;
}

export function createDeliveries(): Deliveries {
  const all: DeliveredRun[] = [];
  const seen = new Set<string>();
  const lateness: number[] = [];
  return {
    all,
    get occurrences() {
      return seen.size;
    },
    lateness,
    add: (delivery) => {
      all.push(delivery);
      const occurrence = `${delivery.scheduleId}@${delivery.scheduledFor}`;
      if (seen.has(occurrence)) return;
      seen.add(occurrence);
      lateness.push(Math.max(0, delivery.at - delivery.scheduledFor));
    },
  };
}
