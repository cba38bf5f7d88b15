import { once } from 'node:events';
import { type IncomingMessage, type RequestListener, type ServerResponse, createServer } from 'node:http';
import { type AddressInfo, type Server, createServer as createTcpServer } from 'node:net';
import { text } from 'node:stream/consumers';

/** A server of HTTP on loopback. */
export interface Loopback {
  readonly port: number;
  readonly url: string;
  /** Ends its connections too. */
  readonly close: () => Promise<void>;
}

/** Lets it listen on loopback, on a free port unless told otherwise; answers on which. */
export async function listenOnLoopback(server: Server, port = 0): Promise<number> {
  server.listen(port, '127.0.0.1');
  await once(server, 'listening');
  return (server.address() as AddressInfo).port;
}

/** Serves HTTP. Connections that nobody uses are kept for so long. */
export async function serveHttp(listener: RequestListener, keepAliveMs?: number): Promise<Loopback> {
  const server = createServer(listener);
  // Asked for once, it is known when the connection has gone, too.
  server.on('connection', (socket) => void socket.remoteAddress);
  if (keepAliveMs !== undefined) server.keepAliveTimeout = keepAliveMs;
  const port = await listenOnLoopback(server);
  return {
    port,
    url: `http://127.0.0.1:${port}`,
    close: async () => {
      const closed = once(server, 'close');
      server.close();
      server.closeAllConnections();
      await closed;
    },
  };
}

/** For a server that needs the whole body. A request that breaks off is not handled. */
export function withBody(
  handle: (request: IncomingMessage, body: string, response: ServerResponse) => void,
): RequestListener {
  return (request, response) => {
    text(request).then(
      (body) => handle(request, body, response),
      () => undefined,
    );
  };
}

/** A port on which nothing listens. */
export async function freePort(): Promise<number> {
  const server = createTcpServer();
  const port = await listenOnLoopback(server);
  server.close();
  await once(server, 'close');
  return port;
}
