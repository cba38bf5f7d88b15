import { type Socket, connect } from 'node:net';
import type { DatabaseTls } from '../../config/database-tls.ts';
import type { Host } from '../../config/database-url.ts';
import { secured, usesTls } from './tls.ts';

/** Begins to connect; an error of it ends it, and is for those to hear who listen. */
function connectTo({ name, port }: Host): Socket {
  const socket = name.startsWith('/') ? connect(`${name}/.s.PGSQL.${port}`) : connect(port, name);
  socket.on('error', () => undefined);
  // The driver says so in its messages.
  return Object.assign(socket, { host: name, port });
}

function connected(socket: Socket): Promise<Socket> {
  return new Promise((resolve, reject) => {
    socket.once('connect', () => resolve(socket));
    socket.once('error', reject);
    socket.once('close', () =>
      reject(Object.assign(new Error('connection closed'), { code: 'CONNECTION_CLOSED' })),
    );
  });
}

/** Connected, and protected as the URL says. `begun` hears of the socket at once, to end it. */
export async function openSocket(
  host: Host,
  tls: DatabaseTls,
  begun: (socket: Socket) => void,
): Promise<Socket> {
  const socket = connectTo(host);
  begun(socket);
  await connected(socket);
  if (!usesTls(host, tls)) return socket;
  try {
    return await secured(socket, host, tls);
  } catch (error) {
    socket.destroy();
    throw error;
  }
}
