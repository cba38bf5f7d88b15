import { isIP } from 'node:net';

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
