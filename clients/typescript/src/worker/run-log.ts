import { type Bytes, joined } from '../receiver/signature.ts';
import { isFinal } from './repeat.ts';

/** What a run prints, on its way to the daemon. */
export interface RunLog {
  /** True: there is enough for a part, and the last one could be sent. */
  write: (text: string) => boolean;
  /** Sends what is there, part after part. Rejects as `append` does: once where that is final, and keeps no more from then on. */
  flush: () => Promise<void>;
}

/** The daemon takes no more in one call. */
const PART_BYTES = 65_536;
/** While the daemon is away; then the oldest give way, and their place in the log is a gap. */
const KEPT_BYTES = 262_144;

/** `append` may be called again with an offset that was written already: the daemon then takes what is new. */
export function createRunLog(append: (offset: number, text: string) => Promise<unknown>): RunLog {
  let kept: Bytes = new Uint8Array();
  let offset = 0;
  let last = Promise.resolve();
  let isOff = false;
  let hasFailed = false;
  const forget = (end: number) => {
    kept = kept.subarray(Math.max(0, end - offset));
    offset = Math.max(end, offset);
  };
  const sendAll = async () => {
    while (kept.length > 0) {
      const length = wholeCharacters(kept, PART_BYTES);
      const end = offset + length;
      await append(offset, new TextDecoder().decode(kept.subarray(0, length))).catch((error: unknown) => {
        hasFailed = true;
        isOff = isFinal(error);
        if (isOff) kept = new Uint8Array();
        throw error;
      });
      hasFailed = false;
      forget(end);
    }
  };
  return {
    write: (text) => {
      if (isOff) return false;
      kept = joined(kept, new TextEncoder().encode(text));
      const surplus = kept.length - KEPT_BYTES;
      if (surplus > 0) forget(offset + surplus + continuationsAt(kept, surplus));
      return kept.length >= PART_BYTES && !hasFailed;
    },
    flush: () => {
      const sent = last.then(sendAll);
      last = sent.catch(() => undefined);
      return sent;
    },
  };
}

/** At most so many bytes, and no half of a character. */
function wholeCharacters(bytes: Bytes, most: number): number {
  let length = Math.min(bytes.length, most);
  while (length < bytes.length && length > most - 3 && isContinuation(bytes[length])) length -= 1;
  return length;
}

function continuationsAt(bytes: Bytes, start: number): number {
  let count = 0;
  while (count < 3 && isContinuation(bytes[start + count])) count += 1;
  return count;
}

function isContinuation(byte: number | undefined): boolean {
  return byte !== undefined && (byte & 0xc0) === 0x80;
}
