import { type Socket, connect } from 'node:net';
import type { Host } from '../../config/database-url.ts';

/** Begins to connect; an error of it ends it, and is for those to hear who listen. */
export function connectTo({ name, port }: Host): Socket {
  const socket = name.startsWith('/') ? connect(`${name}/.s.PGSQL.${port}`) : connect(port, name);
  socket.on('error', () => undefined);
  // The driver says so in its messages, and asks a certificate for that name.
  return Object.assign(socket, { host: name, port });
}

export function connected(socket: Socket): Promise<Socket> {
  return new Promise((resolve, reject) => {
    socket.once('connect', () => resolve(socket));
    socket.once('error', reject);
    socket.once('close', () =>
      reject(Object.assign(new Error('connection closed'), { code: 'CONNECTION_CLOSED' })),
    );
  });
}
