/**
 * Guarantees: a claimed run is sent once per claim, within the shares of its lane, and only while the lease is valid and no
 *   maintenance holds runs; a slow lane delays only itself.
 * Transaction: claiming is one statement; one transaction ends claimed runs of deleted schedules; sending has none.
 * If the process dies here: recovery finds its claims as those of a dead instance.
 */
import { type Turning, createLoop, turningOf } from '../../runtime/loop/loop.ts';
import { type ClaimRequest, NO_ROOM, claimReadyRuns, findClaimable } from '../../store/runs/claims/claims.ts';
import type { ClaimedRun } from '../../store/runs/claims/claimed-run.ts';
import { type ReadyRun, claimIfReady } from '../../store/runs/claims/claim-if-ready.ts';
import { claimDueRuns, findDue } from '../../store/runs/claims/claim-due-runs.ts';
import { acceptUnlessDeleted } from './accept-claimed.ts';
import { ClaimBuffer } from './claim-buffer.ts';
import { ClaimRoom, type Room } from './claim-room.ts';
import type { Dispatch, DispatchDeps } from './dispatch-state.ts';
import { LaneBook } from './lane.ts';
import { Lanes } from './lanes.ts';
import {
  acceptClaims,
  loadMissingDefinitions,
  dropLostClaims,
  handBackAll,
  notifyIfIdle,
  returnStale,
  returnWaiting,
} from './claims.ts';
import { claimUnlessRefused, createRefusedClaims } from './refused-claims.ts';
import { maySend, maySendMany, send } from './send.ts';

export interface Dispatcher extends Turning {
  /** Takes room for a run that is about to be recorded as claimed; false: record it unclaimed. */
  reserve(lane: string): boolean;
  unreserve(lanes: readonly string[]): void;
  /** Sends runs that room is reserved for. */
  accept(runs: readonly ClaimedRun[]): void;
  /** There is a run to claim. */
  wake(): void;
  /** Claims runs that this process has just recorded and sends them, as far as it has room; else they are claimed as all others are. */
  offer(runs: readonly ReadyRun[]): void;
  /** Attempts under way. */
  inFlight(): number;
  /** Claims of this process: under way, waiting for a slot, or not settled yet. */
  claimed(): number;
  /** Whether this process knows of the claim that the run has for that attempt. */
  hasClaim(runId: string, attempt: number): boolean;
  /** Stops claiming and hands back what was not sent; what is under way goes on. */
  stop(): Promise<void>;
  /** Resolves when nothing is under way and all outcomes are written. */
  drained(): Promise<void>;
  /** Aborts what is under way. */
  abort(): void;
}

/** While there is enough to send, few statements fill the room that comes free: each fills a tenth of what is claimed ahead. */
const MIN_INTERVAL_IF_BUSY_MS = 50;
/** Whatever wakes the dispatcher of messages, which are few, it costs the others no more than some statements in a second. */
const MIN_INTERVAL_OF_MESSAGES_MS = 200;
/** Runs that have come due since they were recorded: how many one statement takes, and the most statements of a pass. */
const MAX_DUE_PER_STATEMENT = 125;
const MAX_DUE_STATEMENTS = 8;

export function createDispatcher(deps: DispatchDeps): Dispatcher {
  const dispatch = newDispatch(deps);
  const { book, room, buffer, loop, aborting, onIdle } = dispatch;
  deps.lease.onChange(() => {
    dropLostClaims(dispatch);
    dispatch.lanes.start();
    loop.wake();
  });
  deps.installation.onChange(() => loop.wake());
  return {
    ...turningOf(loop),
    reserve: (lane) =>
      dispatch.accepting && maySendMany(deps) && deps.targets.canSend(lane) && room.take(book.of(lane)),
    unreserve: (lanes) => {
      for (const lane of lanes) book.addClaims(book.of(lane), -1);
      notifyIfIdle(dispatch);
    },
    accept: (runs) => {
      acceptClaims(dispatch, runs);
      if (!dispatch.accepting) void handBackAll(dispatch);
    },
    wake: () => loop.wake(),
    offer: (runs) => void claimOffered(dispatch, runs),
    inFlight: () => book.all.slots,
    claimed: () => book.all.claims,
    hasClaim: (runId, attempt) => buffer.hasClaim(runId, attempt),
    stop: () => stop(dispatch),
    drained: () =>
      new Promise((resolve) => {
        onIdle.push(resolve);
        notifyIfIdle(dispatch);
      }),
    abort: () => aborting.abort(),
  };
}

function newDispatch(deps: DispatchDeps): Dispatch {
  const { clock, concurrency: total, concurrencyPerLane: perLane, events } = deps;
  const book = new LaneBook();
  const aborting = new AbortController();
  const dispatch: Dispatch = {
    deps,
    book,
    room: new ClaimRoom({ book, total, perLane }),
    buffer: new ClaimBuffer(book),
    lanes: new Lanes({
      book,
      clock,
      total,
      perLane,
      send: (claim) => send(dispatch, claim),
      mayStart: () => maySend(deps),
    }),
    loop: createLoop({
      name: deps.name,
      clock,
      body: () => pass(dispatch),
      minMs: () => minIntervalOf(dispatch),
      events,
    }),
    refused: createRefusedClaims(deps),
    aborting,
    onIdle: [],
    accepting: true,
  };
  return dispatch;
}

function minIntervalOf({ deps, book }: Dispatch): number {
  if (deps.name === 'messages') return MIN_INTERVAL_OF_MESSAGES_MS;
  return book.all.waiting > book.silent.waiting ? MIN_INTERVAL_IF_BUSY_MS : 0;
}

async function pass(dispatch: Dispatch): Promise<number> {
  const { deps, lanes } = dispatch;
  await loadMissingDefinitions(dispatch);
  // A lane may have begun to stand still since the last pass. Then it may have the slots for such lanes.
  lanes.start();
  if (deps.installation.holdsRuns() || deps.shortage.mostClaims() === 0) await returnWaiting(dispatch);
  // The returned runs are not claimed again at once: another instance may have a slot.
  if (await returnStale(dispatch)) return deps.pollIntervalMs;
  return claimMore(dispatch);
}

async function claimMore(dispatch: Dispatch): Promise<number> {
  const { deps, room } = dispatch;
  const due = deps.name === 'messages' ? NONE_DUE : await claimDue(dispatch);
  const request = requestOf(dispatch, room.request());
  if (!request) return deps.pollIntervalMs;
  const runs = await claimUnlessRefused(deps, dispatch.refused, {
    claim: (db) => claimReadyRuns(db, request),
    find: (db) => findClaimable(db, request),
  });
  if (runs === null) return 0;
  room.claimed(request, runs);
  await acceptUnlessDeleted(dispatch, runs);
  if (runs.length > 0) return 0;
  return Math.min(deps.pollIntervalMs, Math.ceil(due.msUntilNext ?? Infinity));
}

/** The other dispatcher makes all runs ready, and wakes this one. */
const NONE_DUE = { msUntilNext: null };

/**
 * Claims runs that have come due since they were recorded, or makes them ready. Looks again while it could claim all that it found, and
 * while there is no room for most of it: runs of one lane must not stand before those of the others.
 */
async function claimDue(dispatch: Dispatch): Promise<{ claimed: number; msUntilNext: number | null }> {
  const { deps, room } = dispatch;
  const { wakeWorkers, wakeMessages, lease, targets } = deps;
  const nothing = { ...NO_ROOM, instanceId: lease.instanceId, targetTypes: targets.types };
  let claimed = 0;
  for (let looks = 1; ; looks += 1) {
    const request = {
      ...(requestOf(dispatch, room.requestOfMoving()) ?? nothing),
      ...{ atMost: MAX_DUE_PER_STATEMENT, besides: dispatch.refused.keys() },
    };
    const due = await claimUnlessRefused(deps, dispatch.refused, {
      claim: (db) => claimDueRuns(db, request),
      find: (db) => findDue(db, request),
    });
    if (due === null) return { claimed, msUntilNext: 0 };
    if (due.toPull) wakeWorkers();
    if (due.toNotify) wakeMessages();
    await acceptUnlessDeleted(dispatch, due.claimed);
    claimed += due.claimed.length;
    if (due.count < MAX_DUE_PER_STATEMENT) return { claimed, msUntilNext: due.msUntilNextDue };
    const goesOn = due.claimed.length === due.count || due.blocked * 2 > due.count;
    if (!goesOn || !dispatch.accepting || looks === MAX_DUE_STATEMENTS) return { claimed, msUntilNext: 0 };
  }
}

/** What may be claimed in this room; null: nothing. */
function requestOf({ deps, accepting, refused, book }: Dispatch, free: Room | null): ClaimRequest | null {
  if (!accepting || !free || !maySend(deps)) return null;
  const limit = Math.min(free.limit, deps.shortage.mostClaims() - book.all.claims);
  if (limit <= 0) return null;
  return {
    ...free,
    limit,
    instanceId: deps.lease.instanceId,
    targetTypes: deps.targets.types,
    messages: deps.name === 'messages',
    besides: refused.keys(),
  };
}

async function stop(dispatch: Dispatch): Promise<void> {
  dispatch.accepting = false;
  dispatch.lanes.stop();
  // Hands back at once, without waiting for the pass under way; then hands back what that pass leaves.
  await Promise.all([dispatch.loop.stop(), handBackAll(dispatch)]);
  await handBackAll(dispatch);
}

/**
 * Claims runs that this process has just recorded, by their ids: a search of all lanes would find them later, and cost more the more
 * there is to send. Where there is no room for one, or the claim fails, the loop looks for it.
 */
async function claimOffered(dispatch: Dispatch, offered: readonly ReadyRun[]): Promise<void> {
  const { deps, book, loop } = dispatch;
  const runs = withRoom(dispatch, offered);
  if (runs.length < offered.length) loop.wake();
  if (runs.length === 0) return;
  const ids = runs.map(({ id }) => id);
  const request = { instanceId: deps.lease.instanceId, targetTypes: deps.targets.types };
  const claimed = await deps.database.run((db) => claimIfReady(db, ids, request)).catch(() => []);
  for (const { lane } of runs) book.addClaims(book.of(lane), -1);
  if (claimed.length < runs.length) loop.wake();
  await acceptUnlessDeleted(dispatch, claimed);
  if (!dispatch.accepting) await handBackAll(dispatch);
  notifyIfIdle(dispatch);
}

/** Those for which room was taken: none before the dispatcher is started, or once it stops. */
function withRoom({ deps, accepting, book, room, loop }: Dispatch, offered: readonly ReadyRun[]): ReadyRun[] {
  if (loop.passes() === 0 || !accepting || !maySendMany(deps)) return [];
  return offered.filter(({ lane }) => deps.targets.canSend(lane) && room.takeIfNoneIsLeft(book.of(lane)));
}
