import type { LookupAddress } from 'node:dns';
import { type LookupFunction, type Socket, isIP } from 'node:net';

/**
 * All addresses of a name, in the order in which to try them; the signal ends this caller's waiting.
 * @throws NameNotResolved, or the signal's reason
 */
export type Resolve = (name: string, signal?: AbortSignal) => Promise<readonly LookupAddress[]>;

/** One look-up. It always ends, and at once when the signal aborts. @throws NameNotResolved */
export type LookUp = (
  name: string,
  signal: AbortSignal,
) => Promise<{
  addresses: readonly LookupAddress[];
  /** For how long they may be used. */
  seconds: number;
}>;

/** The addresses of a name; an address stands for itself. */
export async function addressesOf(
  host: string,
  resolve: Resolve,
  signal?: AbortSignal,
): Promise<readonly LookupAddress[]> {
  const family = isIP(host);
  if (family !== 0) return [{ address: host, family }];
  const found = await resolve(host, signal);
  if (found.length === 0) throw hasNoAddress(host);
  return found;
}

/** For `net.connect`, which asks for one address or for all. */
export function lookupBy(resolve: Resolve, signal: AbortSignal): LookupFunction {
  return (host, { all }, callback) => {
    addressesOf(host, resolve, signal).then(
      (found) => {
        if (all === true) callback(null, [...found]);
        else callback(null, found[0]?.address ?? '', found[0]?.family);
      },
      (error: unknown) => callback(error as NodeJS.ErrnoException, []),
    );
  };
}

/** Aborts when the socket closes: then no one waits any more for the addresses that it was to connect to. */
export function untilClosed(socket: Socket): AbortSignal {
  const closed = new AbortController();
  socket.once('close', () => closed.abort(GIVEN_UP));
  return closed.signal;
}

const GIVEN_UP = new Error('the connection was given up');

/** No address was found for a name, so nothing was sent. */
export class NameNotResolved extends Error {
  /** As getaddrinfo has it: there is none, or no source could say. */
  readonly code: 'ENOTFOUND' | 'EAI_AGAIN';

  constructor(code: NameNotResolved['code'], message: string) {
    super(message);
    this.code = code;
  }
}

export function hasNoAddress(name: string): NameNotResolved {
  return new NameNotResolved('ENOTFOUND', `${name} has no address`);
}
