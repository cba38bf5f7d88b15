/**
 * Guarantees: one attempt of one claimed run, whose outcome is a value whatever happens; an attempt in doubt is asked about before the
 *   run is sent again. Where it matters, nothing is sent before it is durable that the attempt began, under a claim that is still its own;
 *   and that is not said before all is there that it needs.
 * Transaction: one statement for all attempts that begin at the moment and must be durable; an answer that does not come counts as no.
 *   The intent is durable already, the outcome is settled after.
 * If the process dies here: the target may or may not have it; the run is still pending under the dead claim. At most once, it becomes
 *   `unknown` or its target is asked; at least once, it is sent again.
 */
import { type Delivery, type HandoffTarget, connectionOf, NO_DEFINITION } from '../../core/schedules/schedule.ts';
import type { Instant } from '../../core/instant.ts';
import type { LookedUp, Outcome } from '../../core/runs/attempts/outcome.ts';
import { runNameOf } from '../../core/runs/run.ts';
import type { AttemptSettlement } from '../../core/runs/attempts/settle-attempt.ts';
import type { Clock, DatabaseClock } from '../../runtime/clock.ts';
import type { Lease } from '../../runtime/instance-lease.ts';
import type { EventBus } from '../../runtime/event-bus.ts';
import { newSpanId } from '../../runtime/span-id.ts';
import { batchCalls } from '../../runtime/loop/batch.ts';
import type { Database } from '../../postgres/database.ts';
import type { ClaimedRun } from '../../store/runs/claims/claimed-run.ts';
import { claimOf, startHandoffsIfClaimed } from '../../store/runs/claims/held-claims.ts';
import type { Attempt, TargetRegistry } from '../../targets/target.ts';
import { type AskTargetDeps, type ClaimToSend, type Sending, askIfInDoubt } from './ask-target.ts';
import type { ReadConnections } from './connection-reader.ts';
import type { FillTarget } from './file-values.ts';
import { type ReadDependencies, type ReadOutcomes, NO_OUTCOMES } from './dependency-outcomes.ts';
import { SENT, attemptedOf, isUnsent, mayHaveArrived, settlementFor, stillInDoubt, unsent } from './settlements.ts';
import type { SendableHandoff } from './handoff-definitions.ts';

export interface HandoffDeps extends AskTargetDeps {
  lease: Lease;
  clock: Clock;
  targets: TargetRegistry;
  startHandoff: StartHandoff;
  readDependencies: ReadDependencies;
  readConnection: ReadConnections;
  fillTarget: FillTarget;
}

/** Makes the attempt that the claim is for; never throws. */
export async function attemptHandoff(deps: HandoffDeps, claim: ClaimToSend): Promise<AttemptSettlement> {
  const { clock, databaseClock } = deps;
  const { run, handoff, signal } = claim;
  const begunAt = databaseClock.now();
  try {
    const ready = readyAtOnce(deps, claim) ?? (await prepared(deps, claim));
    if ('settled' in ready) return ready.settled;
    const { kind, attempt, fault, target } = ready;
    const { spentMs = 0 } = attempt;
    const startedAt = databaseClock.now() - spentMs;
    const began = clock.monotonic() - spentMs;
    let outcome: Outcome;
    try {
      outcome = fault ?? (await kind.deliver(target, attempt, signal));
    } catch (error) {
      outcome = mayHaveArrived(error);
    }
    const sent = settledSending(deps, ready, outcome, { startedAt, durationMs: clock.monotonic() - began });
    if (fault !== null) return stillInDoubt(run, sent);
    return ready.lookup === null ? sent : { ...sent, lookup: ready.lookup };
  } catch (error) {
    // An error of ours, or a definition that cannot be sent, must not end the process: it would end the next one too.
    const { delivery } = handoff;
    const attempted = attemptedOf(run, { ...NO_DEFINITION, delivery }, undefined, begunAt);
    return settlementFor(databaseClock, run, attempted, mayHaveArrived(error), SENT);
  }
}

/** To be sent now, but for `fault`: why it cannot; `lookup`: what the target has said of an earlier attempt. */
interface Ready extends Sending {
  /** With what its files say. */
  target: HandoffTarget<string>;
  lookup: LookedUp | null;
  fault: Outcome | null;
}

/** What nearly every attempt is, without a wait and what that costs; null: something has to be read, asked or confirmed first. */
function readyAtOnce(
  { databaseClock, targets, lease }: HandoffDeps,
  { run, handoff, signal }: ClaimToSend,
): Ready | null {
  const kind = targets.kindOf(handoff.target);
  if (!kind || handoff.lockedBecause !== null || !dependsOnNone(run) || run.inDoubtUntil !== null) return null;
  const { target } = handoff;
  if (connectionOf(target) !== null || handoff.ofFiles !== null) return null;
  if (mustBeStarted(run, handoff.delivery, databaseClock)) return null;
  const attempt = attemptOf(lease, run, handoff, { ...NO_OUTCOMES, connection: null });
  return { kind, run, handoff, target, attempt, signal, lookup: null, fault: null };
}

async function prepared(
  deps: HandoffDeps,
  { run, handoff, signal }: ClaimToSend,
): Promise<Ready | { settled: AttemptSettlement }> {
  const { databaseClock, clock, targets } = deps;
  const kind = targets.kindOf(handoff.target);
  const startedAt = databaseClock.now();
  const notSent = (message: string, senderStopped = false) => {
    const attempted = attemptedOf(run, handoff, kind, startedAt);
    return { settled: settlementFor(databaseClock, run, attempted, unsent(message, senderStopped)) };
  };
  if (!kind) return notSent(`this version cannot send to a target of type ${handoff.target.type}`);
  if (handoff.lockedBecause !== null) return { settled: stillInDoubt(run, notSent(handoff.lockedBecause).settled) };

  const outcomes = dependsOnNone(run) ? NO_OUTCOMES : await deps.readDependencies(run);
  if (!outcomes) return notSent('not begun: how those ended that it depends on could not be read', true);
  const read = await deps.readConnection(handoff.target);
  if (!read) return notSent('not begun: its connection could not be read', true);
  if ('fault' in read) return { settled: stillInDoubt(run, notSent(read.fault).settled) };
  const filled = await deps.fillTarget(handoff);
  if (!filled) return notSent('not begun: the files of its values could not be read', true);
  if ('fault' in filled) return { settled: stillInDoubt(run, notSent(filled.fault).settled) };
  const { target } = filled;
  const attempt = attemptOf(deps.lease, run, handoff, { ...outcomes, ...read });
  const sending = { kind, run, handoff, attempt, signal };
  const began = clock.monotonic();
  const fault = (await kind.prepare?.(attempt, signal)) ?? null;
  const spentMs = Math.round(clock.monotonic() - began);
  const readied = { ...sending, target, attempt: { ...attempt, spentMs }, fault };
  if (fault !== null) return { ...readied, lookup: null };
  const asked = run.inDoubtUntil === null ? null : await askIfInDoubt(deps, sending, startedAt);
  if (asked && 'settled' in asked) return asked;
  if (mustBeStarted(run, handoff.delivery, databaseClock) && !(await deps.startHandoff(run))) {
    return notSent('not begun: the claim could not be confirmed', true);
  }
  return { ...readied, lookup: asked?.lookup ?? null };
}

/** Most runs: before they are sent, nothing waits, neither in the database nor here. */
function dependsOnNone({ parentId, hasDependencies }: ClaimedRun): boolean {
  return parentId === null && !hasDependencies;
}

/** Reports the outcome of an attempt that was made, and answers what it means for the run. */
function settledSending(
  { databaseClock, events }: HandoffDeps,
  { kind, run, handoff, attempt }: Sending,
  outcome: Outcome,
  { startedAt, durationMs }: { startedAt: Instant; durationMs: number },
): AttemptSettlement {
  // The attempt's number does not show that: a claim that was handed back used up its number, and nothing was sent.
  const isFirst = run.latenessMs === null && !isUnsent(outcome);
  const latenessMs = isFirst ? startedAt - run.dueAt : null;
  // The lateness of fires is measured, which messages are not.
  if (latenessMs !== null && run.trigger !== 'notify') events.emit({ type: 'runStarted', runId: run.id, latenessMs });
  events.emit({
    type: 'attemptEnded',
    target: kind.type,
    runId: run.id,
    attempt: run.attempt,
    outcome: outcome.kind,
    durationMs,
    startedAt,
    spanId: attempt.spanId,
    scheduleId: run.scheduleId,
    trigger: run.trigger,
    recoveries: run.recoveries,
    to: handoff.target,
    result: outcome,
  });
  const attempted = attemptedOf(run, handoff, kind, startedAt);
  return settlementFor(databaseClock, run, attempted, outcome, { latenessMs, sent: !isUnsent(outcome) });
}

function attemptOf(
  lease: Lease,
  run: ClaimedRun,
  handoff: SendableHandoff,
  read: ReadOutcomes & Pick<Attempt, 'connection'>,
): Attempt {
  const { id: runId, instanceId, recoveredAt, recoveries } = run;
  return {
    runId,
    runName: runNameOf(run),
    scheduleId: run.scheduleId,
    scheduledFor: run.scheduledFor,
    trigger: run.trigger,
    attempt: run.attempt,
    spanId: newSpanId(),
    payload: run.ownPayload ?? handoff.payload,
    timeoutSeconds: handoff.timeoutSeconds,
    delivery: handoff.delivery,
    expectedResult: handoff.expect?.result ?? null,
    recovery: recoveries > 0 && recoveredAt !== null ? { recoveries, recoveredAt } : null,
    mayStart: () => lease.instanceId === instanceId && lease.isValid(),
    ...read,
  };
}

/** False: the claim is no longer valid, or that is unknown; nothing may be sent. */
type StartHandoff = (run: ClaimedRun) => Promise<boolean>;

/** A claim that has waited for longer may have been taken away: its schedule deleted, its instance thought dead. */
const FRESH_MS = 1_000;

/** At least once, a fresh claim of a run without bounds is sent without this statement, which saves a round trip. */
function mustBeStarted(run: ClaimedRun, delivery: Delivery, databaseClock: DatabaseClock): boolean {
  const { confirm, toBegin, claimedAt } = run;
  return confirm || toBegin || delivery === 'atMostOnce' || databaseClock.now() - claimedAt > FRESH_MS;
}

export function createHandoffStarter({ database, events }: { database: Database; events: EventBus }): StartHandoff {
  async function startBatch(runs: readonly ClaimedRun[]): Promise<boolean[]> {
    try {
      const bounded = runs.some(({ toBegin }) => toBegin);
      const started = await database.run((db) => startHandoffsIfClaimed(db, runs.map(claimOf), { bounded }));
      return runs.map(({ id }) => started.has(id));
    } catch (error) {
      // It may have been committed unseen. Nothing is sent, so the settlement, under the same guard, can say so.
      events.emit({ type: 'handoffsNotStarted', count: runs.length, error });
      return runs.map(() => false);
    }
  }

  return batchCalls({ work: startBatch });
}
