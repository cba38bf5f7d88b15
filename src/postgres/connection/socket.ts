import { Socket } from 'node:net';
import type { DatabaseTls, Host } from '../../config/database-url.ts';
import { type Resolve, lookupBy, untilClosed } from '../../runtime/names/resolve.ts';
import { secured, usesTls } from './tls.ts';
import { createResolver } from '../../runtime/names/resolver.ts';

/** Begins to connect. An error ends the socket; callers that listen hear of it. */
function connectTo({ name, port }: Host, resolve: Resolve): Socket {
  const socket = new Socket();
  socket.on('error', () => undefined);
  if (name.startsWith('/')) socket.connect(`${name}/.s.PGSQL.${port}`);
  else socket.connect({ host: name, port, lookup: lookupBy(resolve, untilClosed(socket)) });
  // The driver names it in its messages.
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

/** A socket that is connected, and protected as the URL says. `begun` gets the socket at once, to be able to end it. */
export async function openSocket(
  host: Host,
  tls: DatabaseTls,
  begun: (socket: Socket) => void,
  resolve = resolveDatabaseName,
): Promise<Socket> {
  const socket = connectTo(host, resolve);
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

/**
 * For the names of database servers only: they wait for no look-up of a target, however many there are. A failure is soon
 * asked anew, for firelock stands still without its database.
 */
export const resolveDatabaseName = createResolver({ failureSeconds: 1 });
