import type { LookupAddress } from 'node:dns';
import { readFileSync, statSync } from 'node:fs';
import { isIP } from 'node:net';
import type { Clock } from '../clock.ts';

/** What resolv.conf(5) says about name servers, as far as it is needed here. */
export interface ResolvConf {
  /** Null: as the resolver library finds them out by itself. */
  servers: readonly string[] | null;
  /** The domains that a short name may belong to. */
  search: readonly string[];
  /** A name with fewer dots is tried in these domains first. */
  ndots: number;
  /** For one try. */
  timeoutSeconds: number;
  tries: number;
}

const MAX_SERVERS = 3;
const MAX_NDOTS = 15;
const MAX_TIMEOUT_SECONDS = 30;
const MAX_TRIES = 5;

/** `hostname`: without a line about domains, the domain of this machine is searched. */
export function parseResolvConf(text: string, hostname: string): ResolvConf {
  const servers: string[] = [];
  let search = domainOf(hostname);
  const options = new Map<string, number>();
  for (const line of text.split('\n')) {
    const [keyword, ...values] = line.trimEnd().split(/\s+/);
    if (keyword === 'nameserver') servers.push(...values.slice(0, 1).filter((value) => isIP(value) !== 0));
    // The last one counts.
    else if (keyword === 'search') search = values;
    else if (keyword === 'domain') search = values.slice(0, 1);
    else if (keyword === 'options') for (const option of values) readOption(option, options);
  }
  return {
    servers: serversOf(servers),
    search: search.filter((domain) => domain !== '.'),
    ndots: Math.min(options.get('ndots') ?? 1, MAX_NDOTS),
    timeoutSeconds: Math.min(Math.max(options.get('timeout') ?? 2, 1), MAX_TIMEOUT_SECONDS),
    tries: Math.min(Math.max(options.get('attempts') ?? 2, 1), MAX_TRIES),
  };
}

/** Node's setServers loses the zone of a link-local address; the library reads it. It also knows the default. */
function serversOf(servers: readonly string[]): readonly string[] | null {
  const isForLibrary = servers.length === 0 || servers.some((server) => server.includes('%'));
  return isForLibrary ? null : servers.slice(0, MAX_SERVERS);
}

function readOption(option: string, options: Map<string, number>): void {
  const [, name = '', digits] = /^([a-z-]+):(\d{1,9})$/.exec(option) ?? [];
  if (digits !== undefined) options.set(name, Number(digits));
}

function domainOf(hostname: string): string[] {
  const dot = hostname.indexOf('.');
  return dot === -1 || dot === hostname.length - 1 ? [] : [hostname.slice(dot + 1)];
}

/** The addresses of each name of a hosts file, in its order; names in lower case (hosts(5)). */
export function parseHosts(text: string): ReadonlyMap<string, readonly LookupAddress[]> {
  const known = new Map<string, LookupAddress[]>();
  for (const line of text.split('\n')) {
    const [address = '', ...names] = (line.split('#', 1)[0] ?? '').trim().split(/\s+/);
    const family = isIP(address);
    if (family === 0) continue;
    for (const name of names) add(known, withoutFinalDot(name.toLowerCase()), { address, family });
  }
  return known;
}

export function withoutFinalDot(name: string): string {
  return name.endsWith('.') ? name.slice(0, -1) : name;
}

function add(known: Map<string, LookupAddress[]>, name: string, one: LookupAddress): void {
  const others = known.get(name);
  if (others === undefined) known.set(name, [one]);
  else if (!others.some(({ address }) => address === one.address)) others.push(one);
}

/**
 * Whether nsswitch.conf(5) names a source of host names beside the hosts file and the name servers, such as mDNS or
 * systemd. Such a source is a module of the C library.
 */
export function hasOtherSources(text: string): boolean {
  const line = text.split('\n').findLast((one) => /^\s*hosts\s*:/.test(one)) ?? '';
  const sources = line
    .replace(/#.*/, '')
    .replace(/\[[^\]]*\]/g, ' ')
    .replace(/^\s*hosts\s*:/, '')
    .split(/\s+/);
  return sources.some((source) => !['', 'files', 'dns'].includes(source));
}

const LOOK_EVERY_MS = 1_000;

/**
 * A small local file as parsed, read again within a second after a change; one that cannot be read is empty. Read
 * synchronously: the threads for files may all be busy, and look-ups must not wait for them.
 */
export function watchedFile<T>(path: string, parse: (text: string) => T, clock: Clock): () => T {
  let lookedAt = -Infinity;
  let version = 'never read';
  let content = parse('');
  return () => {
    if (clock.monotonic() - lookedAt < LOOK_EVERY_MS) return content;
    lookedAt = clock.monotonic();
    const current = versionOf(path);
    if (current === version) return content;
    version = current;
    content = parse(textOf(path));
    return content;
  };
}

function versionOf(path: string): string {
  try {
    const { mtimeMs, ctimeMs, size, ino } = statSync(path);
    return [mtimeMs, ctimeMs, size, ino].join();
  } catch {
    return 'not there';
  }
}

function textOf(path: string): string {
  try {
    return readFileSync(path, 'utf8');
  } catch {
    return '';
  }
}
