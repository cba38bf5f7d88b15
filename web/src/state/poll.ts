import { useEffect, useRef, useState } from 'preact/hooks';
import { ApiProblem, Away } from '../api/http.ts';
import { mustLogIn } from './session.ts';

export interface Polled<T> {
  /** The last answer; undefined until there is one. While the daemon is away the last one stays. */
  data: T | undefined;
  /** Why the last question was refused; an absent daemon is no refusal (see state/reach.ts). */
  problem: ApiProblem | undefined;
  /** Asks now. */
  refresh: () => void;
  /** The data answer the question before this one; see `keep`. */
  isStale: boolean;
}

interface Options<T> {
  everyMs?: number;
  /** Instead, where what was answered says how soon it may change. */
  paceOf?: (data: T) => number;
  /** Shows the answer to the old question until the new one is answered: of lists whose filter changes. */
  keep?: boolean;
}

const EVERY_MS = 5_000;
const MAX_MS = 30_000;

/**
 * Asks at once, again every few seconds while the tab is seen, and not at all otherwise. Without an answer it asks less
 * and less often. `key` says what is asked: another key is another question, and what was answered to the old one goes.
 */
export function usePoll<T>(
  key: string,
  ask: (signal: AbortSignal) => Promise<T>,
  { everyMs = EVERY_MS, paceOf, keep = false }: Options<T> = {},
): Polled<T> {
  const [state, setState] = useState<{ key: string; data?: T; problem?: ApiProblem }>({ key });
  const latest = useRef(ask);
  latest.current = ask;
  const refresh = useRef<() => void>(() => undefined);
  useEffect(() => {
    const asking = startAsking(
      (signal) => latest.current(signal),
      (answer) => {
        setState({ key, ...answer });
      },
      (answered) => (answered !== undefined && paceOf ? paceOf(answered) : everyMs),
    );
    refresh.current = asking.now;
    return asking.stop;
  }, [key, everyMs]);
  const isStale = state.key !== key;
  const { data, problem } = isStale && !keep ? {} : state;
  return { data, problem, isStale, refresh: () => refresh.current() };
}

function startAsking<T>(
  ask: (signal: AbortSignal) => Promise<T>,
  tell: (answer: { data?: T; problem?: ApiProblem }) => void,
  paceOf: (data: T | undefined) => number,
): { now: () => void; stop: () => void } {
  let timer: ReturnType<typeof setTimeout> | undefined;
  let asked = new AbortController();
  let data: T | undefined;
  let failures = 0;
  const now = (): void => {
    clearTimeout(timer);
    asked.abort();
    asked = new AbortController();
    void once(asked.signal);
  };
  const once = async (signal: AbortSignal): Promise<void> => {
    const answer = await settled(ask, signal);
    if (signal.aborted) return;
    failures = 'away' in answer || 'problem' in answer ? failures + 1 : 0;
    if ('data' in answer) data = answer.data;
    if (!('away' in answer)) tell({ ...(data !== undefined && { data }), ...('problem' in answer && answer) });
    if (document.hidden || mustLogIn.value) return;
    timer = setTimeout(now, failures === 0 ? paceOf(data) : Math.min(MAX_MS, 1000 * 2 ** failures));
  };
  const seen = (): void => {
    if (document.hidden) clearTimeout(timer);
    else now();
  };
  document.addEventListener('visibilitychange', seen);
  now();
  return {
    now,
    stop: () => {
      clearTimeout(timer);
      asked.abort();
      document.removeEventListener('visibilitychange', seen);
    },
  };
}

async function settled<T>(
  ask: (signal: AbortSignal) => Promise<T>,
  signal: AbortSignal,
): Promise<{ data: T } | { problem: ApiProblem } | { away: true }> {
  try {
    return { data: await ask(signal) };
  } catch (error) {
    if (error instanceof ApiProblem) return { problem: error };
    if (error instanceof Away || signal.aborted) return { away: true };
    throw error;
  }
}
