/** So many may be taken at once; who waits for one gets it in turn. */
export interface Places {
  /** False where the signal was aborted before there was one. */
  take(signal: AbortSignal): Promise<boolean>;
  /** All that are free now, but no more than that. */
  takeRest(most: number): number;
  give(count?: number): void;
}

export function createPlaces(count: number): Places {
  let free = count;
  const waiting = new Set<() => void>();
  const change = (signal: AbortSignal) =>
    new Promise<void>((resolve) => {
      const done = () => {
        waiting.delete(done);
        signal.removeEventListener('abort', done);
        resolve();
      };
      waiting.add(done);
      signal.addEventListener('abort', done);
    });
  return {
    take: async (signal) => {
      while (free === 0 && !signal.aborted) await change(signal);
      if (signal.aborted) return false;
      free -= 1;
      return true;
    },
    takeRest: (most) => {
      const rest = Math.min(free, most);
      free -= rest;
      return rest;
    },
    give: (more = 1) => {
      free += more;
      for (const done of [...waiting]) done();
    },
  };
}
