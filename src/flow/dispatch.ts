/**
 * Guarantees: a claimed run is sent once per claim, within the shares of its lane, and only while the lease holds; a slow lane delays only itself.
 * Transaction: claiming is one statement; sending has none.
 * If the process dies here: its claims are found as those of an instance that is no more.
 */
import { setTimeout } from 'node:timers/promises';
import type { Handoff } from '../core/schedule.ts';
import type { Clock } from '../runtime/clock.ts';
import type { DatabaseClock } from '../runtime/database-clock.ts';
import type { EventBus } from '../runtime/event-bus.ts';
import type { Lease } from '../runtime/lease.ts';
import { type Turning, createLoop, turningOf } from '../runtime/loop.ts';
import { createSlots } from '../runtime/slots.ts';
import {
  type ClaimedRun,
  claimOf,
  claimPendingRuns,
  msUntilNextDue,
  returnClaimsIfMine,
} from '../store/claims.ts';
import type { Database } from '../store/database.ts';
import { versionKey } from '../store/handoffs.ts';
import type { OpenSpan } from '../store/open-runs.ts';
import type { AttemptSettlement } from '../store/settlements.ts';
import type { TargetRegistry } from '../targets/registry.ts';
import type { HandoffDefinitions } from './handoff-definitions.ts';
import { createHeldRuns } from './held-runs.ts';
import { createLanePace } from './lane-pace.ts';
import { createLanes } from './lanes.ts';
import type { Settler } from './settle.ts';

export interface DispatchDeps {
  database: Database;
  clock: Clock;
  databaseClock: DatabaseClock;
  events: EventBus;
  targets: TargetRegistry;
  definitions: HandoffDefinitions;
  settler: Settler;
  lease: Lease;
  openSpan: OpenSpan;
  /** Attempts under way at once: in all, and per lane. */
  concurrency: number;
  concurrencyPerLane: number;
  /** How often to look for work that nobody told of. */
  pollIntervalMs: number;
  attempt: (run: ClaimedRun, handoff: Handoff, signal: AbortSignal) => Promise<AttemptSettlement>;
  /** The settlement of a run whose version is not there. */
  withoutDefinition: (run: ClaimedRun) => AttemptSettlement;
}

export interface Dispatcher extends Turning {
  /** Takes a slot for a run that is about to be recorded as claimed; false: record it unclaimed. */
  reserve(lane: string): boolean;
  unreserve(lanes: readonly string[]): void;
  /** Sends runs whose slots are reserved. */
  accept(runs: readonly ClaimedRun[]): void;
  /** There is a run to claim. */
  wake(): void;
  /** Attempts under way. */
  inFlight(): number;
  /** Claims held: under way, waiting for a slot, or not settled yet. */
  claimed(): number;
  /** Whether this process knows of the claim that the run has for that attempt. */
  holds(runId: string, attempt: number): boolean;
  /** Stops claiming and hands back what was not sent; what is under way goes on. */
  stop(): Promise<void>;
  /** Resolves when nothing is under way and all outcomes are written. */
  drained(): Promise<void>;
  /** Aborts what is under way. */
  abort(): void;
}

/** Claims per slot of the whole; how many of them a lane may have is its pace's matter. */
const CLAIMS_PER_SLOT = 16;
/** Each with a payload of 64 KiB, perhaps. */
const MOST_AT_ONCE = 1_000;

/** A tenth of what a lane is claimed ahead. */
const LEAST_MS_IF_BUSY = 50;
const HAND_BACK_RETRY_MS = 200;
/** Of a claim for its slot. Far less than after which a claim counts as lost. */
const LONGEST_WAIT_MS = 10_000;

export function createDispatcher(deps: DispatchDeps): Dispatcher {
  const { database, clock, databaseClock, events, definitions, settler, lease, openSpan } = deps;
  const { concurrency, concurrencyPerLane } = deps;
  const pace = createLanePace(clock, concurrencyPerLane);
  const claims = createSlots(concurrency * CLAIMS_PER_SLOT, (lane) => concurrencyPerLane + pace.ahead(lane));
  const lanes = createLanes({
    slots: createSlots(concurrency, () => concurrencyPerLane),
    send,
    mayStart: () => deps.lease.holds(),
  });
  const aborting = new AbortController();
  const onIdle: (() => void)[] = [];
  const held = createHeldRuns();
  /** Claimed, but of a version whose definition is not at hand yet. */
  let undefinedYet: ClaimedRun[] = [];
  /** There may be more to claim than there was room for: every slot that comes free asks again. */
  let backlog = false;
  let accepting = true;

  const loop = createLoop({
    name: 'dispatch',
    clock,
    body: dispatch,
    // Where there is enough to send for now, what comes free is filled again by few statements.
    leastMs: () => (lanes.hasWaiting() ? LEAST_MS_IF_BUSY : 0),
    events,
  });

  lease.onChange(() => {
    dropForeign();
    lanes.resume();
    loop.wake();
  });

  async function dispatch(): Promise<number> {
    await define();
    // Not claimed again in the same breath: somebody else may have a slot.
    if (await returnStale()) return deps.pollIntervalMs;
    const freeByLane = claims.freeByLane();
    if (claims.free() <= 0 || !lease.holds()) return deps.pollIntervalMs;
    const { instanceId } = lease;
    const claimed = await database.run((db) =>
      claimPendingRuns(db, {
        instanceId,
        limit: Math.min(MOST_AT_ONCE, claims.free()),
        freeByLane,
        freePerLane: concurrencyPerLane,
        targetTypes: deps.targets.types,
        openSince: openSpan.since(),
      }),
    );
    backlog = claimed.length > 0 || [...freeByLane.values()].some((free) => free <= 0);
    if (claimed.length === 0) {
      events.emit({ type: 'dispatchIdle' });
      return untilNextDue();
    }
    events.emit({ type: 'runsClaimed', count: claimed.length });
    for (const run of claimed) claims.hold(run.lane);
    accept(claimed);
    return 0;
  }

  /** Nobody tells of a run, or of another attempt, that it has come due. */
  async function untilNextDue(): Promise<number> {
    const asked = { targetTypes: deps.targets.types, openSince: openSpan.since() };
    const ms = await database.run((db) => msUntilNextDue(db, asked));
    return Math.min(deps.pollIntervalMs, Math.ceil(ms ?? Infinity));
  }

  /** Fetches missing definitions, then queues the runs that waited for them. */
  async function define(): Promise<void> {
    if (undefinedYet.length === 0) return;
    // Taken out first: what comes while they are read has not been asked for, and must not be taken for missing.
    const runs = undefinedYet;
    undefinedYet = [];
    const found = await definitions.load(runs).catch((error: unknown) => {
      undefinedYet.push(...runs);
      throw error;
    });
    for (const run of runs) {
      const handoff = found.get(versionKey(run));
      if (handoff) lanes.add({ run, handoff });
      else settle(run, deps.withoutDefinition(run));
    }
  }

  /** Claimed under an id that the others have declared dead. */
  function isForeign(run: ClaimedRun): boolean {
    return run.instanceId !== lease.instanceId;
  }

  /** What was not sent of a claim that is lost is somebody else's now; what is under way goes on, and is settled if it can be. */
  function dropForeign(): void {
    const lost = [
      // First, so that none of them takes the place of one that is dropped.
      ...held.waiting().filter(isForeign),
      ...lanes.takeOut(({ run }) => isForeign(run)).map(({ run }) => run),
      ...undefinedYet.filter(isForeign),
    ];
    undefinedYet = undefinedYet.filter((run) => !isForeign(run));
    for (const run of lost) release(run);
    if (lost.length > 0) events.emit({ type: 'claimsDropped', count: lost.length });
  }

  function accept(runs: readonly ClaimedRun[]): void {
    for (const run of runs) if (held.take(run)) admit(run);
    // Claimed while the instance was declared dead.
    if (runs.some(isForeign)) dropForeign();
  }

  function admit(run: ClaimedRun): void {
    const handoff = accepting ? definitions.known(run) : undefined;
    if (handoff) lanes.add({ run, handoff });
    else {
      undefinedYet.push(run);
      loop.wake();
    }
  }

  /** What has waited too long for its slot is left to whoever has one: another instance, or this one later. */
  async function returnStale(): Promise<boolean> {
    const before = databaseClock.now() - LONGEST_WAIT_MS;
    const stale = lanes.takeOut(({ run }) => run.claimedAt < before);
    if (stale.length === 0) return false;
    try {
      const passedOver = await handBackNow(stale.map(({ run }) => run));
      for (const ready of stale) if (passedOver.has(ready.run.id)) lanes.add(ready);
      return passedOver.size < stale.length;
    } catch (error) {
      // Whether they are handed back is unknown: as old as they are, they are confirmed before they are sent.
      for (const ready of stale) lanes.add(ready);
      throw error;
    }
  }

  async function send({ run, handoff }: { run: ClaimedRun; handoff: Handoff }): Promise<void> {
    pace.began(run.lane);
    const outcome = await deps.attempt(run, handoff, aborting.signal);
    pace.ended(run.lane, outcome.finishedAt - outcome.startedAt);
    settle(run, outcome);
  }

  function settle(run: ClaimedRun, outcome: AttemptSettlement): void {
    settler.add({
      outcome,
      run,
      onSettled: () => release(run),
    });
  }

  function release(run: ClaimedRun): void {
    const next = held.drop(run);
    freeSlot(run.lane);
    if (next) admit(next);
  }

  function freeSlot(lane: string): void {
    claims.release(lane);
    if (backlog) loop.wake();
    if (claims.taken() === 0) for (const resolve of onIdle.splice(0)) resolve();
  }

  async function handBack(): Promise<void> {
    const unsent = [...held.waiting(), ...lanes.takeOut(() => true).map(({ run }) => run), ...undefinedYet];
    undefinedYet = [];
    for (let left = unsent; left.length > 0 && !aborting.signal.aborted;) {
      const passedOver = await untilAborted(() => handBackNow(left));
      left = left.filter(({ id }) => passedOver.has(id));
      if (left.length > 0) await setTimeout(HAND_BACK_RETRY_MS);
    }
  }

  /** Answers those that somebody else has locked at this moment: they are still this instance's. */
  async function handBackNow(unsent: readonly ClaimedRun[]): Promise<ReadonlySet<string>> {
    const { returned, held: passedOver } = await database.run((db) =>
      returnClaimsIfMine(db, unsent.map(claimOf)),
    );
    for (const run of unsent) if (!passedOver.has(run.id)) release(run);
    events.emit({ type: 'runsReturned', count: returned, stopping: !accepting });
    return passedOver;
  }

  /** What is not handed back stays claimed by an instance that is gone, so it is tried for as long as there is time. */
  async function untilAborted<T>(work: () => Promise<T>): Promise<T> {
    for (;;) {
      try {
        return await work();
      } catch (error) {
        if (aborting.signal.aborted) throw error;
        events.emit({ type: 'loopFailed', loop: 'hand back', error, retryInMs: HAND_BACK_RETRY_MS });
        await setTimeout(HAND_BACK_RETRY_MS);
      }
    }
  }

  return {
    ...turningOf(loop),
    stop: async () => {
      accepting = false;
      lanes.pause();
      await loop.stop();
      await handBack();
    },
    reserve: (lane) => accepting && lease.holds() && deps.targets.canSend(lane) && claims.take(lane),
    unreserve: (reserved) => {
      for (const lane of reserved) freeSlot(lane);
    },
    accept,
    wake: () => {
      backlog = true;
      loop.wake();
    },
    inFlight: () => lanes.inFlight(),
    claimed: () => claims.taken(),
    holds: (runId, attempt) => held.holds(runId, attempt),
    drained: () =>
      claims.taken() === 0 ? Promise.resolve() : new Promise((resolve) => onIdle.push(resolve)),
    abort: () => aborting.abort(),
  };
}
