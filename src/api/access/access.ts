import type { IncomingHttpHeaders } from 'node:http';
import type { AddressRange } from '../../config/address-ranges.ts';
import type { CallRefusal } from '../../core/access/access-events.ts';
import { type Caller, type RoleNeeded, mayCall } from '../../core/access/roles.ts';
import type { ApiToken } from '../../core/access/token.ts';
import type { Clock } from '../../runtime/clock.ts';
import type { EventBus } from '../../runtime/event-bus.ts';
import { Problem } from '../http/problem.ts';
import {
  type CallPace,
  type CallsUnderWay,
  type RateLimit,
  createCallsUnderWay,
  createRateLimit,
} from './call-limits.ts';
import { networkOf, remoteAddressOf } from '../http/remote-address.ts';
import { type TokenRegistry, type TrustedProxies, createTokenRegistry, createTrustedProxies } from './known-callers.ts';

export interface AccessDeps {
  clock: Clock;
  events: EventBus;
  /** Neither tokens nor proxies are configured: the API does not ask callers who they are. */
  apiTokens: readonly ApiToken[];
  trustedProxies: readonly AddressRange[];
  /** The rate for one token, or for one user whom a proxy names; twice as many at once. */
  tokenRequestsPerSecond: number;
}

export interface Access {
  /** @throws Problem 401, 429 */
  identify: (request: Request) => Caller;
  /** @throws Problem 403 */
  authorize: (request: Request, caller: Caller, needed: RoleNeeded) => void;
  /** Notes that a call of a known caller was refused, and why. */
  refuse: (request: Request, caller: Caller, reason: CallRefusal) => void;
  /**
   * Counts a call of an identified caller, until the function that it answers is called. Callers without names are not
   * told apart, so their calls are not counted.
   * @throws Problem 429
   */
  enter: (request: Request, pace: CallPace) => () => void;
  /** Counts what an identified caller appends to logs, as `enter` counts its calls. @throws Problem 429 */
  takeLogBytes: (request: Request, caller: Caller, bytes: number) => void;
  /**
   * Whether what allowed a call that goes on is still so: `changed` if its token has another role or scope by now; the problem to answer
   * with if it was revoked or has expired.
   */
  standing: (request: Request) => 'same' | 'changed' | Problem;
  /** Of the token by which the caller was identified; null: by none. */
  tokenHashOf: (request: Request) => Buffer | null;
  replaceTokens: (tokens: readonly ApiToken[]) => void;
}

/** The parts of a request that identify its caller. */
interface Request {
  headers: IncomingHttpHeaders;
  socket: { remoteAddress?: string | undefined };
}

/** Whether the API asks callers who they are. */
export function asksWhoCalls({ apiTokens, trustedProxies }: Pick<AccessDeps, 'apiTokens' | 'trustedProxies'>) {
  return apiTokens.length > 0 || trustedProxies.length > 0;
}

const ANONYMOUS: Caller = { name: null, role: 'admin', scope: null };

const FAILURES_PER_MINUTE = 10;
const MAX_KEYS = 10_000;
const AT_ONCE_WAIT_SECONDS = 1;
/** Of one caller, in one instance. */
const LOG_BYTES_PER_SECOND = 4 * 1024 * 1024;

interface State {
  /** Decided once: a later change of the tokens never opens the API. */
  isAnonymous: boolean;
  events: EventBus;
  tokens: TokenRegistry;
  proxies: TrustedProxies;
  failures: RateLimit;
  calls: RateLimit;
  logBytes: RateLimit;
  underWay: CallsUnderWay;
  identified: WeakMap<Request, Known>;
}

/** Decides who calls. */
export function createAccess({ clock, events, ...settings }: AccessDeps): Access {
  const { apiTokens, trustedProxies, tokenRequestsPerSecond: perSecond } = settings;
  const limitTo = (burst: number, perSecond: number) => createRateLimit({ clock, burst, perSecond, maxKeys: MAX_KEYS });
  const state: State = {
    isAnonymous: !asksWhoCalls(settings),
    events,
    tokens: createTokenRegistry({ clock, events, tokens: apiTokens }),
    proxies: createTrustedProxies(trustedProxies),
    failures: limitTo(FAILURES_PER_MINUTE, FAILURES_PER_MINUTE / 60),
    calls: limitTo(2 * perSecond, perSecond),
    logBytes: limitTo(LOG_BYTES_PER_SECOND, LOG_BYTES_PER_SECOND),
    underWay: createCallsUnderWay(),
    identified: new WeakMap(),
  };
  return {
    replaceTokens: (present) => state.tokens.replace(present),
    tokenHashOf: (request) => state.identified.get(request)?.token?.hash ?? null,
    identify: (request) => (state.isAnonymous ? ANONYMOUS : identify(state, request)),
    refuse: (request, { name }, reason) => emitRefused(state, request, reason, name),
    enter: (request, pace) => enter(state, request, pace),
    takeLogBytes: (...taken) => takeLogBytes(state, ...taken),
    standing: (request) => standing(state, request),
    authorize: (request, { name, role }, needed) => {
      if (mayCall(role, needed)) return;
      emitRefused(state, request, 'role', name);
      throw new Problem(403, `this call needs the role ${needed}; yours is ${role}`);
    },
  };
}

function identify(state: State, request: Request): Caller {
  const found = findCaller(state, request);
  if ('refused' in found) {
    const seconds = state.failures.take(networkOf(remoteAddressOf(request.socket)));
    emitRefused(state, request, seconds > 0 ? 'tooManyFailures' : found.refused, null);
    throw seconds > 0 ? tooMany('too many calls without a valid token', seconds) : unauthorized();
  }
  const waitSeconds = state.calls.take(found.key);
  state.identified.set(request, found);
  if (waitSeconds === 0) return found.caller;
  emitRefused(state, request, 'tooManyCalls', found.caller.name);
  throw tooMany('too many calls in a short time', waitSeconds);
}

function enter(state: State, request: Request, pace: CallPace): () => void {
  const known = state.identified.get(request);
  if (known === undefined) return () => undefined;
  const leave = state.underWay.enter(known.key, pace);
  if (leave !== null) return leave;
  emitRefused(state, request, 'tooManyAtOnce', known.caller.name);
  throw tooMany('too many calls are in progress', AT_ONCE_WAIT_SECONDS);
}

function takeLogBytes(state: State, request: Request, { name }: Caller, bytes: number): void {
  const known = state.identified.get(request);
  const waitSeconds = known === undefined ? 0 : state.logBytes.take(known.key, bytes);
  if (waitSeconds === 0) return;
  emitRefused(state, request, 'tooManyCalls', name);
  throw tooMany('too many bytes of logs in a short time', waitSeconds);
}

function standing(state: State, request: Request): ReturnType<Access['standing']> {
  const known = state.identified.get(request);
  if (!known?.token) return 'same';
  const now = state.tokens.now(known.token);
  if (now === 'same' || now === 'changed') return now;
  emitRefused(state, request, now, known.caller.name);
  return unauthorized();
}

function emitRefused({ events }: State, { socket }: Request, reason: CallRefusal, name: string | null): void {
  events.emit({ type: 'callRefused', reason, address: remoteAddressOf(socket), name });
}

/** `key`: the limits count by it. */
interface Known {
  caller: Caller;
  key: string;
  /** Null: a proxy has named the caller. */
  token: ApiToken | null;
}

function findCaller({ tokens, proxies }: State, request: Request): Known | { refused: CallRefusal } {
  const { headers, socket } = request;
  const proxied = proxies.callerOf(remoteAddressOf(socket), headers);
  if (proxied === 'unusable') return { refused: 'proxyHeaders' };
  if (proxied !== null) return { caller: proxied, key: `user ${proxied.name ?? ''}`, token: null };
  const session = tokenHashes.get(request);
  if (headers.authorization === undefined && session === undefined) return { refused: 'missing' };
  const [, sent] = /^Bearer +(\S+)$/i.exec(headers.authorization ?? '') ?? [];
  if (sent === undefined && session === undefined) return { refused: 'malformed' };
  const found = session ? tokens.findByHash(session) : tokens.find(sent ?? '');
  if ('refused' in found) return found;
  const { token } = found;
  const { name, role, scope, hash } = token;
  return { caller: { name, role, scope }, key: `token ${hash.toString('hex')}`, token };
}

/** The same answer for every reason. Only the owner of a token should learn what is wrong with it, and the log says it. */
function unauthorized(): Problem {
  const detail = 'this call needs a valid token: Authorization: Bearer TOKEN';
  return new Problem(401, detail, { headers: { 'WWW-Authenticate': 'Bearer' } });
}

export function tooMany(detail: string, waitSeconds: number): Problem {
  return new Problem(429, detail, { headers: { 'Retry-After': String(waitSeconds) } });
}

/** By request: the hash of the token that its cookie stands for. */
const tokenHashes = new WeakMap<object, Buffer>();

export function noteSession(request: object, tokenHash: Buffer): void {
  tokenHashes.set(request, tokenHash);
}
