import { once } from 'node:events';
import { Socket, connect, createServer } from 'node:net';
import { listenOnLoopback } from '../../support/loopback.ts';

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
