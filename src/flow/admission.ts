/**
 * Guarantees: of the runs that name a limit, never more than its `maxRunning` are under way at once; a free place is given soon, by
 *   priority, then due time. A limit that is locked or refused holds up no other, and the limits take turns by their names.
 * Transaction: one for some limits, which locks their rows before it counts.
 * If the process dies here: rows of runs alone say which places are taken; any instance counts them, and gives the free ones.
 */
import { inHalves } from '../runtime/loop/batch.ts';
import { type Loop, createLoop } from '../runtime/loop/loop.ts';
import { reasonOf } from '../runtime/reason.ts';
import { type Wake, wakeFor } from '../runtime/loop/wake.ts';
import type { LoopDeps } from '../postgres/database.ts';
import { batchFaultOf } from '../postgres/errors.ts';
import { admitUnderLock, limitsToAdmit } from '../store/limits/limits.ts';

interface AdmissionDeps extends LoopDeps {
  wake: Wake;
}

/** Finds what other instances recorded or ended without waking this loop. */
const IDLE_MS = 1_000;
/** The least time between two passes, however often the loop is woken: ends in between make one batch. */
const MIN_INTERVAL_MS = 5;
/** Limits in one transaction. */
const BATCH = 50;
/** The wait before limits and runs that others have locked are tried again; it doubles each time. */
const MIN_REST_MS = 10;

interface State extends AdmissionDeps {
  restMs: number;
  /** Where the next look goes on, and what the looks since the first name have found. */
  after: string;
  found: Found;
}

interface Found {
  limits: number;
  admitted: number;
  msUntilNextDue: number;
}

const NOTHING: Found = { limits: 0, admitted: 0, msUntilNextDue: Infinity };

/** To be woken when runs with a limit were recorded, or gave their places up. */
export function createAdmission(deps: AdmissionDeps): Loop {
  const { clock, events } = deps;
  const state: State = { ...deps, restMs: MIN_REST_MS, after: '', found: NOTHING };
  return createLoop({
    name: 'admission',
    clock,
    events,
    body: () => pass(state),
    minMs: () => MIN_INTERVAL_MS,
  });
}

async function pass(state: State): Promise<number> {
  const { database, found, after } = state;
  const { ids, msUntilNextDue, next } = await database.run((db) => limitsToAdmit(db, BATCH, { after }));
  const admitted = ids.length === 0 ? 0 : await admit(state, ids);
  state.events.emit({ type: 'admissionPassed', admitted });
  const all: Found = {
    limits: found.limits + ids.length,
    admitted: found.admitted + admitted,
    msUntilNextDue: Math.min(found.msUntilNextDue, msUntilNextDue ?? Infinity),
  };
  state.after = next ?? '';
  state.found = next === null ? NOTHING : all;
  return next === null ? restAfter(state, all) : 0;
}

/** How long to wait after a look through all names. */
function restAfter(state: State, { limits, admitted, msUntilNextDue }: Found): number {
  const untilNext = Math.ceil(Math.min(IDLE_MS, msUntilNextDue));
  if (limits === 0) return untilNext;
  if (admitted > 0) {
    state.restMs = MIN_REST_MS;
    return 0;
  }
  state.restMs = Math.min(IDLE_MS, state.restMs * 2);
  return Math.min(state.restMs, untilNext);
}

/** Answers how many runs got a place. */
async function admit({ database, events, wake }: State, ids: readonly string[]): Promise<number> {
  let admitted = 0;
  await inHalves(ids, {
    work: async (some) => {
      const { toClaim, toPull } = await database.transaction((tx) => admitUnderLock(tx, some));
      wakeFor(wake, { toClaim, toPull: toPull > 0 });
      admitted += toClaim + toPull;
    },
    faultOf: batchFaultOf,
    setAside: (limitId, error) => events.emit({ type: 'admissionRefused', limitId, error: reasonOf(error) }),
  });
  return admitted;
}
