import { hostText } from '../../config/database-url.ts';
import { ConnectionLost, NoServer, ServerReadOnly } from '../errors.ts';
import { type Hosts, hostsOf } from './hosts.ts';
import { type Session, type SessionOptions, openSession } from './session.ts';

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
