import { type DatabaseUrl, type Host, parseDatabaseUrl } from '../../config/database-url.ts';

/** The servers of one URL, and what this process has learned about them. */
export interface Hosts {
  readonly url: DatabaseUrl;
  /** The servers to try, in this order: as in the URL, but those that failed come last. */
  inOrder(): Host[];
  /** A session on it was opened and may write. */
  found(host: Host): void;
  /** No session could be opened on it, or only one that may not write. */
  failed(host: Host): void;
  /** Whether the server that accepts writes was found on another host since. */
  isLeft(host: Host): boolean;
  /** Calls back whenever that server changes; returns a function that ends that. */
  onMoved(moved: () => void): () => void;
}

/** All pools of a process learn together: if a host did not answer one pool, the others need not try it. */
export function hostsOf(url: string): Hosts {
  const known = all.get(url) ?? createHosts(url);
  all.set(url, known);
  return known;
}

const all = new Map<string, Hosts>();

function createHosts(text: string): Hosts {
  const url = parseDatabaseUrl(text);
  if (!url) throw new Error('this is not a URL of PostgreSQL');
  let order = [...url.hosts];
  /** Undefined: that host no longer accepts writes. */
  let writing: Host | undefined;
  let last: Host | undefined;
  const watching = new Set<() => void>();
  const without = (host: Host): Host[] => order.filter((other) => !isSame(other, host));
  return {
    url,
    inOrder: () => [...order],
    found: (host) => {
      const moved = last !== undefined && !isSame(last, host);
      last = writing = host;
      order = [host, ...without(host)];
      if (moved) for (const onMoved of [...watching]) onMoved();
    },
    failed: (host) => {
      order = [...without(host), host];
      if (writing && isSame(writing, host)) writing = undefined;
    },
    isLeft: (host) => writing !== undefined && !isSame(writing, host),
    onMoved: (moved) => {
      watching.add(moved);
      return () => watching.delete(moved);
    },
  };
}

function isSame(one: Host, other: Host): boolean {
  return one.name === other.name && one.port === other.port;
}
