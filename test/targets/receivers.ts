import { type IncomingMessage, type RequestListener, createServer } from 'node:http';
import { type AddressInfo, type Server, type Socket, createServer as createTcpServer } from 'node:net';
import { text } from 'node:stream/consumers';
import { onTestFinished } from 'vitest';
import { systemClock } from '../../src/runtime/clock.ts';
import { createHttpTarget } from '../../src/targets/http.ts';
import type { Attempt, TargetKind } from '../../src/targets/target.ts';

interface Arrival {
  method: string;
  url: string;
  headers: IncomingMessage['headers'];
  body: string;
  socket: Socket;
}

/** An HTTP server that records what arrives and answers as told. */
export async function receive(
  answer: RequestListener = (_, response) => response.end(),
  host?: string,
): Promise<{
  url: string;
  arrivals: Arrival[];
}> {
  const arrivals: Arrival[] = [];
  const server = createServer((request, response) => {
    void text(request).then((body) => {
      const { method = '', url = '', headers, socket } = request;
      arrivals.push({ method, url, headers, body, socket });
      answer(request, response);
    });
  });
  onTestFinished(() => server.closeAllConnections());
  return { url: await listen(server, host), arrivals };
}

/** A bare TCP server: `serve` gets each connection. */
export async function receiveTcp(serve: (socket: Socket) => void): Promise<string> {
  const sockets: Socket[] = [];
  const server = createTcpServer((socket) => {
    sockets.push(socket);
    socket.on('error', () => undefined);
    serve(socket);
    socket.resume();
  });
  onTestFinished(() => {
    for (const socket of sockets) socket.destroy();
  });
  return listen(server);
}

/** A server that answers the first bytes of each connection with fixed ones. */
export function answerWith(
  bytes: string,
  after: (socket: Socket) => void = () => undefined,
  watch: (socket: Socket) => void = () => undefined,
): Promise<string> {
  return receiveTcp((socket) => {
    watch(socket);
    socket.once('data', () => {
      socket.write(bytes, 'latin1', () => after(socket));
    });
  });
}

export async function listen(server: Server, host = '127.0.0.1'): Promise<string> {
  await new Promise<void>((resolve) => server.listen(0, host, resolve));
  onTestFinished(() => {
    server.close();
  });
  const { port, family } = server.address() as AddressInfo;
  return `http://${family === 'IPv6' ? '[::1]' : host}:${port}`;
}

type Deps = Parameters<typeof createHttpTarget>[0];

export function httpTarget(connectionsPerOrigin = 4, deps: Partial<Deps> = {}): TargetKind {
  const kind = createHttpTarget({ clock: systemClock, version: '1.2.3', connectionsPerOrigin, ...deps });
  onTestFinished(() => kind.close());
  return kind;
}

export function attemptOf(rest: Partial<Attempt> = {}): Attempt {
  return {
    runId: '0192f0c4-1c00-7abc-8def-0123456789ab',
    runName: 'nightly@2026-11-20T09:00:00.000Z',
    scheduleId: 'nightly',
    scheduledFor: Date.UTC(2026, 10, 20, 9),
    trigger: 'schedule',
    attempt: 1,
    payload: null,
    timeoutSeconds: 20,
    delivery: 'atLeastOnce',
    recovery: null,
    dependencies: [],
    parent: null,
    connection: null,
    mayStart: () => true,
    ...rest,
  };
}

export const never = new AbortController().signal;
