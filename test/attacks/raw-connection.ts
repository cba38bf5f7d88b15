import { once } from 'node:events';
import { Socket } from 'node:net';
import { onTestFinished } from 'vitest';
import { until } from '../support/until.ts';

/** A connection of a test, on which it writes what it likes. */
interface RawConnection {
  socket: Socket;
  /** All that has come over it. */
  received: () => string;
  /** The statuses of the answers so far. */
  statuses: () => number[];
  /** Resolves when there are so many answers. */
  answered: (times?: number) => Promise<unknown>;
  closed: () => Promise<unknown>;
}

interface Options {
  /** Other addresses of this machine are other callers. */
  localAddress?: string;
  /** What it sends first. */
  beginning?: string;
  /** False: nothing is read until the socket is resumed. */
  reads?: boolean;
}

/** It ends with the test. */
export async function openConnection(url: string, options: Options = {}): Promise<RawConnection> {
  const { localAddress = '127.0.0.1', beginning = '', reads = true } = options;
  const { hostname, port } = new URL(url);
  const socket = new Socket().connect({ host: hostname, port: Number(port), localAddress });
  onTestFinished(() => {
    socket.destroy();
  });
  let received = '';
  socket.setEncoding('latin1').on('data', (chunk: string) => (received += chunk));
  socket.on('error', () => undefined);
  await once(socket, 'connect');
  if (!reads) socket.pause();
  socket.write(beginning, 'latin1');
  const statuses = () => [...received.matchAll(/HTTP\/1\.1 (\d+)/g)].map(([, status]) => Number(status));
  return {
    socket,
    received: () => received,
    statuses,
    answered: (times = 1) => until(() => (statuses().length >= times ? true : null)),
    closed: () => until(() => (socket.destroyed ? true : null)),
  };
}
