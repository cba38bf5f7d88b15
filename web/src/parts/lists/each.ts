import { ApiProblem, Away } from '../../api/http.ts';

/** What became of things that were acted on one by one. */
export interface EachOutcome {
  done: readonly string[];
  failed: readonly { id: string; why: string }[];
  /** Nothing was asked of them: it was stopped, or the daemon takes no more calls for now. */
  left: readonly string[];
}

interface Course {
  /** After each of them. */
  onProgress: (settled: number) => void;
  isStopped: () => boolean;
}

/** Statuses that say nothing of the one that was asked for: the next call would be answered alike. */
const OF_THE_CALLER: readonly number[] = [401, 429];

/**
 * Acts on each, one after the other. What is wrong with the request itself (it names fields) is thrown at the first of them,
 * as nothing is done by then.
 */
export async function actOnEach<Thing extends { id: string }>(
  things: readonly Thing[],
  act: (thing: Thing) => Promise<void>,
  { onProgress, isStopped }: Course,
): Promise<EachOutcome> {
  const done: string[] = [];
  const failed: { id: string; why: string }[] = [];
  const outcome = (settled: number): EachOutcome => ({
    done,
    failed,
    left: things.slice(settled).map(({ id }) => id),
  });
  for (const [index, thing] of things.entries()) {
    if (isStopped()) return outcome(index);
    try {
      await act(thing);
      done.push(thing.id);
    } catch (error) {
      if (!(error instanceof ApiProblem || error instanceof Away)) throw error;
      if (index === 0 && error instanceof ApiProblem && error.faults.length > 0) throw error;
      failed.push({ id: thing.id, why: error.message });
      if (error instanceof Away || OF_THE_CALLER.includes(error.status)) return outcome(index + 1);
    }
    onProgress(index + 1);
  }
  return outcome(things.length);
}
