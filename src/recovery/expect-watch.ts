/**
 * Guarantees: a run that does not keep a bound of `expect` is found within seconds after that passed, once, over any instances; that its
 *   schedule is broken is written in the same commit.
 * Transaction: one for a batch of runs; rows that others have locked are left for the next pass.
 * If the process dies here: the rows say which bounds have passed, and any instance judges them.
 */
import type { Loop } from '../runtime/loop/loop.ts';
import { type Wake, wakeFor } from '../runtime/loop/wake.ts';
import { type WatchDeps, createWatch } from '../postgres/see-to.ts';
import { findPassedBounds, judgePassedBounds } from '../store/runs/bounds.ts';

export function createExpectWatch(deps: WatchDeps & { wake: Wake }): Loop {
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
