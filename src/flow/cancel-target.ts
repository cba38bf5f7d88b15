import { runNameOf, scheduledForOf } from '../core/runs/run.ts';
import type { EventBus } from '../runtime/event-bus.ts';
import { reasonOf } from '../runtime/reason.ts';
import type { Service } from '../runtime/service.ts';
import { type Turns, createTurns } from '../runtime/loop/turns.ts';
import type { Effect } from '../store/effects/effect-rows.ts';
import { versionKey } from '../store/schedules/schedule-versions.ts';
import type { Attempt, TargetKind, TargetRegistry } from '../targets/target.ts';
import type { ReadConnections } from './handoff/connection-reader.ts';
import type { HandoffDefinitions, SendableHandoff } from './handoff/handoff-definitions.ts';

interface TargetCancellerDeps {
  definitions: HandoffDefinitions;
  readConnection: ReadConnections;
  targets: TargetRegistry;
  events: EventBus;
  /** Calls that wait, of all origins and of one. Targets beyond that are not called: they find out when they report the completion. */
  maxWaiting?: number;
  maxWaitingPerLane?: number;
}

interface Call {
  run: Effect;
  handoff: SendableHandoff;
  kind: TargetKind;
}

const MAX_AT_ONCE = 64;
const MAX_AT_ONCE_PER_LANE = 4;
/** A target that does not answer keeps a slot for that long at most. */
const MAX_CALL_SECONDS = 30;

/**
 * Calls the target of a run that was cancelled or replaced while it was running, at most once and best effort: a target that is not called
 * finds out when it reports the run's completion. A silent origin delays only its own calls, and only its own are dropped.
 */
export class TargetCanceller implements Service {
  readonly name = 'cancel';
  readonly #deps: TargetCancellerDeps;
  readonly #stopping = new AbortController();
  readonly #turns: Turns;
  readonly #underWay = new Set<Promise<void>>();

  constructor(deps: TargetCancellerDeps) {
    this.#deps = deps;
    const { maxWaiting: mostWaiting = 10_000, maxWaitingPerLane: mostOfKey = 1_000 } = deps;
    this.#turns = createTurns({ places: MAX_AT_ONCE, mostWaiting, mostOfKey });
  }

  start(): void {
    // It works when it is given something.
  }

  /** Returns at once. */
  add(runs: readonly Effect[]): void {
    if (runs.length > 0) this.#follow(this.#enqueue(runs));
  }

  /** Ends the calls under way, and makes no other. */
  async stop(): Promise<void> {
    this.#stopping.abort();
    while (this.#underWay.size > 0) await Promise.all(this.#underWay);
  }

  #follow(work: Promise<void>): void {
    this.#underWay.add(work);
    void work.finally(() => this.#underWay.delete(work));
  }

  async #enqueue(runs: readonly Effect[]): Promise<void> {
    const { definitions, targets } = this.#deps;
    try {
      const found = await definitions.read(runs);
      for (const run of runs) {
        const handoff = found.get(versionKey(run));
        if (!handoff) continue;
        const kind = targets.kindOf(handoff.target);
        if (!kind?.hasCancel(handoff.target)) continue;
        if (handoff.lockedBecause !== null) this.#emitCancelled(run, handoff.lockedBecause);
        else this.#follow(this.#callInTurn(targets.laneOf(handoff.target), { run, handoff, kind }));
      }
    } catch (error) {
      for (const run of runs) this.#emitCancelled(run, reasonOf(error));
    }
  }

  async #callInTurn(lane: string, call: Call): Promise<void> {
    const leave = await this.#turns.take(lane, { most: MAX_AT_ONCE_PER_LANE });
    if (leave === null) this.#emitCancelled(call.run, 'too many others of its origin wait to be told');
    else this.#emitCancelled(call.run, await this.#call(call).catch(reasonOf).finally(leave));
  }

  async #call({ run, handoff, kind }: Call): Promise<string | null> {
    if (this.#stopping.signal.aborted) return 'firelock stopped before the request was sent';
    const read = await this.#deps.readConnection(handoff.target);
    if (read === null || 'fault' in read) return read?.fault ?? 'its connection could not be read';
    const attempt = { ...attemptOf(run, handoff), ...read };
    const fault = await kind.cancel(handoff.target, attempt, this.#stopping.signal);
    return fault?.message ?? null;
  }

  /** Null: the target accepted it. */
  #emitCancelled({ runId, scheduleId }: Effect, error: string | null): void {
    this.#deps.events.emit({ type: 'targetCancelled', runId, scheduleId, accepted: error === null, error });
  }
}

function attemptOf(run: Effect, { timeoutSeconds, delivery }: SendableHandoff): Omit<Attempt, 'connection'> {
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
    parent: null,
    // The run stays cancelled, whatever happens to this instance's lease.
    mayStart: () => true,
  };
}
