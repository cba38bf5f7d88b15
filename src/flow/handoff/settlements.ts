import type { Instant } from '../../core/instant.ts';
import { type AttemptOutcome, type Outcome, isGone, notSent } from '../../core/runs/attempts/outcome.ts';
import type { AttemptSettlement } from '../../core/runs/attempts/settle-attempt.ts';
import { type Attempted, type Settlement, type Doubt, settlementOf } from '../../core/runs/attempts/settlement.ts';
import { MESSAGE_TRIED_MS } from '../../core/alerts/notifier.ts';
import { type Handoff, NO_DEFINITION } from '../../core/schedules/schedule.ts';
import type { DatabaseClock } from '../../runtime/clock.ts';
import { reasonOf } from '../../runtime/reason.ts';
import type { ClaimedRun } from '../../store/runs/claims/claimed-run.ts';
import type { TargetKind } from '../../targets/target.ts';

export function attemptedOf(
  run: ClaimedRun,
  handoff: Omit<Handoff, 'target' | 'payload'> & Partial<Handoff>,
  kind: TargetKind | undefined,
  startedAt: Instant,
): Attempted {
  const { target, retry, delivery, timeoutSeconds, completion, completionTimeoutSeconds, expect } = handoff;
  const { failures, wasHandedOff, trigger, scheduledFor } = run;
  const hasLookup = (target && kind?.hasLookup(target)) ?? false;
  const doubt = hasLookup ? doubtOf(run) : null;
  return {
    retry,
    delivery,
    timeoutSeconds,
    completion,
    completionTimeoutSeconds,
    expect: expect ?? null,
    failures,
    startedAt,
    hasLookup,
    giveUpAt: trigger === 'notify' ? scheduledFor + MESSAGE_TRIED_MS : null,
    doubt,
    wasHandedOff,
  };
}

function doubtOf({ inDoubtUntil, lookups }: ClaimedRun): Doubt | null {
  return inDoubtUntil === null ? null : { inDoubtUntil, lookups };
}

type Sent = Pick<AttemptSettlement, 'latenessMs' | 'sent'>;

const UNSENT: Sent = { latenessMs: null, sent: false };
export const SENT: Sent = { latenessMs: null, sent: true };

export function settlementFor(
  databaseClock: DatabaseClock,
  run: ClaimedRun,
  attempted: Attempted,
  outcome: Outcome,
  sent = UNSENT,
): AttemptSettlement {
  const settlement = settlementOf(outcome, attempted, databaseClock.now(), Math.random());
  const ending = settled(databaseClock, run, attempted.startedAt, { outcome: outcome.kind, settlement }, sent);
  return isGone(outcome) ? { ...ending, gone: true } : ending;
}

export function settled(
  databaseClock: DatabaseClock,
  run: ClaimedRun,
  startedAt: Instant,
  { outcome, settlement }: { outcome: AttemptOutcome; settlement: Settlement },
  { latenessMs, sent } = UNSENT,
): AttemptSettlement {
  return {
    runId: run.id,
    instanceId: run.instanceId,
    attempt: run.attempt,
    outcome,
    settlement,
    startedAt,
    // The database's clock may have been found to be a little earlier than thought.
    finishedAt: Math.max(startedAt, databaseClock.now()),
    latenessMs,
    recovery: run.recoveries > 0,
    lookup: null,
    sent,
  };
}

/** Something threw that promised not to; what it sent before is unknown. */
export function mayHaveArrived(error: unknown): Outcome {
  return { kind: 'unknown', error: { kind: 'network', message: reasonOf(error) }, senderStopped: false };
}

export function isUnsent(outcome: Outcome): boolean {
  return outcome.kind === 'transient' && outcome.senderStopped;
}

export function unsent(message: string, senderStopped = false): Outcome {
  return notSent({ kind: 'network', message }, senderStopped);
}

/** The settlement of a run whose definition is missing. */
export function withoutDefinition(databaseClock: DatabaseClock, run: ClaimedRun): AttemptSettlement {
  const attempted = attemptedOf(run, NO_DEFINITION, undefined, databaseClock.now());
  const { scheduleId, scheduleVersion } = run;
  const what =
    scheduleId === null ? 'the definition of the run' : `version ${scheduleVersion} of schedule ${scheduleId}`;
  const message = `${what} is missing or cannot be read`;
  return stillInDoubt(run, settlementFor(databaseClock, run, attempted, unsent(message)));
}

/** The target could not be asked about an earlier attempt. */
export function stillInDoubt(run: ClaimedRun, settled: AttemptSettlement): AttemptSettlement {
  return { ...settled, settlement: { ...settled.settlement, doubt: doubtOf(run) } };
}
