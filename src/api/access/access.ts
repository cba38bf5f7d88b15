import type { IncomingHttpHeaders } from 'node:http';
import type { AddressRange } from '../../config/address-ranges.ts';
import type { CallRefusal } from '../../core/access/access-events.ts';
import { type Caller, type RoleNeeded, mayCall } from '../../core/access/roles.ts';
import type { ApiToken } from '../../core/access/token-lines.ts';
import type { Clock } from '../../runtime/clock.ts';
import type { EventBus } from '../../runtime/event-bus.ts';
import { Problem } from '../http/problem.ts';
import { type CallPace, createCallsUnderWay } from './calls-under-way.ts';
import { createRateLimit } from './rate-limit.ts';
import { networkOf, remoteAddressOf } from '../http/remote-address.ts';
import { createTokenRegistry } from './token-registry.ts';
import { createTrustedProxies } from './trusted-proxies.ts';

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
  /**
   * Counts a call of an identified caller, until the function that it answers is called. Callers without names are not
   * told apart, so their calls are not counted.
   * @throws Problem 429
   */
  enter: (request: Request, pace: CallPace) => () => void;
  replaceTokens: (tokens: readonly ApiToken[]) => void;
}

/** The parts of a request that identify its caller. */
interface Request {
  headers: IncomingHttpHeaders;
  socket: { remoteAddress?: string | undefined };
}

/** Whether the API asks callers who they are. */
export function asksWhoCalls({
  apiTokens,
  trustedProxies,
}: Pick<AccessDeps, 'apiTokens' | 'trustedProxies'>) {
  return apiTokens.length > 0 || trustedProxies.length > 0;
}

const ANONYMOUS: Caller = { name: null, role: 'admin' };

const FAILURES_PER_MINUTE = 10;
const MAX_KEYS = 10_000;
const AT_ONCE_WAIT_SECONDS = 1;

/** Decides who calls. Whether callers are asked at all is decided once: a later change of the tokens never opens the API. */
// eslint-disable-next-line max-lines-per-function -- a closure: its functions share its state, and are short
export function createAccess({ clock, events, ...settings }: AccessDeps): Access {
  const { apiTokens, trustedProxies, tokenRequestsPerSecond: perSecond } = settings;
  const isAnonymous = !asksWhoCalls(settings);
  const tokens = createTokenRegistry({ clock, events, tokens: apiTokens });
  const proxies = createTrustedProxies(trustedProxies);
  const failures = createRateLimit({
    clock,
    burst: FAILURES_PER_MINUTE,
    perSecond: FAILURES_PER_MINUTE / 60,
    maxKeys: MAX_KEYS,
  });
  const calls = createRateLimit({ clock, burst: 2 * perSecond, perSecond, maxKeys: MAX_KEYS });
  const underWay = createCallsUnderWay();
  const identified = new WeakMap<Request, Known>();
  const refused = (request: Request, reason: CallRefusal, name: string | null) =>
    events.emit({ type: 'callRefused', reason, address: remoteAddressOf(request.socket), name });

  const fail = (request: Request, reason: CallRefusal): never => {
    const waitSeconds = failures.take(networkOf(remoteAddressOf(request.socket)));
    refused(request, waitSeconds > 0 ? 'tooManyFailures' : reason, null);
    throw waitSeconds > 0 ? tooMany('too many calls without a valid token', waitSeconds) : unauthorized();
  };
  return {
    replaceTokens: (present) => tokens.replace(present),
    identify: (request) => {
      if (isAnonymous) return ANONYMOUS;
      const proxied = proxies.callerOf(remoteAddressOf(request.socket), request.headers);
      const find = (sent: string) => tokens.find(sent);
      const found = proxied === null ? fromToken(request, find) : fromProxy(proxied);
      if ('refused' in found) return fail(request, found.refused);
      const waitSeconds = calls.take(found.key);
      identified.set(request, found);
      if (waitSeconds === 0) return found.caller;
      refused(request, 'tooManyCalls', found.caller.name);
      throw tooMany('too many calls in a short time', waitSeconds);
    },
    enter: (request, pace) => {
      const known = identified.get(request);
      if (known === undefined) return () => undefined;
      const leave = underWay.enter(known.key, pace);
      if (leave !== null) return leave;
      refused(request, 'tooManyAtOnce', known.caller.name);
      throw tooMany('too many calls are in progress', AT_ONCE_WAIT_SECONDS);
    },
    authorize: (request, { name, role }, needed) => {
      if (mayCall(role, needed)) return;
      refused(request, 'role', name);
      throw new Problem(403, `this call needs the role ${needed}; yours is ${role}`);
    },
  };
}

/** `key`: the limits count by it. */
interface Known {
  caller: Caller;
  key: string;
}

type Identified = Known | { refused: CallRefusal };

function fromProxy(proxied: Caller | 'unusable'): Identified {
  if (proxied === 'unusable') return { refused: 'proxyHeaders' };
  return { caller: proxied, key: `user ${proxied.name ?? ''}` };
}

function fromToken(
  { headers }: Request,
  find: (sent: string) => { token: ApiToken } | { refused: CallRefusal },
): Identified {
  if (headers.authorization === undefined) return { refused: 'missing' };
  const [, sent] = /^Bearer +(\S+)$/i.exec(headers.authorization) ?? [];
  if (sent === undefined) return { refused: 'malformed' };
  const found = find(sent);
  if ('refused' in found) return found;
  const { name, role, hash } = found.token;
  return { caller: { name, role }, key: `token ${hash.toString('hex')}` };
}

/** The same answer for every reason. Only the owner of a token should learn what is wrong with it, and the log says it. */
function unauthorized(): Problem {
  const detail = 'this call needs a valid token: Authorization: Bearer TOKEN';
  return new Problem(401, detail, { headers: { 'WWW-Authenticate': 'Bearer' } });
}

function tooMany(detail: string, waitSeconds: number): Problem {
  return new Problem(429, detail, { headers: { 'Retry-After': String(waitSeconds) } });
}
