import type { Instant } from '../instant.ts';
import type { RunStatus } from '../runs/run.ts';
import type { Bound } from '../schedules/expect.ts';

/**
 * What can be wrong with a schedule. Of each kind, one episode of a schedule is open at a time.
 * `failed`: a run ended failed, unknown or abandoned; over with the next success · `late`: no success in time; over with the next one ·
 * `unstarted`, `slow`, `tooFast`, `result`: a run did not keep a bound of `expect`; over with the next run that keeps it · `missed`:
 * an occurrence was not made in time; over with the next fire, or once it was caught up with · `paused`: firelock paused it; over once it
 * is enabled · `error`: it cannot be planned; over once it is planned · `calendar`: one that it excludes says nothing of days that come
 * soon; over once that one does. Each is over, too, once its state cannot be any more (`episode.ts`).
 */
export const ALERT_KINDS = [
  'failed',
  'late',
  'unstarted',
  'slow',
  'tooFast',
  'result',
  'missed',
  'paused',
  'error',
  'calendar',
] as const;
export type AlertKind = (typeof ALERT_KINDS)[number];

/** What is wrong with a schedule if a run of it does not keep a bound. */
export const ALERT_OF_BOUND = {
  start: 'unstarted',
  finish: 'slow',
  tooFast: 'tooFast',
  result: 'result',
} as const satisfies Record<Bound, AlertKind>;

/** So many days before the last one of which a calendar says anything, who uses it is told. */
export const CALENDAR_ENDS_DAYS = 90;

/** A calendar whose end is near, or was; `validUntil`: its last day, as `2026-12-31`. */
export interface EndingCalendar {
  id: string;
  validUntil: string;
}

/** One episode: since when something is wrong, and until when it was. */
export interface Alert {
  id: string;
  scheduleUid: string;
  scheduleId: string;
  kind: AlertKind;
  since: Instant;
  /** Null: it is open. */
  until: Instant | null;
  /** The run that opened it; null: none did. */
  runId: string | null;
  /** How that run had ended; null: it had not, or there is none. */
  status: RunStatus | null;
  /** What was wrong, in a sentence or a few words. */
  error: string | null;
  /** Why it is over, where the schedule did not get well: whose act it was, or that its state cannot be any more. */
  overBy: string | null;
}

/** The page of the run that opened the episode, else that of its schedule. Null: where the dashboard is was not said. */
export function alertUrl(
  publicUrl: string | null,
  { scheduleId, runId }: Pick<Alert, 'scheduleId' | 'runId'>,
): string | null {
  if (publicUrl === null) return null;
  const base = publicUrl.replace(/\/+$/, '');
  return runId === null ? `${base}/schedules/${scheduleId}` : `${base}/runs/${runId}`;
}

export const MESSAGE_EVENTS = ['opened', 'recovered', 'reminder', 'test'] as const;
export type MessageEvent = (typeof MESSAGE_EVENTS)[number];

/** What a notifier is told: the same for every channel, which makes its own text of it. */
export interface Message {
  /** The id of the notifier. */
  notifier: string;
  event: MessageEvent;
  at: Instant;
  /** At most `MAX_TOLD`, in the order in which they opened. */
  alerts: readonly ToldAlert[];
  /** How many more it is about. */
  more: number;
  /** The notifier that could not deliver it, and whose fallback this one is; null: it is told for the first time. */
  fallbackFor: string | null;
}

export interface ToldAlert extends Omit<Alert, 'scheduleUid'> {
  labels: Readonly<Record<string, string>>;
  /** The page of the dashboard that says more; null: FIRELOCK_PUBLIC_URL is not set. */
  url: string | null;
}

/** Episodes that one message names. */
export const MAX_TOLD = 20;
/** What opens or heals within this time of the first is told in one message. */
export const GATHER_SECONDS = 10;

/** Events about what is wrong with schedules, and who is told. */
export type AlertEvent =
  /** Episodes of schedules that have begun, and that are over. */
  | { type: 'alertsOpened'; alerts: readonly { scheduleId: string; kind: AlertKind }[] }
  | { type: 'alertsClosed'; alerts: readonly { scheduleId: string; kind: AlertKind }[] }
  /** `key`: a message, a schedule or a notifier whose row the database refused; the daemon tries again. */
  | { type: 'alertLookRefused'; key: string; error: string }
  /** These runs did not keep a bound of `expect`. */
  | { type: 'runsUnmet'; runs: readonly UnmetRun[] }
  /** That a run did not keep a bound could not be written; the daemon tries again. */
  | { type: 'boundRefused'; runId: string; error: string }
  | { type: 'notifiersSampled'; notifiers: TroubledNotifiers };

interface UnmetRun {
  runId: string;
  scheduleId: string | null;
  bound: Bound;
  /** When the bound passed. */
  passedAt: Instant;
}

/** By id, in order. */
export interface TroubledNotifiers {
  /** The newest of their messages that ended in the last day was not delivered. */
  undelivered: readonly string[];
  /** A message has waited for longer than five minutes. */
  waiting: readonly string[];
}
