import { ADDRCONFIG, type LookupAddress } from 'node:dns';
import { lookup } from 'node:dns/promises';
import { once } from 'node:events';

/** @throws the error of getaddrinfo, or the signal's reason */
export type AskOtherSources = (name: string, signal: AbortSignal) => Promise<readonly LookupAddress[]>;

/**
 * Asks by getaddrinfo, one name at a time: it occupies one of libuv's four threads until it returns, and cannot be
 * cancelled. Who waits for a turn can leave.
 */
export function createOtherSources(ask = getaddrinfo): AskOtherSources {
  let last: Promise<unknown> = Promise.resolve();
  return async (name, signal) => {
    const turn = last.then(() => {
      signal.throwIfAborted();
      return ask(name);
    });
    last = turn.catch(() => undefined);
    const settled = new AbortController();
    try {
      const left = once(signal, 'abort', { signal: settled.signal }).then(() => signal.throwIfAborted());
      await Promise.race([turn, left]);
      return await turn;
    } finally {
      settled.abort();
    }
  };
}

function getaddrinfo(name: string): Promise<readonly LookupAddress[]> {
  return lookup(name, { all: true, hints: process.platform === 'win32' ? 0 : ADDRCONFIG });
}
