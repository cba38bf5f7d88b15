/**
 * The fire protocol, as it runs in one instance:
 *
 *   tick ──► fire-lock ──► plan ──► record intent ──► dispatch ──► target ──► settle ──► effects
 *    1          2           3           4                5           6          7          8
 *
 * 1 wakes at the next due moment; 2 takes a batch of due schedules; 3 says what each of them fires; 4 makes that durable
 * and moves the cursors on, in one commit; 5 claims and sends within the lanes' shares; 6 is the target's answer as a
 * value; 7 writes it down, together with its effects; 8 does the effects. Each file says what it guarantees and what is true if the
 * process dies in it.
 */
import type { Clock } from '../runtime/clock.ts';
import type { DatabaseClock } from '../runtime/database-clock.ts';
import type { EventBus } from '../runtime/event-bus.ts';
import type { Lease } from '../runtime/instance-lease.ts';
import type { Loop } from '../runtime/loop/loop.ts';
import type { Wake } from '../runtime/loop/wake.ts';
import type { Database } from '../postgres/database.ts';
import { releaseFireLocksIfMine } from '../store/schedules/fire-locks.ts';
import type { TargetRegistry } from '../targets/registry.ts';
import { type TargetCanceller, createTargetCanceller } from './effects/cancel-target.ts';
import { type Dispatcher, createDispatcher } from './dispatch/dispatch.ts';
import { type Effects, createEffects } from './effects/effects.ts';
import { takeFireLocks } from './fire-lock.ts';
import { createDependencyReader } from './handoff/dependency-outcomes.ts';
import { attemptHandoff, withoutDefinition } from './handoff/handoff.ts';
import { createHandoffDefinitions } from './handoff/handoff-definitions.ts';
import { type GonePauser, createGonePauser } from './effects/pause-gone.ts';
import { createPlanner } from './plan.ts';
import { recordIntents } from './record-intent.ts';
import { type Settler, createSettler } from './settle/settle.ts';
import { createHandoffStarter } from './handoff/start-handoff.ts';
import { createTick } from './tick.ts';

interface PipelineDeps {
  database: Database;
  clock: Clock;
  databaseClock: DatabaseClock;
  events: EventBus;
  targets: TargetRegistry;
  lease: Lease;
  tickIntervalMs: number;
  lockTtlSeconds: number;
  /** Attempts under way at once: in all, and per lane. */
  concurrency: number;
  concurrencyPerLane: number;
  /** How often a target is asked about an attempt that may have arrived. */
  maxRecoveries: number;
  /** Nothing older is planned. */
  retentionDays: number;
  /** There may be work for workers that pull. */
  wakeWorkers: () => void;
}

export interface Pipeline {
  tick: Loop;
  dispatcher: Dispatcher;
  settler: Settler;
  effects: Effects;
  canceller: TargetCanceller;
  pauser: GonePauser;
  /** Wakes the stages of this instance. */
  wake: Wake;
  /** Gives up the fire-locks of rounds that did not finish. */
  releaseFireLocks(): Promise<void>;
}

// eslint-disable-next-line max-lines-per-function -- puts the parts together
export function createPipeline(given: PipelineDeps): Pipeline {
  const { database, clock, databaseClock, lease } = given;
  const wake: Wake = {
    effects: () => effects.wake(),
    dispatch: () => dispatcher.wake(),
    workers: () => given.wakeWorkers(),
  };
  const deps = { ...given, wake };
  const definitions = createHandoffDefinitions(database);
  const canceller = createTargetCanceller({ ...deps, definitions });
  const pauser = createGonePauser({ ...deps, definitions });
  const effects = createEffects({
    ...deps,
    cancelTargets: (cancelled) => canceller.add(cancelled),
    pauseGone: (gone) => pauser.add(gone),
  });
  const settler = createSettler(deps);
  const handoffDeps = {
    ...deps,
    starter: createHandoffStarter(deps),
    readDependencies: createDependencyReader(database),
  };
  const dispatcher = createDispatcher({
    ...deps,
    settler,
    definitions,
    pollIntervalMs: deps.tickIntervalMs,
    attempt: (run, handoff, signal) => attemptHandoff(handoffDeps, run, handoff, signal),
    withoutDefinition: (run) => withoutDefinition(databaseClock, run),
  });
  const tick = createTick({
    ...deps,
    planner: createPlanner(clock, deps.retentionDays),
    takeFireLocks: (walking) => takeFireLocks(deps, walking),
    recordIntents: (planned, now) => recordIntents({ ...deps, dispatcher }, planned, now),
  });
  return {
    tick,
    dispatcher,
    settler,
    effects,
    canceller,
    pauser,
    wake,
    releaseFireLocks: () => database.run((db) => releaseFireLocksIfMine(db, lease.instanceId)),
  };
}
