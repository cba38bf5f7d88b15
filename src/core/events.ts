import type { AlertEvent } from './alerts/alert.ts';
import type { AttemptOutcome, LookedUp } from './runs/attempts/outcome.ts';
import type { Instant } from './instant.ts';
import type { KnownState, TakeOver } from './installation.ts';
import type { PingOutcome } from './runs/observed-report.ts';
import type { RunStatus } from './runs/run.ts';
import type { BacklogKind, EffectKind } from './runs/effect.ts';
import type { AccessEvent } from './access/access-events.ts';
import type { LostVerdict } from './runs/lost-claim.ts';
import type { ResourceEvent } from './own-resources.ts';
import type { TraceEvent } from './trace-events.ts';

/** What has a name that schedules, runs or notifiers say. */
export type NamedNoun = 'calendar' | 'limit' | 'connection' | 'notifier';

/** Events for observers: metrics and log lines are made from these and from nothing else. */
export type FirelockEvent =
  | { type: 'instanceRegistered'; instanceId: string; host: string; zoneData: string }
  /** `unfinished`: claims that others have to find. `cutOff`: handoffs aborted at the end of the shutdown time. */
  | { type: 'instanceLeft'; instanceId: string; unfinished: number; cutOff: number }
  | { type: 'heartbeat'; roundTripMs: number }
  /** The other instances had declared this one dead: it goes on under another id. */
  | { type: 'instanceReplaced'; instanceId: string; previousId: string }
  /**
   * The database does not know of a heartbeat or a run that it had confirmed: it lost commits, of so many milliseconds at least.
   * `lostMs` null: it lost the instance itself.
   */
  | { type: 'databaseWentBack'; lostMs: number | null }
  | { type: 'instancesDeclaredDead'; instanceIds: readonly string[] }
  | { type: 'claimsDropped'; count: number }
  /** This instance has learned that the installation does something else, or until when or why. */
  | { type: 'installationChanged'; state: KnownState }
  /** `observesOn`: FIRELOCK_OBSERVE is set here. */
  | { type: 'tookOver'; tookOver: TakeOver; observesOn: boolean }
  /** Runs that edits recorded during maintenance, and that go on because it is over. */
  | { type: 'heldRunsReleased'; count: number }
  | { type: 'handoffsNotStarted'; count: number; error: unknown }
  | { type: 'runsTakenOver'; found: LostBecause; runs: readonly RunTakenOver[] }
  | { type: 'takeOverRefused'; runId: string; error: string }
  | { type: 'recoveryFinished'; durationMs: number }
  | { type: 'tickFinished'; durationMs: number; locked: number }
  | { type: 'fireLocks'; outcome: 'acquired' | 'contended' | 'expired' | 'fenced'; count: number }
  | { type: 'intentsRecorded'; fires: number; claimed: number; coalesced: number }
  | { type: 'scheduleSetAside'; scheduleId: string; error: string; failures: number; retryAt: Instant }
  | { type: 'namedWritten'; noun: NamedNoun; id: string; change: WrittenSchedule['change']; version: number }
  /** One pass that looked for free places of limits, and the number of runs that got one. */
  | { type: 'admissionPassed'; admitted: number }
  /** The database refuses to let any instance claim the run; it is left out for a while, and then tried again. */
  | { type: 'claimRefused'; runId: string; error: string }
  | { type: 'admissionRefused'; limitId: string; error: string }
  /** Nothing was sent: the operator forbids `address`, which is one of the addresses of `origin`. */
  | ({ type: 'targetBlocked'; origin: string; address: string; because: string } & OfAttempt)
  /** The same of the token server of a connection: of no one run, since many wait for one token. */
  | { type: 'tokenServerBlocked'; connectionUid: string; origin: string; address: string; because: string }
  | { type: 'runStarted'; runId: string; latenessMs: number }
  | ({ type: 'runSettled'; settlement: RunSettled } & OfMessage & OfAttempt)
  /** A target was asked what became of an earlier attempt of the run. */
  | ({ type: 'targetAsked'; lookup: LookedUp } & OfAttempt)
  /** `alreadyEnded`: the run was replaced, or ended with its schedule, while its attempt was under way: this is no fault. */
  | ({
      type: 'settlementFenced';
      outcome: AttemptOutcome;
      statusCode: number | null;
      alreadyEnded: boolean;
    } & OfAttempt)
  | { type: 'settlementRefused'; runId: string; error: string }
  /** Another transaction has locked a row that a batch was to write: a transaction writes the other rows. */
  | { type: 'batchHeldUp'; loop: 'tick' | 'settle'; count: number }
  /** Unsent claims were handed back: the instance stops, or they waited too long for a slot. */
  | { type: 'runsReturned'; count: number; stopping: boolean }
  /** `zoneData`: the versions of the time zone data that the living instances plan with, each once, sorted. */
  | {
      type: 'gaugesSampled';
      strandedRuns: number;
      effectsFailing: number;
      oldestEffectSeconds: number;
      schedulesLate: number;
      calendarsEnding: number;
      zoneData: readonly string[];
    }
  | { type: 'schedulesFileApplied'; left: number }
  /** How many enabled schedules were planned or written while the database's clock was ahead, and are silent until it comes there again. */
  | { type: 'schedulesAheadCounted'; schedules: number }
  /** Ids of keys that stored secret values of schedules need, and this instance does not have. */
  | { type: 'secretKeysSampled'; missing: readonly string[] }
  /** Next fires that other time zone data had computed, moved to the moments that the present data gives. */
  | { type: 'cursorsMoved'; count: number; zoneData: string }
  /** How many rows the loop leaves out for now, since it could not write them. */
  | { type: 'rowsSetAside'; loop: string; count: number }
  | { type: 'loopFailed'; loop: string; error: unknown; retryInMs: number }
  /** A whole pass of the loop succeeded. */
  | { type: 'loopPassed'; loop: string }
  | { type: 'schedulesWritten'; changes: readonly WrittenSchedule[] }
  /** Paused schedules that were enabled as of the moment until which they were paused. */
  | { type: 'pausesEnded'; changes: readonly WrittenSchedule[] }
  /** The pause is over, and the schedule could not be enabled; the daemon tries again. */
  | { type: 'pauseNotEnded'; scheduleId: string; error: string }
  /** No run of these schedules has succeeded in time, and since when. */
  | { type: 'schedulesLate'; schedules: readonly { scheduleId: string; since: Instant }[] }
  /** These schedules were late, and now a run has succeeded. */
  | { type: 'schedulesLateNoMore'; scheduleIds: readonly string[] }
  /** How many definitions were read of schedules that are due soon. */
  | { type: 'definitionsReadAhead'; count: number }
  /** Runs that were recorded and never handed off, because of their schedule's policy. */
  | { type: 'runsSkipped'; reason: 'missed' | 'limit' | 'overlap' | 'request' | 'expired'; count: number }
  /** A caller asked to skip a coming fire, or to make it after all. */
  | { type: 'fireSkipAsked'; scheduleId: string; fireAt: Instant; skipped: boolean; reason: string | null }
  /** `runId`: the run that a caller asked to cancel. */
  | { type: 'runsCancelled'; reason: 'replaced' | 'request'; count: number; runId?: string }
  /** A caller asked to hand off again a run that had ended with this status. */
  | ({ type: 'runRetried'; was: RunStatus } & OfRun)
  /** The worker or target of a run reported its end. */
  | ({ type: 'runCompleted'; settlement: RunSettled } & OfMessage & OfAttempt)
  /** A job reported, by the key of its schedule; `limited`: it was not asked what. */
  | { type: 'pinged'; outcome: PingOutcome }
  /** Runs whose worker or target did not report in time, and what happened to them. */
  | { type: 'runsExpired'; runs: readonly RunExpired[] }
  | { type: 'expiryRefused'; runId: string; error: string }
  /** Runs that had been tried and waited too long to be tried again: how many ended so, and the first of them. */
  | { type: 'waitingExpired'; failed: number; unknown: number; runIds: readonly string[] }
  /** An effect failed; the daemon tries again. `failures`: how often it has failed. */
  | ({
      type: 'effectPutOff';
      kind: EffectKind | BacklogKind;
      error: string;
      failures: number;
      seconds: number;
    } & OfRun)
  /** Schedules whose runs must not overlap were judged. */
  | { type: 'overlapsJudged'; count: number }
  /** One-off runs were recorded. */
  | { type: 'runsAccepted'; count: number }
  /** Runs that failed before they started, since a dependency did not succeed; the first of them. */
  | { type: 'dependentsFailed'; count: number; runIds: readonly string[] }
  /** firelock called the target of a running run that was cancelled or replaced; `error`: why the call may not have arrived. */
  | ({ type: 'targetCancelled'; accepted: boolean; error: string | null } & OfRun)
  /** firelock itself paused the schedule: its runs had no chance of success. */
  | { type: 'schedulePaused'; scheduleId: string; reason: string }
  /** Runs were leased to a pull worker that is being answered. */
  | { type: 'pullRunsClaimed'; queue: string; workerId: string; count: number }
  /** So many bytes are new in the log of an attempt. */
  | { type: 'runLogAppended'; runId: string; attempt: number; bytes: number }
  /** Runs that waited for nothing, and now go on. */
  | { type: 'waitingReleased'; count: number }
  | { type: 'runsAbandoned'; reason: 'deleted'; scheduleId: string | null; count: number }
  /** What one pass of retention dropped: days of history, and unused definitions. Usually nothing. */
  | { type: 'historyDropped'; days: readonly Instant[]; definitions: number }
  /**
   * One look at all of history: how many days have partitions, the first of them, and how many old ones could not be
   * dropped yet.
   */
  | { type: 'historySeen'; days: number; oldest: Instant | null; late: number }
  /** How many of the coming days have a partition, also where creating some failed. */
  | { type: 'partitionsCounted'; ahead: number }
  /** Days that got partitions, usually none; the only errors were locks that could not be had. */
  | { type: 'partitionsCreated'; days: readonly Instant[] }
  /** A partition could not be made or dropped at this moment: another transaction is in the way. `lasts`: for an hour, or another one. */
  | {
      type: 'historyDelayed';
      work: 'create' | 'drop';
      day: Instant;
      error: unknown;
      forMs: number;
      lasts: boolean;
    }
  | ({ type: 'firesMissed' } & MissedFires)
  | AccessEvent
  | AlertEvent
  /**
   * The next fires of all users follow this version of a calendar: the number of schedules, and how many of their next
   * fires moved.
   */
  | { type: 'nextFiresMoved'; calendarId: string; version: number; schedules: number; moved: number }
  /**
   * Next fires could not be moved after an edit of a calendar; the daemon tries again until it works. With a schedule: its next fire
   * only, which holds up no other.
   */
  | { type: 'nextFiresNotMoved'; calendarId: string; scheduleId: string | null; error: unknown }
  | ResourceEvent
  | TraceEvent;

/** `orphaned`: the instance is gone; `forgotten`: the instance does not know of the claim; `expired`: it is too old. */
export type LostBecause = 'orphaned' | 'forgotten' | 'expired';

/** Fires that had been due for longer than the grace when they were planned. */
export interface MissedFires {
  schedules: number;
  /** The first of them. */
  scheduleIds: readonly string[];
  /** Fires that were made late. */
  caughtUp: number;
  /** Fires that another, recorded fire stands for. */
  folded: number;
  /** Fires that were recorded and not made. */
  skipped: number;
}

interface OfRun {
  runId: string;
  /** Null: a one-off run, or a message of a notifier. */
  scheduleId: string | null;
}

interface OfMessage {
  /** The notifier whose message the run is; null: it is none. */
  notifierId: string | null;
}

interface OfAttempt extends OfRun {
  attempt: number;
}

export interface RunTakenOver extends OfRun, OfMessage {
  /** The instance that had the claim. */
  instanceId: string;
  /** `again`: the run goes on; `unknown`: it ended so; otherwise the reason for which it was abandoned. */
  verdict: LostVerdict;
}

export interface RunExpired extends OfAttempt {
  /** For a pull run. */
  workerId: string | null;
  settlement: RunSettled;
}

interface WrittenSchedule {
  scheduleId: string;
  change: 'created' | 'updated' | 'deleted';
  version: number;
}

export interface RunSettled {
  status: RunStatus;
  error: string | null;
  /** From the first claim to the end; null while the run goes on. */
  durationMs: number | null;
  retryAt: Instant | null;
  /** The run had been found lost, and this attempt hands it off. */
  recovered: boolean;
  /** It may have been handed off: firelock asks the target at `retryAt`. */
  inDoubt: boolean;
}
