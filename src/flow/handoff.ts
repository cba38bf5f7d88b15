/**
 * Guarantees: one attempt of one claimed run, whose outcome is a value whatever happens.
 * Transaction: none; the intent is durable already, the outcome is settled after.
 * If the process dies here: the target may or may not have it; the run is still pending under the dead claim.
 */
import type { Instant } from '../core/instant.ts';
import type { Outcome } from '../core/outcome.ts';
import { isPlanned, plannedRunName } from '../core/run.ts';
import type { Handoff } from '../core/schedule.ts';
import { settlementOf } from '../core/settlement.ts';
import type { Clock } from '../runtime/clock.ts';
import type { DatabaseClock } from '../runtime/database-clock.ts';
import type { EventBus } from '../runtime/event-bus.ts';
import type { ClaimedRun } from '../store/claims.ts';
import type { AttemptSettlement } from '../store/settlements.ts';
import type { TargetRegistry } from '../targets/registry.ts';
import type { Attempt } from '../targets/target.ts';

export interface HandoffDeps {
  instanceId: string;
  clock: Clock;
  databaseClock: DatabaseClock;
  events: EventBus;
  targets: TargetRegistry;
}

/** Makes the attempt that the claim is for; never throws. */
export async function attemptHandoff(
  deps: HandoffDeps,
  run: ClaimedRun,
  handoff: Handoff,
  signal: AbortSignal,
): Promise<AttemptSettlement> {
  const { clock, databaseClock, events } = deps;
  const startedAt = databaseClock.now();
  const began = clock.monotonic();
  // Not `attempt === 1`: a claim that was handed back unsent has used up its number.
  const latenessMs = run.latenessMs === null ? startedAt - run.dueAt : null;
  if (latenessMs !== null) events.emit({ type: 'runStarted', runId: run.id, latenessMs });
  const outcome = await deliver(deps.targets, run, handoff, signal);
  const durationMs = clock.monotonic() - began;
  events.emit({
    type: 'attemptEnded',
    target: handoff.target.type,
    runId: run.id,
    attempt: run.attempt,
    outcome: outcome.kind,
    durationMs,
  });
  const times = { startedAt, finishedAt: startedAt + Math.round(durationMs) };
  return settlementFor(deps, run, handoff, outcome, { ...times, latenessMs });
}

/** What becomes of a run whose definition is not there or cannot be sent by this version. */
export function undeliverable(message: string): Outcome {
  return {
    kind: 'transient',
    error: { kind: 'network', message },
    statusCode: null,
    body: null,
    retryAfterSeconds: null,
    senderStopped: false,
  };
}

export function settlementFor(
  deps: Pick<HandoffDeps, 'instanceId'>,
  run: ClaimedRun,
  { retry }: Pick<Handoff, 'retry'>,
  outcome: Outcome,
  told: { startedAt: Instant; finishedAt: Instant; latenessMs: number | null },
): AttemptSettlement {
  return {
    ...told,
    runId: run.id,
    scheduledFor: run.scheduledFor,
    instanceId: deps.instanceId,
    attempt: run.attempt,
    outcome: outcome.kind,
    settlement: settlementOf(outcome, { failures: run.failures, retry }, told.finishedAt, Math.random()),
    recovery: run.recoveries > 0,
  };
}

async function deliver(
  targets: TargetRegistry,
  run: ClaimedRun,
  { target, payload, timeoutSeconds }: Handoff,
  signal: AbortSignal,
): Promise<Outcome> {
  const kind = targets.kindOf(target);
  if (!kind) return undeliverable(`this version cannot send to a target of type ${target.type}`);
  const attempt: Attempt = {
    runId: run.id,
    runName: isPlanned(run.trigger) ? plannedRunName(run.scheduleId, run.scheduledFor) : null,
    scheduleId: run.scheduleId,
    scheduledFor: run.scheduledFor,
    trigger: run.trigger,
    attempt: run.attempt,
    payload: run.ownPayload ?? payload,
    timeoutSeconds,
    recovery: null,
  };
  try {
    return await kind.deliver(target, attempt, signal);
  } catch (error) {
    // A kind that breaks its promise not to throw must not break the others' runs.
    return undeliverable(error instanceof Error ? error.message : String(error));
  }
}
