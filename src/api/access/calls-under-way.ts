/**
 * `prompt`: workers, callbacks and manual fires, which are short. `waits`: it may wait for work, and costs little meanwhile.
 * `slow`: it may take long, and goes one at a time. `usual`: all others.
 */
export type CallPace = 'prompt' | 'waits' | 'slow' | 'usual';

export interface CallsUnderWay {
  /** The function to call once when the call has ended; null: the caller has too many under way. */
  enter(key: string, pace: CallPace): (() => void) | null;
}

/** Of one caller, in one instance. A worker may have many runs, which end at the same moment. */
const MOST: Readonly<Record<Limited, number>> = { usual: 100, prompt: 500, waits: 1000 };

type Limited = Exclude<CallPace, 'slow'>;

export function createCallsUnderWay(most = MOST): CallsUnderWay {
  const counts = new Map<string, number>();
  return {
    enter: (caller, pace) => {
      const limited = pace === 'slow' ? 'usual' : pace;
      const key = `${limited} ${caller}`;
      const count = counts.get(key) ?? 0;
      if (count >= most[limited]) return null;
      counts.set(key, count + 1);
      return () => {
        const left = (counts.get(key) ?? 0) - 1;
        if (left > 0) counts.set(key, left);
        else counts.delete(key);
      };
    },
  };
}
