import type { LookupAddress } from 'node:dns';
import { type LookupFunction, Socket, isIP } from 'node:net';
import { buildConnector } from 'undici';
import type { EgressProxy } from '../config/egress-proxy.ts';
import { NameNotResolved } from '../runtime/names/name-not-resolved.ts';
import { type Resolve, addressesOf, lookupBy, untilClosed } from '../runtime/names/resolve.ts';
import { AddressBlocked, type AddressGuard } from './guard/address-guard.ts';
import { openTunnel } from './http-tunnel.ts';

/** A TCP socket that can be closed by a reset (RST) instead of a normal close. */
export class ResettableSocket extends Socket {
  /**
   * Set while a request is under way: after a normal close, the kernel could still deliver the rest of a request
   * minutes after it was given up.
   */
  resetOnDestroy = false;
  #cause: Error | undefined;

  override destroy(error?: Error): this {
    if (!this.resetOnDestroy) return super.destroy(error ?? this.#cause);
    this.resetOnDestroy = false;
    this.#cause = error;
    // Comes back here, without the error, to destroy.
    return this.resetAndDestroy();
  }
}

export type Dial = (options: buildConnector.Options, callback: buildConnector.Callback) => ResettableSocket;

interface DialDeps {
  guard: AddressGuard;
  resolve: Resolve;
  /** All connections go through it, and it judges names; null: there is none. */
  proxy: EgressProxy | null;
}

/**
 * Opens connections for undici over TCP sockets that this module controls, also below TLS. There is no time limit here:
 * the attempt has one, and destroys the socket. Each error has a message that says how far the connection came; an
 * AddressBlocked says that there was none.
 */
export function createDial(deps: DialDeps): Dial {
  // One for all connections: it keeps the TLS sessions to be resumed.
  const secure = buildConnector({ timeout: 0, allowH2: false });

  return (options, callback) => {
    const socket = new ResettableSocket();
    let connected = false;
    // Once connected, undici hears of errors by itself; the listener stays, for an error without one ends the process.
    socket.on('error', (error) => {
      if (!connected) callback(connectError(error), null);
    });
    const port = Number(options.port) || (options.protocol === 'https:' ? 443 : 80);
    const destination = { host: options.hostname.replace(/^\[|\]$/g, ''), port };
    const { proxy } = deps;
    const onOpen = () => {
      connected = true;
      if (options.protocol === 'https:') secure({ ...options, httpSocket: socket }, reportTls(callback));
      else callback(null, socket);
    };
    socket.once('connect', () => {
      if (proxy === null) onOpen();
      else openTunnel(socket, { ...destination, proxy }, onOpen);
    });
    socket.setNoDelay(true).setKeepAlive(true, 60_000);
    void connectJudged(socket, destination, deps);
    return socket;
  };
}

/**
 * Connects exactly to the addresses that were judged, including literal ones. Node by itself would ask the resolver
 * again, which may answer another address by then.
 */
async function connectJudged(
  socket: ResettableSocket,
  { host, port }: { host: string; port: number },
  { guard, resolve, proxy }: DialDeps,
): Promise<void> {
  const closed = untilClosed(socket);
  try {
    if (proxy !== null) {
      // The proxy resolves and judges a name.
      if (isIP(host) !== 0) await guard.judge([host], port);
      const lookup = lookupBy(resolve, closed);
      if (!socket.destroyed)
        socket.connect({ host: proxy.host, port: proxy.port, autoSelectFamily: true, lookup });
      return;
    }
    const addresses = await addressesOf(host, resolve, closed);
    await guard.judge(
      addresses.map(({ address }) => address),
      port,
    );
    // Given up meanwhile: connecting now would revive it.
    if (!socket.destroyed)
      socket.connect({ host, port, autoSelectFamily: true, lookup: answering(addresses) });
  } catch (error) {
    socket.destroy(error instanceof Error ? error : new Error(String(error)));
  }
}

/** With `autoSelectFamily`, Node asks for all addresses and tries them in turn. */
function answering(addresses: readonly LookupAddress[]): LookupFunction {
  return (_host, _options, callback) => callback(null, [...addresses]);
}

function reportTls(callback: buildConnector.Callback): buildConnector.Callback {
  return (...[error, socket]) => {
    if (error === null) callback(null, socket);
    else callback(new Error(`TLS failed: ${error.message}`, { cause: error }), null);
  };
}

function connectError(error: NodeJS.ErrnoException): Error {
  if (error instanceof AddressBlocked) return error;
  // With several addresses the outer message is empty.
  const reason = error instanceof AggregateError ? error.errors.map(messageOf).join('; ') : error.message;
  const step = error instanceof NameNotResolved ? 'name not resolved' : 'connection failed';
  return new Error(`${step}: ${reason}`, { cause: error });
}

function messageOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}
