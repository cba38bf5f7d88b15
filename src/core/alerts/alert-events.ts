import type { Instant } from '../instant.ts';
import type { Bound } from '../schedules/expect.ts';
import type { AlertKind } from './alert.ts';

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
