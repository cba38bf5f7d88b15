/**
 * Guarantees: a run that does not keep a bound of `expect`, or has waited longer than its `expiresAfterSeconds`, is found within seconds,
 *   once, over any instances. Of the first, the same commit says that its schedule is broken; the second ends, whatever it waits for, and
 *   no claim takes it meanwhile: claims look at the same moment of their run.
 * Transaction: one for a batch of runs, with what follows; rows that others have locked are left for the next pass.
 * If the process dies here: the rows say which bounds have passed, and which runs have ended; any instance goes on.
 */
import type { Loop } from '../runtime/loop/loop.ts';
import { type Wake, wakeFor } from '../runtime/loop/wake.ts';
import { type WatchDeps, createWatch } from '../postgres/see-to.ts';
import { endIfExpired, findExpired } from '../store/runs/begin-by.ts';
import { findPassedBounds, judgePassedBounds } from '../store/runs/bounds.ts';

interface WakingDeps extends WatchDeps {
  wake: Wake;
}

export function createExpectWatch(deps: WakingDeps): Loop {
  const { database, events, wake } = deps;
  return createWatch(deps, {
    name: 'expect-watch',
    find: findPassedBounds,
    work: async (runIds) => {
      const effects = await database.transaction((tx) => judgePassedBounds(tx, runIds));
      wakeFor(wake, { effects });
      return effects;
    },
    refused: (runId, error) => events.emit({ type: 'boundRefused', runId, error }),
    limit: 500,
    // The API promises that it is noticed within ten seconds. A full batch leaves time for others.
    everyMs: 4_000,
    moreMs: 100,
  });
}

export function createWaitingWatch(deps: WakingDeps): Loop {
  return createWatch(deps, {
    name: 'waiting-watch',
    find: findExpired,
    work: (runIds) => end(deps, runIds),
    refused: (runId, error) => deps.events.emit({ type: 'expiryRefused', runId, error }),
    // Each may carry a payload of 64 KiB.
    limit: 200,
    everyMs: 2_000,
    moreMs: 0,
  });
}

/** Answers how many have ended. */
async function end({ database, events, wake }: WakingDeps, ids: readonly string[]): Promise<number> {
  const { changes, effects } = await database.transaction((tx) => endIfExpired(tx, ids));
  if (changes.length === 0) return 0;
  const ofStatus = (status: string) => changes.filter(({ to }) => to.status === status);
  const counts = { failed: ofStatus('failed').length, unknown: ofStatus('unknown').length };
  const skipped = ofStatus('skipped').length;
  if (skipped > 0) events.emit({ type: 'runsSkipped', reason: 'expired', count: skipped });
  if (skipped < changes.length) {
    const runIds = changes.filter(({ to }) => to.status !== 'skipped').map(({ to }) => to.id);
    events.emit({ type: 'waitingExpired', ...counts, runIds: runIds.slice(0, MAX_NAMED) });
  }
  wakeFor(wake, { effects, toAdmit: changes.some(({ from }) => from.limitId !== null) });
  return changes.length;
}

const MAX_NAMED = 10;
