import { once } from 'node:events';
import { connect, createServer, Socket } from 'node:net';
import { listenOnLoopback } from '../../support/loopback.ts';

/**
 * What the way to the database does:
 * `open` lets everything through · `refuse` cuts what there is and takes nothing new · `hang` holds every byte back, both
 * ways, and delivers it when opened again, however late · `mute` lets questions through and holds answers back ·
 * `lose` lets questions through and resets the connection instead of answering: committed, and the client does not know.
 */
export type ProxyMode = 'open' | 'refuse' | 'hang' | 'mute' | 'lose';

/** One instance's way to the database. */
export interface FaultProxy {
  readonly url: string;
  /** How many connections were tried so far. */
  connections(): number;
  set(mode: ProxyMode): void;
  /** Added to every piece, both ways. */
  delay(ms: number): void;
  /** Resets every connection there is; new ones work. */
  cut(): void;
  close(): Promise<void>;
}

interface Way {
  client: Socket;
  server: Socket;
  /** Loses pieces after they were read; set by `lose`. */
  losing: boolean;
  /** It has lost some. From now on the connection is of no use, and is reset, whatever the mode is by then. */
  hasLost: boolean;
}

/** Long enough for the server to have done what it was asked. */
const LOSE_AFTER_MS = 30;

export async function startFaultProxy(databaseUrl: string): Promise<FaultProxy> {
  const target = new URL(databaseUrl);
  const ways = new Set<Way>();
  const state = { mode: 'open' as ProxyMode, delayMs: 0 };
  let connections = 0;
  const server = createServer((client) => {
    connections += 1;
    if (state.mode === 'refuse') {
      client.on('error', () => undefined);
      client.resetAndDestroy();
      return;
    }
    const way = {
      client,
      server: connect(Number(target.port), target.hostname),
      losing: false,
      hasLost: false,
    };
    // Else the last piece of a long answer waits up to 40 ms for the client to acknowledge those before it (Nagle's algorithm, RFC 896).
    for (const socket of [way.client, way.server]) socket.setNoDelay(true);
    ways.add(way);
    forward(way, state, () => ways.delete(way));
    apply(way, state.mode);
  });
  const url = new URL(databaseUrl);
  url.port = String(await listenOnLoopback(server));
  return {
    url: url.href,
    connections: () => connections,
    set: (mode) => {
      state.mode = mode;
      for (const way of ways) apply(way, mode);
    },
    delay: (ms) => {
      state.delayMs = ms;
    },
    cut: () => {
      for (const way of ways) reset(way);
    },
    close: async () => {
      for (const way of ways) reset(way);
      const closed = once(server, 'close');
      server.close();
      await closed;
    },
  };
}

function apply(way: Way, mode: ProxyMode): void {
  if (mode === 'refuse') {
    reset(way);
    return;
  }
  way.losing = mode === 'lose';
  if (mode === 'hang') way.client.pause();
  else way.client.resume();
  if (mode === 'hang' || mode === 'mute') way.server.pause();
  else way.server.resume();
}

function forward(way: Way, state: { delayMs: number }, onGone: () => void): void {
  const { client, server } = way;
  const toServer = inOrder(server, state);
  const toClient = inOrder(client, state);
  client.on('data', (chunk: Buffer) => {
    toServer(chunk);
    if (way.losing) setTimeout(() => way.losing && reset(way), LOSE_AFTER_MS);
  });
  server.on('data', (chunk: Buffer) => {
    // The question may have come before answers were lost.
    if (way.losing && !way.hasLost) {
      way.hasLost = true;
      setTimeout(() => reset(way), LOSE_AFTER_MS);
    }
    if (!way.hasLost) toClient(chunk);
  });
  for (const [socket, other] of [
    [client, server],
    [server, client],
  ] as const) {
    socket.on('error', () => other.destroy());
    // What was read before the end is passed on first: a statement outlives the client that sent it.
    socket.on('end', () => other.end());
    socket.on('close', () => {
      setTimeout(() => other.destroy(), state.delayMs);
      onGone();
    });
  }
}

/** Pieces keep their order also where the delay changes between them. */
function inOrder(to: Socket, state: { delayMs: number }): (chunk: Buffer) => void {
  let lastAt = 0;
  return (chunk) => {
    const now = performance.now();
    lastAt = Math.max(lastAt, now + state.delayMs);
    if (lastAt <= now) to.write(chunk);
    else setTimeout(() => to.write(chunk), lastAt - now);
  };
}

function reset({ client, server }: Way): void {
  client.resetAndDestroy();
  server.destroy();
}

/** The way from all instances to the receiver, which can be cut as a network is. */
export interface TargetProxy {
  readonly port: number;
  /**
   * Held, nothing gets through, both ways. Let go, what a sender wrote before it closed its connection still arrives, as its
   * kernel would have gone on sending it; what it reset does not.
   */
  hold(on: boolean): void;
  close(): Promise<void>;
}

/** Goes on from the address that it was reached from, for by that the receiver knows who sent what. */
export async function startTargetProxy(receiverPort: number): Promise<TargetProxy> {
  const sockets = new Set<Socket>();
  const waiting: (() => void)[] = [];
  let held = false;
  const whenOpen = (work: () => void): void => {
    if (held || waiting.length > 0) waiting.push(work);
    else work();
  };
  const server = createServer({ allowHalfOpen: true }, (client) => {
    const { remoteAddress: from } = client;
    // It was reset before it was taken: nobody knows who sent what it wrote, and that does not arrive.
    if (from === undefined) {
      client.destroy();
      return;
    }
    let gone = false;
    let onward: Socket | undefined;
    sockets.add(client);
    const open = (): Socket => {
      onward ??= goOn(client, { port: receiverPort, from }, sockets, whenOpen);
      return onward;
    };
    client.on('data', (chunk: Buffer) => whenOpen(() => gone || open().write(chunk)));
    client.on('end', () => whenOpen(() => gone || open().end()));
    client.on('error', () => {
      gone = true;
      onward?.resetAndDestroy();
    });
    client.on('close', () => sockets.delete(client));
  });
  const port = await listenOnLoopback(server);
  return {
    port,
    hold: (on) => {
      held = on;
      if (!on) for (const work of waiting.splice(0)) work();
    },
    close: async () => {
      for (const socket of sockets) socket.destroy();
      const closed = once(server, 'close');
      server.close();
      await closed;
    },
  };
}

function goOn(
  client: Socket,
  { port, from }: { port: number; from: string },
  sockets: Set<Socket>,
  whenOpen: (work: () => void) => void,
): Socket {
  const onward = connect({ port, host: '127.0.0.1', localAddress: from });
  sockets.add(onward);
  onward.on('data', (chunk: Buffer) => whenOpen(() => client.destroyed || client.write(chunk)));
  onward.on('end', () => whenOpen(() => client.end()));
  onward.on('error', () => whenOpen(() => client.resetAndDestroy()));
  onward.on('close', () => sockets.delete(onward));
  return onward;
}
