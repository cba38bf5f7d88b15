/** How a process ended. */
export interface Exit {
  code: number | null;
  signal: NodeJS.Signals | null;
  /** It could not be started at all. */
  fault?: NodeJS.ErrnoException;
}

/** What the worker did about it: nothing; its time was over; its worker had to stop. */
export type Interruption = 'none' | 'timeout' | 'stopped';

/** What is reported of a run. */
export interface JobEnd {
  status: 'succeeded' | 'failed';
  /** It failed for now. */
  retry?: true;
  error?: string;
  result?: string;
}

export interface EndRules {
  /** Exit codes that say "later", beside EX_TEMPFAIL. */
  retryExits: readonly number[];
  timeoutSeconds: number | null;
}

/** `sysexits.h`: try again later. */
const EX_TEMPFAIL = 75;
/** This machine lacks something at the moment. */
const SHORTAGES = ['EAGAIN', 'ENOMEM', 'EMFILE', 'ENFILE', 'ENOSPC'];
const MEANINGS: Readonly<Record<number, string>> = {
  126: ': the command cannot be executed',
  127: ': there is no such command',
};

/** What this end means for the run, by the exit code or signal. */
export function endOf(exit: Exit, why: Interruption, { retryExits, timeoutSeconds }: EndRules): JobEnd {
  const { code, signal, fault } = exit;
  if (fault) {
    const error = `the command could not be started: ${fault.message}`;
    return SHORTAGES.includes(fault.code ?? '') ? forNow(error) : { status: 'failed', error };
  }
  const how = signal === null ? `exit code ${code ?? 0}` : `ended by ${signal}`;
  if (why === 'timeout') return forNow(`not done after ${timeoutSeconds ?? 0} s: ${how}`);
  if (why === 'stopped') return forNow(`the worker was stopped: ${how}`);
  if (code === 0) return { status: 'succeeded' };
  if (code !== null && (code === EX_TEMPFAIL || retryExits.includes(code))) return forNow(how);
  return { status: 'failed', error: how + (MEANINGS[code ?? 0] ?? '') };
}

function forNow(error: string): JobEnd {
  return { status: 'failed', retry: true, error };
}

/**
 * What a command prints, as far as it is kept: its newest bytes, in as much memory as `capacity` says, however much there is. Offsets
 * count all bytes that it printed.
 */
export interface Printed {
  add(bytes: Uint8Array): void;
  /** The oldest bytes that are kept and were not taken yet, at most so many; null: there are none. */
  next(atMost: number): { offset: number; bytes: Uint8Array<ArrayBuffer> } | null;
  /** All before this offset needs to be kept no longer. */
  taken(offset: number): void;
  /** The last bytes as text, in at most RESULT_BYTES of UTF-8. */
  tail(): string;
}

/** As much as the server keeps of a result. */
const RESULT_BYTES = 4096;

export function createPrinted(capacity: number): Printed {
  let ring: Uint8Array | null = null;
  let [start, end] = [0, 0];
  const copyOf = (from: number, to: number) => {
    const bytes = new Uint8Array(to - from);
    for (let at = from; at < to && ring !== null;) {
      const part = ring.subarray(at % capacity, Math.min(capacity, (at % capacity) + to - at));
      bytes.set(part, at - from);
      at += part.length;
    }
    return bytes;
  };
  return {
    add: (bytes) => {
      ring ??= new Uint8Array(capacity);
      end += bytes.length;
      const kept = bytes.subarray(Math.max(0, bytes.length - capacity));
      const at = (end - kept.length) % capacity;
      const first = kept.subarray(0, capacity - at);
      ring.set(first, at);
      ring.set(kept.subarray(first.length), 0);
      start = Math.max(start, end - capacity);
    },
    next: (atMost) => (start === end ? null : { offset: start, bytes: copyOf(start, Math.min(end, start + atMost)) }),
    taken: (offset) => {
      start = Math.min(end, Math.max(start, offset));
    },
    tail: () => lastText(copyOf(Math.max(0, end - Math.min(capacity, RESULT_BYTES)), end)),
  };
}

/** Bytes that are no UTF-8 become replacement characters, which may be longer than what they replace. */
function lastText(bytes: Uint8Array): string {
  // The cut may have split a character.
  const whole = bytes.length < RESULT_BYTES ? 0 : bytes.findIndex((byte) => (byte & 0xc0) !== 0x80);
  const text = new TextDecoder('utf-8', { ignoreBOM: true }).decode(bytes.subarray(Math.max(0, whole)));
  let [from, length] = [text.length, 0];
  while (from > 0) {
    const character = String.fromCodePoint(text.codePointAt(isLow(text, from - 1) ? from - 2 : from - 1) ?? 0);
    length += Buffer.byteLength(character);
    if (length > RESULT_BYTES) break;
    from -= character.length;
  }
  return text.slice(from);
}

function isLow(text: string, at: number): boolean {
  return (text.charCodeAt(at) & 0xfc00) === 0xdc00;
}
