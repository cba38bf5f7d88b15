import type { Claimed } from './claimed-runs.ts';
import { pause } from './patience.ts';
import type { WorkCalls } from './work-calls.ts';

export interface RunLease {
  /** Aborted when the server says that the run is not ours any more: cancelled, or with another worker; the reason says how. */
  readonly lost: AbortSignal;
  stop(): void;
}

/** By then a cancelled command learns of it, however long the lease is. */
const MOST_MS = 10_000;
/** A server that is back gives its runs little time to report. */
const AWAY_MS = 3_000;

/**
 * Heartbeats, at a third of the lease at most. Only a refusal ends it: while the server is silent the work goes on, and whether the lease
 * was lost meanwhile is said when it is back.
 */
export function keepLease(
  run: Claimed,
  { calls, leaseSeconds }: { calls: Pick<WorkCalls, 'heartbeat'>; leaseSeconds: number },
): RunLease {
  const lost = new AbortController();
  const over = new AbortController();
  const everyMs = Math.min(MOST_MS, (leaseSeconds * 1000) / 3);
  const beat = async (): Promise<void> => {
    let waitMs = everyMs;
    while (!over.signal.aborted && !lost.signal.aborted) {
      await pause(waitMs, over.signal);
      const said = await calls.heartbeat(run, over.signal);
      waitMs = said.kind === 'done' ? everyMs : Math.min(everyMs, AWAY_MS);
      if (said.kind === 'refused' && said.status !== 400) lost.abort(said.detail);
    }
  };
  void beat();
  return { lost: lost.signal, stop: () => over.abort() };
}
