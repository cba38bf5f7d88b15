import type { Claimed } from './claimed-runs.ts';
import { backOffMs, pause } from './patience.ts';
import type { Printed } from './printed.ts';
import type { WorkCalls } from './work-calls.ts';

/** Appends what a command prints to the log of its run, while it goes. */
export interface LogSender {
  /** The command has printed something. */
  more(): void;
  /** It prints no more. */
  finish(): void;
  /** The server has all that there was to be had; or it wants none. */
  readonly done: Promise<void>;
}

/** Of one call; the server takes no more. */
const PART_BYTES = 64 * 1024;
/** What is printed meanwhile goes with the same call. */
const GATHER_MS = 300;

/**
 * One call at a time, in order. What got no answer is sent again from the same offset; if more is printed meanwhile than `printed` keeps,
 * it goes on further ahead, and the server counts the gap.
 */
export function sendLog(run: Claimed, printed: Printed, calls: Pick<WorkCalls, 'append'>): LogSender {
  const finished = new AbortController();
  let news = Promise.withResolvers<null>();
  const send = async (): Promise<void> => {
    for (let failures = 0; ;) {
      const part = printed.next(PART_BYTES);
      if (part === null) {
        if (finished.signal.aborted) return;
        await news.promise;
        await pause(GATHER_MS, finished.signal);
        continue;
      }
      const said = await calls.append(run, part.offset, part.bytes);
      // Refused: the run is not ours any more, or it has been over for too long; its heartbeat says which.
      if (said.kind === 'refused' || said.kind === 'unknown') return;
      if (said.kind === 'done') printed.taken(part.offset + part.bytes.length);
      failures = said.kind === 'done' ? 0 : failures + 1;
      if (failures > 0) await pause(backOffMs(failures, Math.random()));
      else if (part.bytes.length < PART_BYTES) await pause(GATHER_MS, finished.signal);
    }
  };
  return {
    more: () => {
      news.resolve(null);
      news = Promise.withResolvers();
    },
    finish: () => {
      finished.abort();
      news.resolve(null);
    },
    done: send(),
  };
}
