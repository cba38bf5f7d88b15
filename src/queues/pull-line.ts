/**
 * Guarantees: workers that wait at a queue get its runs in the order in which they asked, by one claim at a time for
 *   all of them; a worker that went away gets none.
 * Transaction: none; this is memory.
 * If the process dies here: workers that waited ask again.
 */
import { isRepeatable, isUnavailable } from '../postgres/errors.ts';
import type { PullAsk, Pulled, PulledRun } from '../store/queues/pull-claims.ts';

export interface PullRequest extends PullAsk {
  queue: string;
  /** Whose worker it is; absent: a caller without a name. */
  caller?: string;
  /** How long to wait for work; 0: not at all. */
  waitSeconds: number;
  /** Aborted when the caller has gone away. */
  signal: AbortSignal;
  /** Aborted when it is to wait no longer, as if its time were up. */
  enough?: AbortSignal;
}

/** The workers that wait at one queue. */
export interface PullLine {
  /**
   * Empty if the time is up, or the worker went away. @throws the error that keeps the database from answering, if it
   * persists
   */
  claim(request: PullRequest): Promise<PulledRun[]>;
  /** There may be work. */
  look(): void;
  waiting(): number;
  /** Answers all workers, with the runs of a claim under way or with none. */
  dismiss(): Promise<void>;
}

interface PullLineDeps {
  /** The runs for each worker. */
  claim: (asks: readonly PullRequest[]) => Promise<Pulled>;
  /** Runs that were claimed for a worker that is gone. */
  takeBack: (runs: readonly PulledRun[]) => void;
  /** Why the database cannot be asked at this moment, as far as is known; null: it can. */
  trouble: () => Error | null;
  /** No worker waits any more. */
  onEmpty: () => void;
}

interface Waiter {
  request: PullRequest;
  /** Its waiting time is up: a claim under way is its last chance. */
  over: boolean;
  /** Called once. */
  answer: (runs: PulledRun[] | Error) => void;
}

/** The most runs in one claim, for all workers together. A single worker may ask for as many. */
const MAX_RUNS = 100;

// oxlint-disable-next-line max-lines-per-function -- a closure: its functions share its state, and are short
export function createPullLine(deps: PullLineDeps): PullLine {
  /** In the order of their arrival. */
  const waiters = new Set<Waiter>();
  /** The workers for which a claim is under way. */
  let served: readonly Waiter[] = [];
  let serving: Promise<void> | undefined;
  let again = false;

  function look(): void {
    again = true;
    serving ??= serve().finally(() => {
      serving = undefined;
      if (waiters.size === 0) deps.onEmpty();
      // A worker has arrived since the last look.
      else if (again) look();
    });
  }

  async function serve(): Promise<void> {
    while (again && waiters.size > 0) {
      again = false;
      const present = [...waiters];
      served = firstOf(present);
      const outcome = await claimFor(served).catch(asError);
      served = [];
      if (outcome === 'more') again = true;
      else tried(present, outcome);
    }
  }

  /** `more`: all of them got what they asked for, or as much as an answer can carry, and there may be more. */
  async function claimFor(asking: readonly Waiter[]): Promise<'more' | null> {
    const { given, isCut } = await deps.claim(asking.map(({ request }) => request));
    let isShort = false;
    for (const [index, waiter] of asking.entries()) {
      const runs = given[index] ?? [];
      if (runs.length < waiter.request.max) isShort = true;
      if (runs.length === 0) continue;
      if (!waiters.has(waiter)) deps.takeBack(runs);
      else end(waiter, runs);
    }
    return isShort && !isCut ? null : 'more';
  }

  /** There was nothing for the remaining workers, or no answer. A worker that may wait goes on waiting if that can help. */
  function tried(present: readonly Waiter[], error: Error | null): void {
    const isPassing = error === null || isUnavailable(error) || isRepeatable(error);
    for (const waiter of present) if (waiter.over || !isPassing) end(waiter, error ?? []);
  }

  function timeIsUp(waiter: Waiter): void {
    waiter.over = true;
    if (!served.includes(waiter)) end(waiter, deps.trouble() ?? []);
  }

  function end(waiter: Waiter, answer: PulledRun[] | Error): void {
    if (!waiters.delete(waiter)) return;
    waiter.answer(answer);
    if (waiters.size === 0 && !serving) deps.onEmpty();
  }

  function join(request: PullRequest, answer: (runs: PulledRun[] | Error) => void): void {
    const { waitSeconds, signal, enough } = request;
    const gone = (): void => end(waiter, []);
    const hasWaited = (): void => timeIsUp(waiter);
    const timer = waitSeconds > 0 ? setTimeout(hasWaited, waitSeconds * 1000) : undefined;
    const waiter: Waiter = {
      request,
      over: waitSeconds === 0 || enough?.aborted === true,
      answer: (given) => {
        clearTimeout(timer);
        signal.removeEventListener('abort', gone);
        enough?.removeEventListener('abort', hasWaited);
        answer(given);
      },
    };
    signal.addEventListener('abort', gone);
    enough?.addEventListener('abort', hasWaited);
    waiters.add(waiter);
    look();
  }

  return {
    claim: async (request) => {
      if (request.signal.aborted) return [];
      const given = await new Promise<PulledRun[] | Error>((resolve) => join(request, resolve));
      if (given instanceof Error) throw given;
      return given;
    },
    look,
    waiting: () => waiters.size,
    dismiss: async () => {
      for (const waiter of [...waiters]) timeIsUp(waiter);
      await serving;
    },
  };
}

/** In their order, as many as one claim serves. */
function firstOf(waiters: readonly Waiter[]): Waiter[] {
  let runs = 0;
  return waiters.filter(({ request }) => (runs += request.max) <= MAX_RUNS);
}

function asError(error: unknown): Error {
  return error instanceof Error ? error : new Error(String(error));
}
