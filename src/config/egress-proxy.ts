import { type AddressRange, addressBytes, isInRange, parseAddressRanges } from './address-ranges.ts';
import { percentDecoded } from '../core/connections/join-url.ts';
import type { EntryFault } from './variable-kinds.ts';

/** The proxy through which targets are called. */
export interface EgressProxy {
  readonly host: string;
  readonly port: number;
  /** The value of `Proxy-Authorization`; null: the URL names no user. */
  readonly authorization: string | null;
  /** All but these. */
  readonly bypass: EgressBypass;
}

const HTTP_PORT = 80;

/** Reads `http://[user:password@]host[:port]`. Null: the text is no such URL. */
export function parseEgressProxy(text: string): EgressProxy | null {
  const url = URL.parse(text);
  if (url?.protocol !== 'http:' || url.pathname !== '/' || url.search !== '' || url.hash !== '') return null;
  const { username, password } = url;
  const credentials = `${percentDecoded(username) ?? username}:${percentDecoded(password) ?? password}`;
  return {
    host: url.hostname.replace(/^\[|\]$/g, ''),
    port: Number(url.port) || HTTP_PORT,
    bypass: NO_BYPASS,
    authorization: username === '' ? null : `Basic ${Buffer.from(credentials).toString('base64')}`,
  };
}

/** What is called directly, although there is an egress proxy. */
interface EgressBypass {
  /** Small letters, without the dot of the root. */
  names: ReadonlySet<string>;
  /** Each begins with a dot: all names below. */
  suffixes: readonly string[];
  /** Of addresses that a URL has; what a name resolves to plays no part. */
  ranges: readonly AddressRange[];
}

export const BYPASS_HINT =
  'hosts, suffixes (.internal.test), addresses and ranges that are called directly, comma-separated (default none)';
export const NO_BYPASS: EgressBypass = { names: new Set(), suffixes: [], ranges: [] };

const NAME = /^\.?[a-z0-9_]([a-z0-9_-]*[a-z0-9_])?(\.[a-z0-9_]([a-z0-9_-]*[a-z0-9_])?)*$/;

/** Reads a comma-separated list of hosts, suffixes as `.internal.test`, addresses and ranges of them. Each other entry is a fault. */
export function parseEgressBypass(text: string): [bypass: EgressBypass, faults: EntryFault[]] {
  const names = new Set<string>();
  const suffixes: string[] = [];
  const ranges: AddressRange[] = [];
  const faults: EntryFault[] = [];
  for (const entry of text.split(',').map((one) => one.trim())) {
    const [found, wrong] = parseAddressRanges(entry);
    const name = entry.toLowerCase().replace(/\.$/, '');
    if (wrong.length === 0) ranges.push(...found);
    else if (/^[\d.]+(\/|$)|:/.test(entry)) faults.push(...wrong);
    else if (!NAME.test(name)) faults.push({ entry, message: 'is no host, suffix, address or range' });
    else if (name.startsWith('.')) suffixes.push(name);
    else names.add(name);
  }
  return [{ names, suffixes, ranges }, faults];
}

/** `host`: of a URL, without brackets. */
export function isDirect({ names, suffixes, ranges }: EgressBypass, host: string): boolean {
  const bytes = addressBytes(host);
  if (bytes !== null) return ranges.some((range) => isInRange(bytes, range));
  const name = host.toLowerCase().replace(/\.$/, '');
  return names.has(name) || suffixes.some((suffix) => name.endsWith(suffix));
}
