import type { IncomingHttpHeaders, IncomingMessage } from 'node:http';
import { type AllowedHosts, isAllowedHost, withOwnHosts } from '../../config/address-ranges.ts';
import type { CallRefusal } from '../../core/access/access-events.ts';
import type { Clock } from '../../runtime/clock.ts';
import type { EventBus } from '../../runtime/event-bus.ts';
import { Problem } from '../http/problem.ts';
import { type AccessDeps, asksWhoCalls } from './access.ts';
import { createRateLimit } from './call-limits.ts';
import { networkOf, remoteAddressOf } from '../http/remote-address.ts';
import { createTrustedProxies } from './known-callers.ts';

export interface BrowserRulesDeps extends Pick<AccessDeps, 'apiTokens' | 'trustedProxies'> {
  clock: Clock;
  events: EventBus;
  /** What the daemon listens on. */
  host: string;
  allowedHosts: AllowedHosts;
}

/** The problem (403) of a request that may come from a page of another site; null: it may go on. */
export type BrowserRules = (request: RuledRequest) => Problem | null;

type RuledRequest = Pick<IncomingMessage, 'method' | 'url' | 'headers'> & {
  socket: { remoteAddress?: string | undefined };
};

interface Refusal {
  reason: CallRefusal;
  /** What the request sent, for the log. */
  sent: string;
  detail: string;
}

/**
 * A browser calls any address for any page, from the machine of its user, who may be allowed much. Without tokens, a name
 * that a stranger points at this machine (DNS rebinding) is refused, and so is what a proxy passes on. With or without
 * tokens, a page of another site may not change anything.
 */
export function createBrowserRules({ clock, events, ...settings }: BrowserRulesDeps): BrowserRules {
  const isAnonymous = !asksWhoCalls(settings);
  const hosts = withOwnHosts(settings.host, settings.allowedHosts);
  const proxies = createTrustedProxies(settings.trustedProxies);
  const lines = createRateLimit({ clock, burst: 10, perSecond: 10 / 60, maxKeys: 10_000 });
  return (request) => {
    const address = remoteAddressOf(request.socket);
    const refusal =
      (isAnonymous ? (foreignHost(request, hosts) ?? proxyMark(request.headers)) : null) ??
      otherSite(request, proxies.isOne(address));
    if (refusal === null) return null;
    const { reason, detail } = refusal;
    const isOneOfMany = lines.take(networkOf(address)) > 0;
    events.emit({
      type: 'callRefused',
      reason,
      address,
      name: null,
      sent: shortened(refusal.sent),
      isOneOfMany,
    });
    return new Problem(403, detail);
  };
}

function foreignHost({ headers, url = '' }: RuledRequest, hosts: AllowedHosts): Refusal | null {
  // A target in absolute form goes before the Host (RFC 9112, 3.2.2); no client has a reason to send two that differ.
  const named = [headers.host ?? '', authorityOfTarget(url) ?? headers.host ?? ''];
  const foreign = named.find((text) => {
    const authority = parseAuthority(text);
    return authority === null || !isAllowedHost(authority.host, hosts);
  });
  if (foreign === undefined) return null;
  const detail =
    `the Host of this request (${shortened(foreign)}) is not a name of this server: add it to FIRELOCK_ALLOWED_HOSTS, ` +
    'or require tokens (FIRELOCK_API_TOKENS)';
  return { reason: 'foreignHost', sent: `Host: ${foreign}`, detail };
}

const PROXY_MARKS = ['forwarded', 'x-real-ip', 'via'];

function proxyMark(headers: IncomingHttpHeaders): Refusal | null {
  const mark = Object.keys(headers).find((name) => name.startsWith('x-forwarded-') || PROXY_MARKS.includes(name));
  if (mark === undefined) return null;
  const detail =
    `this request came through a proxy (it has the header ${shortened(mark)}), and without tokens each client of the ` +
    'proxy could do everything: set FIRELOCK_API_TOKENS, FIRELOCK_API_TOKENS_FILE or FIRELOCK_TRUSTED_PROXY_CIDRS';
  return { reason: 'proxyMark', sent: mark, detail };
}

const READING = ['GET', 'HEAD', 'OPTIONS'];

function otherSite({ method = '', headers }: RuledRequest, isFromProxy: boolean): Refusal | null {
  if (READING.includes(method)) return null;
  const { origin, host = '', 'sec-fetch-site': site = 'none' } = headers;
  const refused = (sent: string, rule: string): Refusal => ({
    reason: 'otherSite',
    sent,
    detail: `a page of another site may not change anything here: ${rule}`,
  });
  if (site !== 'none' && site !== 'same-origin')
    return refused(`Sec-Fetch-Site: ${site}`, 'its Sec-Fetch-Site must be same-origin');
  if (origin === undefined) return null;
  const forwarded = isFromProxy ? headers['x-forwarded-host'] : undefined;
  const isOwn = [host, forwarded].some((text) => {
    const authority = typeof text === 'string' ? parseAuthority(text) : null;
    return authority !== null && isOriginOf(origin, authority);
  });
  if (isOwn) return null;
  return refused(
    `Origin: ${origin}`,
    'its Origin must name the same host and port as its Host, which a proxy in between must pass on',
  );
}

/** A caller may send kilobytes as a header. */
function shortened(text: string): string {
  return text.length <= 200 ? text : `${text.slice(0, 200)}…`;
}

/** The host and the port that a request names. */
interface Authority {
  /** In lower case, without a dot at its end; an IPv6 address without its brackets. */
  host: string;
  /** Null: not named. */
  port: number | null;
}

/** Reads a `Host`, or the same part of a URL. Null: it is none, or has a user in it. */
function parseAuthority(text: string): Authority | null {
  const [, address, name, port = ''] =
    /^(?:\[([\da-f:.]{2,45})\]|([\w.-]{1,253}?)\.?)(?::(\d{0,5}))?$/i.exec(text) ?? [];
  const host = (address ?? name)?.toLowerCase();
  return host === undefined ? null : { host, port: port === '' ? null : Number(port) };
}

/** The authority of a request target in absolute form (`GET http://a/b`); null: it is in another form. */
function authorityOfTarget(target: string): string | null {
  return /^[a-z][a-z\d+.-]*:\/\/([^/?#]*)/i.exec(target)?.[1] ?? null;
}

/** Whether an `Origin` (RFC 6454) names this authority: the same host and port, where `http` means 80 and `https` 443. */
function isOriginOf(origin: string, authority: Authority): boolean {
  const [, scheme = '', rest = ''] = /^(https?):\/\/(.*)$/i.exec(origin) ?? [];
  const named = parseAuthority(rest);
  const standard = scheme.toLowerCase() === 'https' ? 443 : 80;
  return named !== null && named.host === authority.host && (named.port ?? standard) === (authority.port ?? standard);
}
