import type { Expect, SuccessBounds } from './expect.ts';
import type { Instant } from '../instant.ts';
import type { Credential } from '../secrets/sealed-values.ts';
import type { Timing } from '../timing/timing.ts';

/** The order in which waiting work is handed off: smaller first. */
export const PRIORITY_RANK = { high: 0, normal: 1, low: 2 } as const;
export type Priority = keyof typeof PRIORITY_RANK;

export function priorityOfRank(rank: number): Priority {
  return rank === PRIORITY_RANK.high ? 'high' : rank === PRIORITY_RANK.low ? 'low' : 'normal';
}

export interface RetryPolicy {
  /** Outcomes that count as failures before the run is `failed`; 1 … 100. */
  maxAttempts: number;
  minBackoffSeconds: number;
  maxBackoffSeconds: number;
}

/** The default for a schedule that says nothing about retries. */
export const DEFAULT_RETRY: RetryPolicy = { maxAttempts: 5, minBackoffSeconds: 10, maxBackoffSeconds: 3600 };
export const DEFAULT_TIMEOUT_SECONDS = 30;

/** What follows an attempt of unknown outcome: another one under the same run id, or none, ever. */
export const DELIVERIES = ['atLeastOnce', 'atMostOnce'] as const;
export type Delivery = (typeof DELIVERIES)[number];

export interface HttpTarget<Secret = Credential> {
  type: 'http';
  /** The id of the connection below whose URL all calls go, and that logs in; null: none. */
  connection: string | null;
  /** With a connection, a path below it: so in `lookup` and `cancel`. */
  url: string;
  method: HttpMethod;
  headers: Record<string, Secret>;
  /** What is sent, except with GET and HEAD: firelock's own JSON about the run, its payload byte for byte, or a text of the user's. */
  body: 'envelope' | 'payload' | BodyTemplate<Secret>;
  /** How whole answers are judged; null: by their status, as firelock does. */
  outcome: OutcomeRules | null;
  /** Signs each request; two of them while receivers change from one to the other. Null: nothing is signed. */
  secret: Secret | Secret[] | null;
  /** The call that asks whether an attempt of unknown outcome arrived, before firelock repeats it or gives up. */
  lookup: HttpCall<Secret> | null;
  /** The call, once and best effort, after a run that the target is working on was cancelled or replaced. */
  cancel: HttpCall<Secret> | null;
}

/** A call beside the handoff itself: without a body. */
export interface HttpCall<Secret = Credential> {
  url: string;
  method: HttpMethod;
  headers: Record<string, Secret>;
}

/** Where a run of a schedule or a one-off run goes, by `type`. A new kind is a new member here and a file in targets/. */
export type Target<Secret = Credential> = HttpTarget<Secret> | PullTarget;

/** What a schedule is stored with: one that only observes may have no target. */
export type ScheduleTarget = Target | NoTarget;

/** What any run is handed to: messages of notifiers know one kind more. */
export type HandoffTarget<Secret = Credential> = Target<Secret> | EmailTarget | NoTarget;

/** The id of the connection that it names; null: none. */
export function connectionOf(target: HandoffTarget<unknown>): string | null {
  return target.type === 'http' ? target.connection : null;
}

/** What ends a run: the target's 2xx, or a later report. */
export const COMPLETIONS = ['response', 'callback'] as const;
export type Completion = (typeof COMPLETIONS)[number];
export const DEFAULT_COMPLETION_TIMEOUT_SECONDS = 3600;
/** 31 days. */
export const MAX_COMPLETION_TIMEOUT_SECONDS = 31 * 86_400;

/** What an attempt needs to know about the definition it was planned under; immutable per (schedule, version). */
export interface Handoff<Secret = Credential> {
  target: HandoffTarget<Secret>;
  /** The client's own JSON text: numbers keep their digits. Null if none was given. */
  payload: string | null;
  retry: RetryPolicy;
  timeoutSeconds: number;
  delivery: Delivery;
  completion: Completion;
  /** After this time, a silent `callback` run has an unknown outcome. */
  completionTimeoutSeconds: number;
  /** What judges a success; null, or absent of a one-off run: nothing does. */
  expect?: SuccessBounds | null;
}

/** 31 days. */
export const MAX_EXPIRES_AFTER_SECONDS = 31 * 86_400;

/** What happens to a fire while an earlier run of its schedule is active. */
export const OVERLAPS = ['allow', 'skip', 'queue', 'replace'] as const;
export type Overlap = (typeof OVERLAPS)[number];

/** A schedule as its owner wrote it, with defaults filled in. Every write that changes something is a new version. */
export interface Definition extends Handoff, Timing {
  target: ScheduleTarget;
  description: string | null;
  enabled: boolean;
  /** Why it is paused; null while it is not. */
  pauseReason: string | null;
  /** When the pause ends by itself; null: it does not, or there is none. */
  pauseUntil: Instant | null;
  /** The number of runs in a row without success that pauses it; null: none does. */
  pauseAfterFailures: number | null;
  /** After this time without a success, it is late; null: it never is. */
  successWithinSeconds: number | null;
  /** Null: its runs are judged by no bounds. */
  expect: Expect | null;
  /** Null: firelock runs the job. */
  observe: Observe | null;
  overlap: Overlap;
  /** A run that has waited for so long is not begun any more; null: however long it waited. */
  expiresAfterSeconds: number | null;
  priority: Priority;
  /** The id of the limit of its runs; null: none. */
  limit: string | null;
  labels: Record<string, string>;
}

export type ScheduleStatus = 'active' | 'paused' | 'ended' | 'error';
export const SCHEDULE_STATUSES: readonly ScheduleStatus[] = ['active', 'paused', 'ended', 'error'];

/** A definition with its identity and its planning state. */
export interface Schedule {
  /** Minted at creation: if a schedule is deleted and its id is created again, that is another schedule. */
  uid: string;
  id: string;
  version: number;
  definition: Definition;
  /** Where its runs go: kind and origin of the target. */
  lane: string;
  /** The schedules whose runs it follows; null: it has fire times of its own. */
  afterUid: string | null;
  status: ScheduleStatus;
  /** No run has succeeded in time (`successWithinSeconds`). */
  late: boolean;
  error: string | null;
  nextFireAt: Instant | null;
  /** The next occurrence that is not planned yet: planning only steps forward from here. Null if none is left. */
  nextOccurrenceAt: Instant | null;
  /** The newest occurrence that has been planned: no occurrence up to it is planned again. Null: none has been planned. */
  plannedThrough: Instant | null;
  lastFireAt: Instant | null;
  /** Callers may have asked to skip some of its coming fires. */
  hasSkips: boolean;
  lockedBy: string | null;
  lockedAt: Instant | null;
  createdAt: Instant;
  updatedAt: Instant;
}

/** The rules for a run whose definition is missing, or cannot be read: it does not say how to try again. */
export const NO_DEFINITION = {
  retry: DEFAULT_RETRY,
  timeoutSeconds: DEFAULT_TIMEOUT_SECONDS,
  delivery: 'atLeastOnce',
  completion: 'response',
  completionTimeoutSeconds: DEFAULT_COMPLETION_TIMEOUT_SECONDS,
} as const satisfies Omit<Handoff, 'target' | 'payload'>;

/** Another scheduler runs the job: occurrences before `until` (null: all) are recorded, not sent. */
export interface Observe {
  until: Instant | null;
}

/** Every moment belongs to exactly one of the two. `recordIntentsIfLocked` and `recordAfterRuns` say the same in SQL. */
export function isObservedAt(observe: Observe | null, scheduledFor: Instant): boolean {
  return observe !== null && (observe.until === null || scheduledFor < observe.until);
}

/** Of all observed runs: no dispatcher and no worker knows a target of that kind. */
export const OBSERVED_LANE = 'observed';

/** Nothing is sent: the run waits for a worker to claim it. */
interface PullTarget {
  type: 'pull';
  queue: string;
}

/** Of a schedule that only observes: the API says null. No dispatcher knows the kind. */
interface NoTarget {
  type: 'none';
}

/** Mail by FIRELOCK_SMTP_URL. Only messages of notifiers are handed to it. */
export interface EmailTarget {
  type: 'email';
  to: string[];
}

/** A body with placeholders, of up to 64 KiB (core/http/body-template.ts). */
export interface BodyTemplate<Secret = string> {
  template: string;
  contentType: string;
  /** By the names under which the template has them; absent: it has none. */
  secrets?: Record<string, Secret> | undefined;
}

/** A status, a class such as `2xx`, or a range such as `400-404`. */
export type StatusPattern = number | string;

/** An answer whose status is in no list is judged as without rules (core/runs/attempts/outcome-rules.ts). */
export interface OutcomeRules {
  succeed: StatusPattern[];
  retry: StatusPattern[];
  fail: StatusPattern[];
  /** What an answer must contain to count as a success; null: nothing. `json`: the text of `equals`, whose numbers keep their digits. */
  require: { pointer: string; json: string } | { contains: string } | null;
  /** What an answer without it means; null: `retry`, and under atMostOnce `fail`. */
  otherwise: 'retry' | 'fail' | null;
}

export const HTTP_METHODS = ['GET', 'HEAD', 'POST', 'PUT', 'PATCH', 'DELETE'] as const;
export type HttpMethod = (typeof HTTP_METHODS)[number];

/**
 * Where a call goes, for all that must not go elsewhere: the connection, or without one the URL's origin; no id of a
 * connection is an origin. Null: it is no URL.
 */
export function destinationOf(connection: string | null, url: string): string | null {
  return connection ?? originOf(url);
}

/** The origin of a URL that may contain templates, which are allowed in path and query only. Null: it is no URL. */
export function originOf(url: string): string | null {
  return URL.parse(url)?.origin ?? null;
}
