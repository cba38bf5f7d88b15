import { once } from 'node:events';
import { type Socket, connect, createServer } from 'node:net';
import { listenOnLoopback } from '../loopback.ts';
import { until } from '../until.ts';

/** A way to PostgreSQL that a test can close, or make longer. Forwards whole messages, so that a closed one leaves no statement in doubt. */
export interface PostgresProxy {
  /** The database's URL by this way. */
  readonly url: string;
  /** How many connections were tried so far. */
  connections(): number;
  /**
   * Lets nothing more through and waits for the answers to what was let through. Then `refuse` cuts every connection
   * and refuses new ones; `hang` leaves them all open and silent.
   */
  interrupt(how: 'refuse' | 'hang'): Promise<void>;
  /** Connections that hang are cut; new ones work. */
  restore(): Promise<void>;
  close(): Promise<void>;
}

interface Way {
  /** Statements whose ReadyForQuery has not come back. */
  unanswered: number;
  cut(): void;
}

interface ProxyOptions {
  /** It starts interrupted: as if the database were not there yet. */
  interrupted?: 'refuse' | 'hang';
  /** How long each round trip takes longer: as if the database were so far away. */
  delayMs?: number;
}

export async function startPostgresProxy(
  databaseUrl: string,
  { interrupted, delayMs = 0 }: ProxyOptions = {},
): Promise<PostgresProxy> {
  const target = new URL(databaseUrl);
  const ways = new Set<Way>();
  let open = interrupted === undefined;
  let connections = 0;
  const server = createServer((client) => {
    connections += 1;
    const way = forward(client, target, { isOpen: () => open, delayMs });
    ways.add(way);
    client.on('close', () => {
      way.cut();
      ways.delete(way);
    });
  });
  const stopListening = async () => {
    const closed = once(server, 'close');
    server.close();
    for (const way of ways) way.cut();
    await closed;
  };
  const port = await listenOnLoopback(server);
  if (interrupted === 'refuse') await stopListening();
  const url = new URL(databaseUrl);
  url.port = String(port);
  return {
    url: url.href,
    connections: () => connections,
    interrupt: async (how) => {
      open = false;
      await until(() => [...ways].every(({ unanswered }) => unanswered === 0) || null);
      if (how === 'refuse') await stopListening();
    },
    restore: async () => {
      for (const way of ways) way.cut();
      open = true;
      if (!server.listening) await listenOnLoopback(server, port);
    },
    close: async () => {
      if (server.listening) await stopListening();
    },
  };
}

function forward(client: Socket, target: URL, { isOpen, delayMs }: { isOpen: () => boolean; delayMs: number }): Way {
  const server = connect(Number(target.port), target.hostname);
  const way: Way = {
    unanswered: 0,
    cut: () => {
      client.destroy();
      server.destroy();
    },
  };
  // The first message of a client has no type; what it starts ends with a ReadyForQuery as well.
  const fromClient = messages('startup');
  const fromServer = messages('typed');
  client.on('data', (chunk: Buffer) => {
    for (const message of fromClient(chunk)) {
      if (!isOpen()) return;
      if (['startup', 'Q', 'S'].includes(message.type)) way.unanswered += 1;
      server.write(message.bytes);
    }
  });
  server.on('data', (chunk: Buffer) => {
    for (const { type } of fromServer(chunk)) if (type === 'Z') way.unanswered -= 1;
    later(delayMs, () => client.write(chunk));
  });
  for (const socket of [client, server]) {
    socket.on('error', () => way.cut());
    // Else a piece of a long answer waits up to 40 ms for the one before it to be acknowledged (Nagle's algorithm, RFC 896).
    socket.setNoDelay(true);
  }
  client.on('close', () => way.cut());
  // Behind what it has said before.
  server.on('close', () => later(delayMs, () => way.cut()));
  return way;
}

/** In the order of the calls: timers of one length are. */
function later(delayMs: number, act: () => void): void {
  if (delayMs === 0) act();
  else setTimeout(act, delayMs);
}

interface Message {
  type: string;
  bytes: Buffer;
}

/** Splits a stream of PostgreSQL's protocol into its messages. */
function messages(first: 'startup' | 'typed'): (chunk: Buffer) => Message[] {
  let rest = Buffer.alloc(0);
  let typed = first === 'typed';
  return (chunk) => {
    rest = Buffer.concat([rest, chunk]);
    const whole: Message[] = [];
    for (;;) {
      const prefix = typed ? 1 : 0;
      if (rest.length < prefix + 4) return whole;
      const length = prefix + rest.readUInt32BE(prefix);
      if (rest.length < length) return whole;
      const bytes = rest.subarray(0, length);
      whole.push({ type: typed ? String.fromCharCode(bytes[0] ?? 0) : 'startup', bytes });
      rest = rest.subarray(length);
      typed = true;
    }
  };
}
