import type { AttemptOutcome, LookedUp } from './runs/attempts/attempt.ts';
import type { Instant } from './instant.ts';
import type { Maintenance } from './maintenance.ts';
import type { RunStatus } from './runs/run.ts';
import type { EffectKind } from './runs/effect.ts';
import type { AccessEvent } from './access/access-events.ts';
import type { LostVerdict } from './runs/lost-claim.ts';
import type { TraceEvent } from './trace-events.ts';

/** What happened, for observers: metrics and log lines are made of these and of nothing else. */
export type FirelockEvent =
  | { type: 'instanceRegistered'; instanceId: string; host: string; zoneData: string }
  /** `unfinished`: claims that others have to find. `cutOff`: handoffs aborted when the shutdown time was up. */
  | { type: 'instanceLeft'; instanceId: string; unfinished: number; cutOff: number }
  | { type: 'heartbeat'; roundTripMs: number }
  /** The others had declared this instance dead: it goes on under another id. */
  | { type: 'instanceReplaced'; instanceId: string; previousId: string }
  /** The database does not know of a heartbeat that it had confirmed: it lost commits. `lostMs` null: it lost the instance itself. */
  | { type: 'databaseWentBack'; lostMs: number | null }
  | { type: 'instancesDeclaredDead'; instanceIds: readonly string[] }
  | { type: 'claimsDropped'; count: number }
  /** This instance has learned so. A change is one of `until`, `reason` or `dispatch`. */
  | { type: 'maintenanceBegan'; maintenance: Maintenance }
  | { type: 'maintenanceChanged'; maintenance: Maintenance }
  | { type: 'maintenanceEnded'; maintenance: Maintenance }
  /** Runs that edits recorded during maintenance, and that go on since it is over. */
  | { type: 'heldRunsReleased'; count: number }
  | { type: 'handoffsNotStarted'; count: number; error: unknown }
  | { type: 'runsTakenOver'; found: LostBecause; runs: readonly RunTakenOver[] }
  | { type: 'takeOverRefused'; runId: string; error: string }
  | { type: 'recoveryFinished'; durationMs: number }
  | { type: 'backstopPassed' }
  | { type: 'tickFinished'; durationMs: number; locked: number }
  | { type: 'fireLocks'; outcome: 'acquired' | 'contended' | 'expired' | 'fenced'; count: number }
  | { type: 'intentsRecorded'; fires: number; claimed: number; coalesced: number }
  | { type: 'scheduleSetAside'; scheduleId: string; error: string; failures: number; retryAt: Instant }
  /** A look for free places of limits, and how many runs got one. */
  | { type: 'admissionPassed'; admitted: number }
  | { type: 'admissionRefused'; limitId: string; error: string }
  | { type: 'runsClaimed'; count: number }
  | { type: 'dispatchIdle' }
  /** Nothing was sent: the operator forbids `address`, which is one of those of `origin`. */
  | {
      type: 'targetBlocked';
      runId: string;
      scheduleId: string | null;
      attempt: number;
      origin: string;
      address: string;
      because: string;
    }
  | { type: 'runStarted'; runId: string; latenessMs: number }
  | { type: 'runSettled'; runId: string; scheduleId: string | null; attempt: number; settlement: RunSettled }
  /** A target was asked what became of an earlier attempt of the run. */
  | { type: 'targetAsked'; runId: string; scheduleId: string | null; attempt: number; lookup: LookedUp }
  | {
      type: 'settlementFenced';
      runId: string;
      scheduleId: string | null;
      attempt: number;
      outcome: AttemptOutcome;
      statusCode: number | null;
      /** Replaced, or ended with its schedule: its attempt was still under way, and nothing is wrong. */
      alreadyEnded: boolean;
    }
  | { type: 'settlementRefused'; runId: string; error: string }
  /** Another transaction holds a row that a batch was to write: it goes past that one, in a transaction. */
  | { type: 'batchHeldUp'; loop: 'tick' | 'settle'; count: number }
  /** Unsent claims handed back: the instance stops, or they have waited too long for a slot. */
  | { type: 'runsReturned'; count: number; stopping: boolean }
  | { type: 'migrationsApplied'; count: number }
  /** `zoneData`: the versions of the time zone data that the living instances plan with, each once, sorted. */
  | {
      type: 'gaugesSampled';
      strandedRuns: number;
      effectsFailing: number;
      schedulesLate: number;
      zoneData: readonly string[];
    }
  /** Ids of keys that stored secret values of schedules need, and this instance does not have. */
  | { type: 'secretKeysSampled'; missing: readonly string[] }
  /** Next fires that other time zone data had put elsewhere, moved to where this data puts them. */
  | { type: 'cursorsMoved'; count: number; zoneData: string }
  | { type: 'zoneWatchPassed' }
  | {
      type: 'calendarWritten';
      calendarId: string;
      change: 'created' | 'updated' | 'deleted';
      version: number;
    }
  /** All next fires follow this version of a calendar: of so many schedules, and so many of these had to move. */
  | { type: 'nextFiresMoved'; calendarId: string; version: number; schedules: number; moved: number }
  /** Next fires could not be moved after an edit of a calendar; it is tried again until it works. */
  | { type: 'nextFiresNotMoved'; calendarId: string; error: unknown }
  | { type: 'calendarWatchPassed' }
  | { type: 'loopFailed'; loop: string; error: unknown; retryInMs: number }
  | { type: 'schedulesWritten'; changes: readonly WrittenSchedule[] }
  /** Paused schedules that were enabled as of the moment until which they were paused. */
  | { type: 'pausesEnded'; changes: readonly WrittenSchedule[] }
  /** Its pause is over, and it could not be enabled; it is tried again. */
  | { type: 'pauseNotEnded'; scheduleId: string; error: string }
  /** No run of these has succeeded in time: since when. */
  | { type: 'schedulesLate'; schedules: readonly { scheduleId: string; since: Instant }[] }
  /** They were late, and a run has succeeded. */
  | { type: 'schedulesLateNoMore'; scheduleIds: readonly string[] }
  /** What is known of its lateness cannot be written; it is tried again. */
  | { type: 'lateLookRefused'; scheduleUid: string; error: string }
  /** A look for schedules that are late. */
  | { type: 'latenessChecked' }
  /** A look for pauses that are over. */
  | { type: 'pauseEndsChecked' }
  /** Recorded and never handed off, by the policy of their schedule. */
  | { type: 'runsSkipped'; reason: 'missed' | 'limit' | 'overlap' | 'request'; count: number }
  /** A caller asked that a fire to come is not made, or that it is made after all. */
  | { type: 'fireSkipAsked'; scheduleId: string; fireAt: Instant; skipped: boolean; reason: string | null }
  /** `runId`: of the one that a caller asked to be cancelled. */
  | { type: 'runsCancelled'; reason: 'replaced' | 'request'; count: number; runId?: string }
  /** A caller asked for a run to be handed off again that had ended so. */
  | { type: 'runRetried'; runId: string; scheduleId: string | null; was: RunStatus }
  /** The worker or target of a run reported its end. */
  | {
      type: 'runCompleted';
      runId: string;
      scheduleId: string | null;
      attempt: number;
      settlement: RunSettled;
    }
  /** Runs whose worker or target was not heard of in time, and what became of them. */
  | { type: 'runsExpired'; runs: readonly RunExpired[] }
  | { type: 'expiryRefused'; runId: string; error: string }
  | { type: 'expiriesChecked' }
  /** A pass that looked for effects, and did those it found. */
  | { type: 'effectsApplied' }
  /** What is to follow from the end of a run could not be done; it is tried again. `failures`: so often by now. */
  | {
      type: 'effectPutOff';
      kind: EffectKind;
      runId: string;
      scheduleId: string | null;
      error: string;
      failures: number;
      seconds: number;
    }
  /** Schedules whose runs must not overlap were looked at. */
  | { type: 'overlapsJudged'; count: number }
  /** Runs that were recorded for once, rather than for a schedule. */
  | { type: 'runsAccepted'; count: number }
  /** Runs that failed unstarted, since one they depended on did not succeed; the first of them. */
  | { type: 'dependentsFailed'; count: number; runIds: readonly string[] }
  /** firelock called the target of a running run that was cancelled or replaced; `error`: why the call may not have arrived. */
  | {
      type: 'targetCancelled';
      runId: string;
      scheduleId: string | null;
      accepted: boolean;
      error: string | null;
    }
  /** By firelock itself: nothing would come of its runs. */
  | { type: 'schedulePaused'; scheduleId: string; reason: string }
  /** firelock has handled an effect that may pause a schedule, whether or not it did. */
  | { type: 'pausesSeenTo' }
  /** Leased to a pull worker that gets the answer now. */
  | { type: 'pullRunsClaimed'; queue: string; workerId: string; count: number }
  /** A look for work at the queues that workers wait at. */
  | { type: 'queuesLookedAt' }
  /** Runs that waited for nothing, and go on. */
  | { type: 'waitingReleased'; count: number }
  | { type: 'runsAbandoned'; reason: 'deleted'; scheduleId: string | null; count: number }
  /** What one pass of retention dropped: days of history, and unused definitions. Usually nothing. */
  | { type: 'historyDropped'; days: readonly Instant[]; definitions: number }
  /** A look at all of history: how many days have partitions, the first one, and how many old ones could not be dropped yet. */
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
  | TraceEvent;

/** `orphaned`: its instance is gone; `forgotten`: its instance does not know of it; `expired`: for too long. */
export type LostBecause = 'orphaned' | 'forgotten' | 'expired';

/** Due for longer than the grace when they were planned. */
export interface MissedFires {
  schedules: number;
  /** The first of them. */
  scheduleIds: readonly string[];
  /** Fired late all the same. */
  caughtUp: number;
  /** Stood for by one that fires. */
  folded: number;
  /** Recorded, and not fired. */
  skipped: number;
}

export interface RunTakenOver {
  runId: string;
  scheduleId: string | null;
  /** Whose claim it was. */
  instanceId: string;
  /** `again`: driven on; `unknown`: ended so; else why it was abandoned. */
  verdict: LostVerdict;
}

export interface RunExpired {
  runId: string;
  scheduleId: string | null;
  attempt: number;
  /** Of a pull run. */
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
  /** It had been found lost, and is handed off with this. */
  recovered: boolean;
  /** It may have been handed off: the target is asked at `retryAt`. */
  uncertain: boolean;
}
