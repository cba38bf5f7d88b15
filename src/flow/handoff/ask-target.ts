/**
 * A target is asked about an attempt in doubt before its run is sent again or given up. What it says is settled with the attempt: if the
 * process dies before that, the attempt stays in doubt, and the instance that claims the run next asks again.
 */
import type { Instant } from '../../core/instant.ts';
import type { LookedUp, Outcome } from '../../core/runs/attempts/outcome.ts';
import type { AttemptSettlement } from '../../core/runs/attempts/settle-attempt.ts';
import type { Attempted, Doubt } from '../../core/runs/attempts/settlement.ts';
import { afterLookup } from '../../core/runs/attempts/doubt.ts';
import type { DatabaseClock } from '../../runtime/clock.ts';
import type { EventBus } from '../../runtime/event-bus.ts';
import { reasonOf } from '../../runtime/reason.ts';
import type { ClaimedRun } from '../../store/runs/claims/claimed-run.ts';
import type { Attempt, LookupAnswer, TargetKind } from '../../targets/target.ts';
import type { SendableHandoff } from './handoff-definitions.ts';
import { attemptedOf, settled, settlementFor, unsent } from './settlements.ts';

export interface AskTargetDeps {
  databaseClock: DatabaseClock;
  events: EventBus;
  /** How often a target is asked about an attempt in doubt. */
  maxRecoveries: number;
}

/** A claimed run with the definition of its version. */
export interface ClaimToSend {
  run: ClaimedRun;
  handoff: SendableHandoff;
  /** Aborts the attempt. */
  signal: AbortSignal;
}

export interface Sending extends ClaimToSend {
  kind: TargetKind;
  attempt: Attempt;
}

type Asked = { settled: AttemptSettlement } | { lookup: LookedUp | null };

/** The settlement that the target's answer leads to; without `settled` the run is sent. `lookup`: null if it was not asked. */
export async function askIfInDoubt(deps: AskTargetDeps, sending: Sending, startedAt: Instant): Promise<Asked> {
  const { kind, run, handoff, attempt, signal } = sending;
  const attempted = attemptedOf(run, handoff, kind, startedAt);
  const { doubt } = attempted;
  if (!doubt) return { lookup: null };
  const answer = await answerOf(sending);
  // The daemon stops, or its lease has run out: a missing answer says nothing about the target, and does not count.
  if (answer.kind === 'unclear' && (signal.aborted || !attempt.mayStart())) {
    const stopped = unsent('stopped before the target had answered', true);
    return { settled: settlementFor(deps.databaseClock, run, attempted, stopped) };
  }
  const { id: runId, scheduleId } = run;
  deps.events.emit({ type: 'targetAsked', runId, scheduleId, attempt: run.attempt, lookup: answer.kind });
  return actOn(deps, run, { ...attempted, doubt }, answer);
}

function actOn(
  { databaseClock, maxRecoveries: maxLookups }: AskTargetDeps,
  run: ClaimedRun,
  attempted: Attempted & { doubt: Doubt },
  answer: LookupAnswer,
): Asked {
  const lookup = answer.kind;
  if (lookup === 'arrived') {
    const outcome: Outcome = { ...answer, kind: 'accepted' };
    return { settled: { ...settlementFor(databaseClock, run, attempted, outcome), lookup } };
  }
  // The run was claimed by the database's time, and before its target was asked.
  const times = { askedAt: run.claimedAt, now: databaseClock.now() };
  const settlement = afterLookup(answer, attempted, { ...times, maxLookups, random: Math.random() });
  if (settlement === 'send') return { lookup };
  const outcome = lookup === 'unclear' || settlement.doubt !== null ? 'unknown' : 'rejected';
  return {
    settled: { ...settled(databaseClock, run, attempted.startedAt, { outcome, settlement }), lookup },
  };
}

async function answerOf({ kind, handoff, attempt, signal }: Sending): Promise<LookupAnswer> {
  try {
    return await kind.lookup(handoff.target, attempt, signal);
  } catch (error) {
    return { kind: 'unclear', error: { kind: 'network', message: reasonOf(error) } };
  }
}
