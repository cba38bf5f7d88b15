import type { Instant } from './instant.ts';

/** Order in which waiting work is handed off: the smaller first. */
export const PRIORITY_RANK = { high: 0, normal: 1, low: 2 } as const;
export type Priority = keyof typeof PRIORITY_RANK;

export function priorityOfRank(rank: number): Priority {
  return rank === PRIORITY_RANK.high ? 'high' : rank === PRIORITY_RANK.low ? 'low' : 'normal';
}

export interface RetryPolicy {
  /** Answers that count as failures before the run is `failed`; 1 … 100. */
  maxAttempts: number;
  minBackoffSeconds: number;
  maxBackoffSeconds: number;
}

/** What a schedule has that says nothing of retries. */
export const DEFAULT_RETRY: RetryPolicy = { maxAttempts: 5, minBackoffSeconds: 10, maxBackoffSeconds: 3600 };
export const DEFAULT_TIMEOUT_SECONDS = 30;

/** What follows an attempt of unknown outcome: another one under the same run id, or none, ever. */
export const DELIVERIES = ['atLeastOnce', 'atMostOnce'] as const;
export type Delivery = (typeof DELIVERIES)[number];

export interface HttpTarget {
  type: 'http';
  url: string;
  method: HttpMethod;
  headers: Record<string, string>;
  /** Asked whether an attempt of unknown outcome arrived, before it is repeated or given up. */
  lookup: HttpLookup | null;
}

export interface HttpLookup {
  url: string;
  method: HttpMethod;
  headers: Record<string, string>;
}

export const HTTP_METHODS = ['GET', 'HEAD', 'POST', 'PUT', 'PATCH', 'DELETE'] as const;
export type HttpMethod = (typeof HTTP_METHODS)[number];

/** What a run is handed to, by `type`. A new kind is a new member here and a file in targets/. */
export type Target = HttpTarget;

/** What an attempt needs to know of the definition it was planned under; immutable per (schedule, version). */
export interface Handoff {
  target: Target;
  /** The client's own JSON text: numbers keep their digits. Null where none was given. */
  payload: string | null;
  retry: RetryPolicy;
  timeoutSeconds: number;
  delivery: Delivery;
}

/** A schedule as its owner wrote it, defaults filled in. Every write of it that changes something is a new version. */
export interface Definition extends Handoff {
  description: string | null;
  cron: string;
  timezone: string | null;
  enabled: boolean;
  priority: Priority;
  labels: Record<string, string>;
}

export type ScheduleStatus = 'active' | 'paused' | 'ended' | 'error';
export const SCHEDULE_STATUSES: readonly ScheduleStatus[] = ['active', 'paused', 'ended', 'error'];

/** A definition with its identity and where its firing stands. */
export interface Schedule {
  /** Minted at creation: a schedule deleted and created again under its id is another schedule. */
  uid: string;
  id: string;
  version: number;
  definition: Definition;
  status: ScheduleStatus;
  error: string | null;
  nextFireAt: Instant | null;
  /** The next occurrence not yet planned: planning only ever steps forward from here. Null while paused or ended. */
  nextOccurrenceAt: Instant | null;
  lastFireAt: Instant | null;
  lockedBy: string | null;
  lockedAt: Instant | null;
  createdAt: Instant;
  updatedAt: Instant;
}
