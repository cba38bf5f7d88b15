import type { Instant } from './instant.ts';
import type { Outcome } from './outcome.ts';
import type { RunStatus } from './run.ts';

/** What happened, for whoever watches: metrics and log lines are made of these and of nothing else. */
export type FirelockEvent =
  | { type: 'instanceRegistered'; instanceId: string; host: string; zoneData: string }
  | { type: 'instanceLeft'; instanceId: string; unfinished: number }
  | { type: 'heartbeat'; roundTripMs: number }
  | { type: 'tickFinished'; durationMs: number; locked: number }
  | { type: 'fireLocks'; outcome: 'acquired' | 'contended' | 'expired' | 'fenced'; count: number }
  | { type: 'intentsRecorded'; fires: number; claimed: number; coalesced: number }
  | { type: 'scheduleSetAside'; scheduleId: string; error: string; failures: number; retryAt: Instant }
  | { type: 'runsClaimed'; count: number }
  | { type: 'dispatchIdle' }
  | {
      type: 'attemptEnded';
      target: string;
      runId: string;
      attempt: number;
      outcome: Outcome['kind'];
      durationMs: number;
    }
  | { type: 'runStarted'; runId: string; latenessMs: number }
  | { type: 'runSettled'; runId: string; scheduleId: string | null; attempt: number; settlement: RunSettled }
  | { type: 'settlementFenced'; runId: string; attempt: number }
  | { type: 'settlementRefused'; runId: string; error: string }
  | { type: 'runsReturned'; count: number }
  | { type: 'migrationsApplied'; count: number }
  | { type: 'gaugesSampled'; strandedRuns: number }
  | { type: 'loopFailed'; loop: string; error: unknown; retryInMs: number }
  | { type: 'schedulesWritten'; changes: readonly WrittenSchedule[] }
  | { type: 'runsAbandoned'; reason: 'deleted'; count: number };

export interface WrittenSchedule {
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
}
