/**
 * Guarantees: a claimed run is sent once per claim, within the shares of its lane, and only while the lease holds and no
 *   maintenance holds runs; a slow lane delays only itself.
 * Transaction: claiming is one statement; sending has none.
 * If the process dies here: recovery finds its claims as those of a dead instance.
 */
import { type Turning, createLoop, turningOf } from '../../runtime/loop/loop.ts';
import { claimReadyRuns } from '../../store/runs/claims/claims.ts';
import type { ClaimedRun } from '../../store/runs/claims/claimed-run.ts';
import { promoteDueRuns } from '../../store/runs/claims/promote-due-runs.ts';
import { ClaimBuffer } from './claim-buffer.ts';
import { ClaimRoom } from './claim-room.ts';
import type { Dispatch, DispatchDeps } from './dispatch-state.ts';
import { dropForeign, handBackAll, returnStale, returnWaiting } from './hand-back.ts';
import { LaneBook } from './lane.ts';
import { Lanes } from './lanes.ts';
import { acceptClaims, define, send, notifyIfIdle } from './send-claims.ts';

export interface Dispatcher extends Turning {
  /** Takes room for a run that is about to be recorded as claimed; false: record it unclaimed. */
  reserve(lane: string): boolean;
  unreserve(lanes: readonly string[]): void;
  /** Sends runs that room is reserved for. */
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

/** While there is enough to send, few statements fill the room that comes free: each fills a tenth of what is claimed ahead. */
const MIN_MS_IF_BUSY = 50;
/** The most runs that one statement promotes. */
const MAX_PROMOTED = 1_000;

export function createDispatcher(deps: DispatchDeps): Dispatcher {
  const dispatch = newDispatch(deps);
  const { book, room, buffer, loop, aborting, onIdle } = dispatch;
  deps.lease.onChange(() => {
    dropForeign(dispatch);
    dispatch.lanes.start();
    loop.wake();
  });
  deps.maintenance.onChange(() => loop.wake());
  return {
    ...turningOf(loop),
    reserve: (lane) =>
      dispatch.accepting && maySend(deps) && deps.targets.canSend(lane) && room.take(book.of(lane)),
    unreserve: (lanes) => {
      for (const lane of lanes) book.addClaims(book.of(lane), -1);
      notifyIfIdle(dispatch);
    },
    accept: (runs) => {
      acceptClaims(dispatch, runs);
      if (!dispatch.accepting) void handBackAll(dispatch);
    },
    wake: () => loop.wake(),
    inFlight: () => book.all.slots,
    claimed: () => book.all.claims,
    holds: (runId, attempt) => buffer.holds(runId, attempt),
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
      name: 'dispatch',
      clock,
      body: () => pass(dispatch),
      minMs: () => (book.all.waiting > book.stalled.waiting ? MIN_MS_IF_BUSY : 0),
      events,
    }),
    aborting,
    onIdle: [],
    accepting: true,
  };
  return dispatch;
}

function maySend({ lease, maintenance }: DispatchDeps): boolean {
  return lease.holds() && !maintenance.holdsRuns();
}

async function pass(dispatch: Dispatch): Promise<number> {
  const { deps, lanes } = dispatch;
  await define(dispatch);
  // A lane may have begun to stand still since the last pass. Then it may have the slots for such lanes.
  lanes.start();
  if (deps.maintenance.holdsRuns()) await returnWaiting(dispatch);
  // The returned runs are not claimed again at once: another instance may have a slot.
  if (await returnStale(dispatch)) return deps.pollIntervalMs;
  return claimMore(dispatch);
}

async function claimMore(dispatch: Dispatch): Promise<number> {
  const { deps, book, room } = dispatch;
  const { database, events, lease } = deps;
  const msUntilNextDue = await promote(deps);
  const request = room.request();
  if (!dispatch.accepting || !request || !maySend(deps)) return deps.pollIntervalMs;
  const { instanceId } = lease;
  const runs = await database.run((db) =>
    claimReadyRuns(db, { ...request, instanceId, targetTypes: deps.targets.types }),
  );
  room.claimed(request, runs);
  if (runs.length === 0) {
    events.emit({ type: 'dispatchIdle' });
    return Math.min(deps.pollIntervalMs, Math.ceil(msUntilNextDue ?? Infinity));
  }
  events.emit({ type: 'runsClaimed', count: runs.length });
  for (const run of runs) book.addClaims(book.of(run.lane), 1);
  acceptClaims(dispatch, runs);
  return 0;
}

/** Makes runs ready that have come due since they were recorded. Answers in how many ms the next run comes due. */
async function promote({ database, wakeWorkers }: DispatchDeps): Promise<number | null> {
  const { count, toPull, msUntilNextDue } = await database.run((db) => promoteDueRuns(db, MAX_PROMOTED));
  if (toPull) wakeWorkers();
  return count === MAX_PROMOTED ? 0 : msUntilNextDue;
}

async function stop(dispatch: Dispatch): Promise<void> {
  dispatch.accepting = false;
  dispatch.lanes.pause();
  // Hands back at once, without waiting for the pass under way; then hands back what that pass leaves.
  await Promise.all([dispatch.loop.stop(), handBackAll(dispatch)]);
  await handBackAll(dispatch);
}
