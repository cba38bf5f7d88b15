/**
 * Guarantees: many open runs of one schedule are ended or marked in slices, so that nothing else waits for them; each schedule has its
 *   turn.
 * Transaction: one for a slice, which says how far it came; a slice that the database refuses is halved, and the run at fault is left out
 *   until the others are done.
 * If the process dies here: the slices that were committed are done; any instance goes on with the next.
 */
import { reasonOf } from '../runtime/reason.ts';
import type { EventBus } from '../runtime/event-bus.ts';
import { type Loop, createLoop } from '../runtime/loop/loop.ts';
import { restAfter } from '../runtime/loop/slices.ts';
import { type Wake, wakeFor } from '../runtime/loop/wake.ts';
import type { LoopDeps } from '../postgres/database.ts';
import { batchFaultOf } from '../postgres/errors.ts';
import {
  type Backlog,
  continueBacklogs,
  deleteBacklogs,
  lockNextBacklogs,
  putOffBacklogs,
} from '../store/backlogs/backlog-rows.ts';
import { endSlice, type Slice, type SliceSize, markSlice } from '../store/backlogs/backlog-slices.ts';
import { putOffSeconds } from './effects.ts';

interface BacklogsDeps extends LoopDeps {
  wake: Wake;
}

/** Runs of a slice. It takes some tens of milliseconds, for which effects and settlements of other schedules may have to wait. */
const MAX_RUNS = 100;
/** Other instances wake their own loop; this finds what a dead one has left. */
const IDLE_MS = 2_000;
/** Before rows that other transactions have locked are tried again. */
const REST_MS = 200;

interface State extends BacklogsDeps {
  /** By the backlog's id: how it goes on after the database refused a slice of it. */
  halved: Map<number, Halved>;
}

interface Halved {
  limit: number;
  besides: readonly string[];
  error: unknown;
}

/** To be woken when some were written. */
export function createBacklogs(deps: BacklogsDeps): Loop {
  const state: State = { ...deps, halved: new Map() };
  return createLoop({
    name: 'backlogs',
    clock: deps.clock,
    events: deps.events,
    body: () => pass(state),
  });
}

async function pass(state: State): Promise<number> {
  const { clock } = state;
  const began = clock.monotonic();
  const isMore = await sliceNext(state);
  return isMore ? restAfter(clock.monotonic() - began) : IDLE_MS;
}

/** What is under way, for when it fails. */
interface Attempted {
  backlogs: readonly Backlog[];
  ids: readonly string[];
}

/** Answers whether there was one. */
async function sliceNext(state: State): Promise<boolean> {
  const attempted: Attempted = { backlogs: [], ids: [] };
  try {
    const slice = await state.database.transaction(async (tx) => {
      attempted.backlogs = await lockNextBacklogs(tx);
      const [first] = attempted.backlogs;
      if (!first) return null;
      const size = sizeOf(state, first, attempted);
      const { backlogs } = attempted;
      const done = first.kind === 'marked' ? await markSlice(tx, backlogs, size) : await endSlice(tx, first, size);
      if (done.isDone) await deleteBacklogs(tx, backlogs);
      else await continueBacklogs(tx, backlogs, { ...done, restMs: done.isBlocked ? REST_MS : 0 });
      return done;
    });
    if (slice) await afterCommit(state, attempted, slice);
    return slice !== null;
  } catch (error) {
    if (batchFaultOf(error) === null) throw error;
    halve(state, attempted, error);
    return true;
  }
}

function sizeOf({ halved }: State, { id }: Backlog, attempted: Attempted): SliceSize {
  const { limit, besides } = halved.get(id) ?? { limit: MAX_RUNS, besides: [] };
  return { limit, besides, noteRuns: (ids) => void (attempted.ids = ids) };
}

async function afterCommit(state: State, { backlogs }: Attempted, slice: Slice): Promise<void> {
  const { events, wake, halved, database } = state;
  const [first] = backlogs;
  if (!first) return;
  emitSlice(events, first, slice);
  wakeFor(wake, slice);
  const half = halved.get(first.id);
  if (!half) return;
  if (slice.changed > 0 && !slice.isDone) {
    halved.set(first.id, { ...half, limit: Math.min(MAX_RUNS, half.limit * 2) });
    return;
  }
  halved.delete(first.id);
  // Only runs that the database refuses are left.
  const putOff = { error: reasonOf(half.error), seconds: putOffSeconds(first) };
  if (!slice.isDone) await database.run((db) => putOffBacklogs(db, backlogs, putOff));
}

/** The next slice is smaller; a run that is refused alone is left out. */
function halve({ halved, events }: State, { backlogs: [first], ids }: Attempted, error: unknown): void {
  if (!first) return;
  const [culprit] = ids.length === 1 ? ids : [];
  const besides = [...(halved.get(first.id)?.besides ?? []), ...(culprit === undefined ? [] : [culprit])];
  halved.set(first.id, { limit: Math.max(1, Math.floor(ids.length / 2)), besides, error });
  if (culprit === undefined) return;
  const { kind, scheduleId, failures } = first;
  const putOff = { error: reasonOf(error), failures: failures + 1, seconds: putOffSeconds(first) };
  events.emit({ type: 'effectPutOff', kind, runId: culprit, scheduleId, ...putOff });
}

function emitSlice(events: EventBus, { kind, scheduleId }: Backlog, { changed: count }: Slice): void {
  if (count === 0 || kind === 'marked') return;
  if (kind === 'deleted') events.emit({ type: 'runsAbandoned', reason: 'deleted', scheduleId, count });
  else events.emit({ type: 'runsCancelled', reason: 'replaced', count });
}
