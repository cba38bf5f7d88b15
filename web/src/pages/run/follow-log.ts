import { ApiProblem, getBytes } from '../../api/http.ts';
import { type LogPiece, createLogReader, isForNow } from './log-text.ts';

export interface LogListener {
  pieces(pieces: readonly LogPiece[]): void;
  /** So many bytes were left out here. */
  gap(bytes: number): void;
  /** What may be said of it below. */
  state(text: string): void;
}

const WAIT_SECONDS = 50;
/** After an answer: a run may print all the time. */
const PACE_MS = 500;
const AWAY_MS = 5_000;

/** Follows the log of an attempt until it is over, while the tab is seen; answers what ends that. */
// oxlint-disable-next-line max-lines-per-function -- a closure: its functions share its state, and are short
export function followLog(id: string, attempt: number, listener: LogListener): () => void {
  const reader = createLogReader();
  const path = `/runs/${encodeURIComponent(id)}/log`;
  let [offset, isOver, isFirst] = [0, false, true];
  let asked = new AbortController();
  let timer: ReturnType<typeof setTimeout> | undefined;

  async function ask(signal: AbortSignal): Promise<number | null> {
    // What is there is shown at once, and what may be said of it.
    const query = { attempt, offset, waitSeconds: isFirst ? 0 : WAIT_SECONDS };
    const { body, headers } = await getBytes(path, query, signal);
    if (signal.aborted) return null;
    const said = (name: string) => headers.get(`firelock-log-${name}`);
    const skipped = Number(said('skipped'));
    if (skipped > 0) listener.gap(skipped);
    listener.pieces(reader.take(body));
    offset = Number(said('offset'));
    isOver = said('complete') === 'true';
    isFirst = false;
    listener.state(isOver ? (offset === 0 ? 'It has printed nothing.' : '') : 'It may print more.');
    return isOver ? null : PACE_MS;
  }

  async function once(signal: AbortSignal): Promise<void> {
    const again = await ask(signal).catch((error: unknown) => {
      if (signal.aborted) return null;
      if (!(error instanceof ApiProblem) || isForNow(error.status)) return AWAY_MS;
      listener.state(error.message);
      return null;
    });
    if (again !== null && !signal.aborted && !document.hidden) timer = setTimeout(go, again);
  }

  function go(): void {
    stop();
    asked = new AbortController();
    void once(asked.signal);
  }

  function stop(): void {
    clearTimeout(timer);
    asked.abort();
  }

  function seen(): void {
    // A call that waits takes one of the few connections that a browser has to a server.
    if (document.hidden) stop();
    else if (!isOver) go();
  }
  document.addEventListener('visibilitychange', seen);
  go();
  return () => {
    stop();
    document.removeEventListener('visibilitychange', seen);
  };
}
