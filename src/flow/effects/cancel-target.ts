/**
 * Guarantees: firelock calls the target of a run that was cancelled or replaced while it was running at most once,
 *   best effort; a silent origin delays only its own calls, and only its own are dropped.
 * Transaction: none; the run has ended already.
 * If the process dies here: the target is not called, and finds out when it reports the run's completion.
 */
import { runNameOf, scheduledForOf } from '../../core/runs/run.ts';
import type { EventBus } from '../../runtime/event-bus.ts';
import { reasonOf } from '../../runtime/reason.ts';
import type { Service } from '../../runtime/service.ts';
import { createSlots, FairQueue } from '../../runtime/loop/fair-queue.ts';
import type { Effect } from '../../store/effects/effect-rows.ts';
import { versionKey } from '../../store/schedules/load-handoffs.ts';
import type { TargetRegistry } from '../../targets/registry.ts';
import type { Attempt, TargetKind } from '../../targets/target.ts';
import type { HandoffDefinitions, SendableHandoff } from '../handoff/handoff-definitions.ts';

interface TargetCancellerDeps {
  definitions: HandoffDefinitions;
  targets: TargetRegistry;
  events: EventBus;
  /** Calls that wait, of all origins and of one. Targets beyond that are not called: they find out when they report the completion. */
  maxWaiting?: number;
  maxWaitingPerLane?: number;
}

export interface TargetCanceller extends Service {
  /** Returns at once. */
  add(runs: readonly Effect[]): void;
  /** Ends the calls under way, and makes no other. */
  stop(): Promise<void>;
}

interface Call {
  run: Effect;
  handoff: SendableHandoff;
  kind: TargetKind;
  lane: string;
}

const MAX_AT_ONCE = 64;
const MAX_AT_ONCE_PER_LANE = 4;
/** A target that does not answer keeps a slot for that long at most. */
const MAX_CALL_SECONDS = 30;

// eslint-disable-next-line max-lines-per-function -- a closure: its functions share its state, and are short
export function createTargetCanceller({
  definitions,
  targets,
  events,
  maxWaiting = 10_000,
  maxWaitingPerLane = 1_000,
}: TargetCancellerDeps): TargetCanceller {
  const stopping = new AbortController();
  const slots = createSlots(MAX_AT_ONCE, MAX_AT_ONCE_PER_LANE);
  const waiting = new FairQueue<Call>({ most: maxWaiting, mostOfLane: maxWaitingPerLane });
  const underWay = new Set<Promise<void>>();

  function follow(work: Promise<void>): void {
    underWay.add(work);
    void work.finally(() => underWay.delete(work));
  }

  async function enqueue(runs: readonly Effect[]): Promise<void> {
    try {
      const found = await definitions.load(runs);
      for (const run of runs) {
        const handoff = found.get(versionKey(run));
        if (!handoff) continue;
        const kind = targets.kindOf(handoff.target);
        if (!kind?.hasCancel(handoff.target)) continue;
        if (handoff.lockedBecause !== null) emitCancelled(run, handoff.lockedBecause);
        else if (stopping.signal.aborted) emitCancelled(run, 'stopped before anything was sent');
        else enqueueCall({ run, handoff, kind, lane: targets.laneOf(handoff.target) });
      }
      begin();
    } catch (error) {
      for (const run of runs) emitCancelled(run, reasonOf(error));
    }
  }

  function enqueueCall(call: Call): void {
    const dropped = waiting.add(call);
    if (dropped) emitCancelled(dropped.run, 'too many others of its origin wait to be told');
  }

  function begin(): void {
    while (slots.free() > 0) {
      const call = waiting.takeFirst((lane) => slots.take(lane));
      if (!call) return;
      follow(make(call));
    }
  }

  async function make({ run, handoff, kind, lane }: Call): Promise<void> {
    try {
      const fault = await kind.cancel(handoff.target, attemptOf(run, handoff), stopping.signal);
      emitCancelled(run, fault?.message ?? null);
    } catch (error) {
      emitCancelled(run, reasonOf(error));
    } finally {
      slots.release(lane);
      begin();
    }
  }

  /** Null: the target accepted it. */
  function emitCancelled({ runId, scheduleId }: Effect, error: string | null): void {
    events.emit({ type: 'targetCancelled', runId, scheduleId, accepted: error === null, error });
  }

  return {
    name: 'cancel',
    start: () => undefined,
    add: (runs) => {
      if (runs.length > 0) follow(enqueue(runs));
    },
    stop: async () => {
      const left = waiting.takeAll();
      stopping.abort();
      for (const { run } of left) emitCancelled(run, 'stopped before anything was sent');
      while (underWay.size > 0) await Promise.all(underWay);
    },
  };
}

function attemptOf(run: Effect, { timeoutSeconds, delivery }: SendableHandoff): Attempt {
  return {
    runId: run.runId,
    runName: runNameOf({ ...run, scheduledFor: scheduledForOf(run.runId) }),
    scheduleId: run.scheduleId,
    scheduledFor: scheduledForOf(run.runId),
    trigger: run.trigger,
    attempt: run.attempt,
    payload: null,
    timeoutSeconds: Math.min(timeoutSeconds, MAX_CALL_SECONDS),
    delivery,
    recovery: null,
    dependencies: [],
    // The run stays cancelled, whatever happens to this instance's lease.
    mayStart: () => true,
  };
}
