import type { LookupAddress } from 'node:dns';
import { type LookupFunction, isIP, Socket } from 'node:net';
import { type SecureContext, createSecureContext, getCACertificates } from 'node:tls';
import { LRUCache } from 'lru-cache';
import { buildConnector } from 'undici';
import { type EgressProxy, isDirect } from '../config/egress-proxy.ts';
import type { ConnectionTls } from '../core/connections/connection.ts';
import { type Resolve, addressesOf, lookupBy, NameNotResolved, untilClosed } from '../runtime/names/resolve.ts';
import { type AddressGuard, AddressBlocked } from './address-guard.ts';

/** A TCP socket that can be closed by a reset (RST) instead of a normal close. */
export class ResettableSocket extends Socket {
  /**
   * Set while a request is under way: after a normal close, the kernel could still deliver the rest of a request
   * minutes after it was given up.
   */
  resetOnDestroy = false;
  /** What TLS above it failed of after the handshake: undici tells only that the other side closed. */
  tlsError: Error | null = null;
  /** The other side has reset it: undici takes that for the end of an answer that announces none. */
  resetError: Error | null = null;
  #cause: Error | undefined;

  override destroy(error?: Error): this {
    if (isReset(error)) this.resetError = error;
    if (!this.resetOnDestroy) return super.destroy(error ?? this.#cause);
    this.resetOnDestroy = false;
    this.#cause = error;
    // Comes back here, without the error, to destroy.
    return this.resetAndDestroy();
  }
}

function isReset(error: NodeJS.ErrnoException | undefined): error is Error {
  return error?.code === 'ECONNRESET';
}

export type Dial = (options: buildConnector.Options, callback: buildConnector.Callback) => ResettableSocket;

/** PEM texts by which the two ends of a connection know each other. */
export type TlsSettings =
  | ConnectionTls<string>
  /** An authority that is trusted beside the well-known ones. */
  | { alsoTrusted: string };

/** Null: the well-known authorities, and no certificate of our own. */
export type DialWith = (tls: TlsSettings | null) => Dial;

interface DialDeps {
  guard: AddressGuard;
  resolve: Resolve;
  /** All connections but those of its bypass go through it, and it judges names; null: there is none. */
  proxy: EgressProxy | null;
}

/** Each `Dial` that it makes for settings keeps TLS sessions of its own: none made with other credentials is resumed. */
export function createDialWith(deps: DialDeps): DialWith {
  const standard = createDial(deps, buildConnector(CONNECTOR));
  return (tls) => (tls === null ? standard : createDial(deps, secureBy(tls)));
}

const CONNECTOR = { timeout: 0, allowH2: false } as const;

/** Texts that OpenSSL cannot use are a failed connection. */
function secureBy(settings: TlsSettings): buildConnector.connector {
  try {
    return buildConnector({ ...CONNECTOR, secureContext: contextOf(settings) });
  } catch (error) {
    return (_options, callback) => callback(error instanceof Error ? error : new Error(String(error)), null);
  }
}

function contextOf(settings: TlsSettings): SecureContext {
  if ('alsoTrusted' in settings) return besideWellKnown(settings.alsoTrusted);
  const { ca, cert, key } = settings;
  return createSecureContext({
    ...(ca !== null && { ca }),
    ...(cert !== null && { cert }),
    ...(key !== null && { key }),
  });
}

/** Kept, for to parse the well-known authorities takes some 20 ms each time. */
const contexts = new LRUCache<string, SecureContext>({ max: 20 });

function besideWellKnown(ca: string): SecureContext {
  const context = contexts.get(ca) ?? createSecureContext({ ca: [...getCACertificates('default'), ca] });
  contexts.set(ca, context);
  return context;
}

/**
 * Opens connections for undici over TCP sockets that this module controls, also below TLS. There is no time limit here:
 * the attempt has one, and destroys the socket. Each error has a message that says how far the connection came; an
 * AddressBlocked says that there was none.
 */
function createDial(deps: DialDeps, secure: buildConnector.connector): Dial {
  return (options, callback) => {
    const socket = new ResettableSocket();
    let connected = false;
    // Once connected, undici hears of errors by itself; the listener stays, for an error without one ends the process.
    socket.on('error', (error) => {
      if (!connected) callback(connectError(error), null);
    });
    const port = Number(options.port) || (options.protocol === 'https:' ? 443 : 80);
    const destination = { host: options.hostname.replace(/^\[|\]$/g, ''), port };
    const proxy = proxyFor(destination.host, deps.proxy);
    const onOpen = () => {
      connected = true;
      if (options.protocol === 'https:') secure({ ...options, httpSocket: socket }, reportTls(socket, callback));
      else callback(null, socket);
    };
    socket.once('connect', () => {
      if (proxy === null) onOpen();
      else openTunnel(socket, { ...destination, proxy }, onOpen);
    });
    socket.setNoDelay(true).setKeepAlive(true, 60_000);
    void connectJudged(socket, destination, { ...deps, proxy });
    return socket;
  };
}

function proxyFor(host: string, proxy: EgressProxy | null): EgressProxy | null {
  return proxy === null || isDirect(proxy.bypass, host) ? null : proxy;
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
      if (!socket.destroyed) socket.connect({ host: proxy.host, port: proxy.port, autoSelectFamily: true, lookup });
      return;
    }
    const addresses = await addressesOf(host, resolve, closed);
    await guard.judge(
      addresses.map(({ address }) => address),
      port,
    );
    // Given up meanwhile: connecting now would revive it.
    if (!socket.destroyed) socket.connect({ host, port, autoSelectFamily: true, lookup: answering(addresses) });
  } catch (error) {
    socket.destroy(error instanceof Error ? error : new Error(String(error)));
  }
}

/** With `autoSelectFamily`, Node asks for all addresses and tries them in turn. */
function answering(addresses: readonly LookupAddress[]): LookupFunction {
  return (_host, _options, callback) => callback(null, [...addresses]);
}

function reportTls(below: ResettableSocket, callback: buildConnector.Callback): buildConnector.Callback {
  return (...[error, socket]) => {
    if (error === null) {
      socket.once('error', (later: Error) => {
        below.tlsError = later;
        if (isReset(later)) below.resetError = later;
      });
      callback(null, socket);
    } else callback(new Error(`TLS failed: ${plainMessage(error)}`, { cause: error }), null);
  };
}

/** OpenSSL's own message also names a line of its source. */
export function plainMessage(error: Error): string {
  const { library, reason } = error as { library?: unknown; reason?: unknown };
  return library !== undefined && typeof reason === 'string' ? reason : error.message;
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

/** The head of a proxy's answer is small; a larger one comes from no proxy. */
const MAX_HEAD_BYTES = 16 * 1024;
const HEAD_END = '\r\n\r\n';
const FORBIDDEN = 403;

/**
 * Asks the proxy at the other end of this connected socket for a tunnel to `host:port` (RFC 9110, 9.3.6), and calls
 * back once it exists. Without a tunnel, it destroys the socket with the reason: AddressBlocked if the proxy forbids
 * the address.
 */
function openTunnel(
  socket: Socket,
  { host, port, proxy }: { host: string; port: number; proxy: EgressProxy },
  onOpen: () => void,
): void {
  const authority = `${host.includes(':') ? `[${host}]` : host}:${port}`;
  let head = Buffer.alloc(0);
  const onData = (chunk: Buffer) => {
    head = Buffer.concat([head, chunk]);
    const end = head.indexOf(HEAD_END);
    if (end === -1 && head.length <= MAX_HEAD_BYTES) return;
    socket.off('data', onData).off('end', onEnd).pause();
    const refusal = end === -1 ? new Error('the egress proxy did not answer in HTTP') : refusalOf(head, authority);
    if (refusal !== null) {
      socket.destroy(refusal);
      return;
    }
    const rest = head.subarray(end + HEAD_END.length);
    if (rest.length > 0) socket.unshift(rest);
    onOpen();
  };
  const onEnd = () => socket.destroy(new Error('the egress proxy closed the connection'));
  socket.on('data', onData).on('end', onEnd);
  const authorization = proxy.authorization === null ? '' : `Proxy-Authorization: ${proxy.authorization}\r\n`;
  socket.write(`CONNECT ${authority} HTTP/1.1\r\nHost: ${authority}\r\n${authorization}\r\n`);
}

/** Null: the tunnel is open. */
function refusalOf(head: Buffer, authority: string): Error | null {
  const status = Number(/^HTTP\/1\.[01] (\d{3})/.exec(head.toString('latin1'))?.[1]);
  if (status >= 200 && status < 300) return null;
  if (status === FORBIDDEN) return new AddressBlocked(authority, 'the egress proxy forbids it');
  const answered = Number.isNaN(status) ? 'did not answer in HTTP' : `answered ${status}`;
  return new Error(`the egress proxy ${answered}`);
}
