import { sql } from 'drizzle-orm';
import { type DatabaseUrl, type Host, hostText, parseDatabaseUrl } from '../../config/database-url.ts';
import { ConnectionLost, NoServer, ServerReadOnly } from '../errors.ts';
import { type Session, type SessionOptions, openSession } from './session.ts';

/** The servers of one URL, and what this process has learned about them. */
interface Hosts {
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

/** One connection to PostgreSQL: opened at its first use, and opened again when it is lost. */
export interface LastingConnection {
  /** Called before each piece of work. An opening that takes longer than the work can wait goes on for the next one. */
  session(): Promise<Session>;
  isOpening(): boolean;
  /** Its session is there, and can be used. */
  isOpen(): boolean;
  /** The last session may not write: try another server. */
  mayNotWrite(): void;
  /** Waits for the statement that runs on it. */
  close(): Promise<void>;
  /** Drops it with everything that runs on it, here and on the server. */
  destroy(): Promise<void>;
}

export function connect(url: string): LastingConnection {
  const hosts = hostsOf(url);
  let session: Session | undefined;
  let opening: Promise<Session> | undefined;
  let isWanted = true;
  const open = async (): Promise<Session> => {
    void session?.close();
    session = undefined;
    session = await openBest(hosts, { isWanted: () => isWanted });
    return session;
  };
  const end = (how: 'close' | 'destroy') => {
    isWanted = false;
    return session?.[how]() ?? Promise.resolve();
  };
  const usable = () => (session?.isUsable() === true && !hosts.isLeft(session.host) ? session : undefined);
  return {
    session: async () => {
      // Begun for earlier work, perhaps during an outage that is over: if it fails, this work tries once for itself.
      await opening?.catch(() => undefined);
      const there = usable();
      if (there) return there;
      opening ??= open().finally(() => (opening = undefined));
      return opening;
    },
    isOpening: () => opening !== undefined,
    isOpen: () => opening === undefined && usable() !== undefined,
    mayNotWrite: () => {
      if (session) hosts.failed(session.host);
    },
    close: () => end('close'),
    destroy: () => end('destroy'),
  };
}

/** A single server gets all the time that a statement has. If there are several, the next one must get its turn. */
const ONLY_HOST_MS = 5_000;
const EACH_HOST_MS = 3_000;

interface OpenOptions extends SessionOptions {
  /** False: the connection that wanted the session was closed meanwhile. */
  isWanted: () => boolean;
}

/**
 * A session on the server that accepts writes: the last such server is tried first. If none does, a session on a server
 * that can be read, unless the URL demands one that accepts writes.
 */
export async function openBest(hosts: Hosts, { isWanted, ...options }: OpenOptions): Promise<Session> {
  const { mustWrite } = hosts.url;
  const order = hosts.inOrder();
  const tried: { host: string; error: unknown }[] = [];
  let readable: Session | undefined;
  for (const host of order) {
    try {
      const limitMs = order.length > 1 ? EACH_HOST_MS : ONLY_HOST_MS;
      const session = await openSession(hosts.url, host, limitMs, options);
      if (session.mayWrite) {
        hosts.found(host);
        void readable?.close();
        return await wanted(session, isWanted);
      }
      hosts.failed(host);
      if (mustWrite || readable) void session.close();
      else readable = session;
      if (mustWrite) tried.push({ host: hostText(host), error: new ServerReadOnly('it may not be written') });
    } catch (error) {
      hosts.failed(host);
      tried.push({ host: hostText(host), error });
    }
    if (!isWanted()) break;
  }
  if (readable) return wanted(readable, isWanted);
  throw order.length === 1 ? tried[0]?.error : new NoServer(tried);
}

async function wanted(session: Session, isWanted: () => boolean): Promise<Session> {
  if (isWanted()) return session;
  await session.close();
  throw new ConnectionLost('CONNECTION_ENDED', 'the connection has been closed');
}

/** What is known of the connections that the server gives. */
interface Sparing {
  /** False: something else needs a connection more. */
  mayListen(): boolean;
  isTooMany(error: unknown): boolean;
  /** Called when a connection is needed elsewhere. */
  onScarce(giveUp: () => void): void;
}

const ENOUGH: Sparing = { mayListen: () => true, isTooMany: () => false, onScarce: () => undefined };

const RETRY_MS = 1_000;
const RETRY_IF_SCARCE_MS = 10_000;

/**
 * Calls the function of a channel (an SQL identifier) for each NOTIFY on it, and all functions after every
 * (re)connection, when some may have been missed. A hint: behind a pooler in transaction mode, no NOTIFY arrives.
 */
export function listen(
  url: string,
  channels: Record<string, () => void>,
  sparing = ENOUGH,
): { stop: () => Promise<void> } {
  const listening = new Listening(hostsOf(url), channels, sparing);
  void listening.subscribe();
  return { stop: () => listening.stop() };
}

class Listening {
  readonly #hosts: Hosts;
  readonly #channels: Record<string, () => void>;
  readonly #sparing: Sparing;
  readonly #unwatch: () => void;
  #retry: NodeJS.Timeout | undefined;
  #session: Session | undefined;
  #isWanted = true;

  constructor(hosts: Hosts, channels: Record<string, () => void>, sparing: Sparing) {
    this.#hosts = hosts;
    this.#channels = channels;
    this.#sparing = sparing;
    const giveUp = () => void this.#session?.destroy();
    // A frozen server sends nothing, and does not close its connections.
    this.#unwatch = hosts.onMoved(giveUp);
    sparing.onScarce(giveUp);
  }

  async subscribe(): Promise<void> {
    this.#retry = undefined;
    const retryMs = this.#sparing.mayListen() ? await this.#listen() : RETRY_MS;
    if (this.#isWanted) this.#retry ??= setTimeout(() => void this.subscribe(), retryMs);
  }

  async stop(): Promise<void> {
    this.#isWanted = false;
    this.#unwatch();
    clearTimeout(this.#retry);
    await this.#session?.close();
  }

  /** Until the connection is lost; answers when to try again. */
  async #listen(): Promise<number> {
    const channels = this.#channels;
    const statement = Object.keys(channels)
      .map((channel) => `LISTEN ${channel}`)
      .join(';');
    let opened: Session | undefined;
    try {
      const onNotify = (channel: string) => channels[channel]?.();
      opened = this.#session = await openBest(this.#hosts, { isWanted: () => this.#isWanted, onNotify });
      await opened.executor.execute(sql.raw(statement));
      for (const heard of Object.values(channels)) heard();
      await opened.lost;
    } catch (error) {
      void opened?.destroy();
      if (this.#sparing.isTooMany(error)) return RETRY_IF_SCARCE_MS;
    }
    return RETRY_MS;
  }
}
