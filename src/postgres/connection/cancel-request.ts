import type { Socket } from 'node:net';
import type { DatabaseTls } from '../../config/database-tls.ts';
import type { Host } from '../../config/database-url.ts';
import { openSocket } from './socket.ts';

/** The server's cancel key of a session. */
export interface Key {
  pid: number;
  secret: number;
}

const CANCEL_REQUEST = 80_877_102;
const LIMIT_MS = 2_000;

/**
 * Asks the server to end the statement that runs in the session; resolves when the server has read the request, or
 * cannot be reached in time. Only then may the session's connection be closed: a pooler in between forgets the key of a
 * client that is gone, and leaves its statement alone. Closing a connection stops nothing on the server: a statement
 * that waits for a lock goes on waiting, and occupies a connection, until the server has none left. So it is cancelled
 * as the protocol defines it (PostgreSQL documentation, "Message Flow", canceling requests in progress): over a
 * connection of its own, with the key of the session. The driver's `cancel` does not do: no caller could catch its
 * failure.
 */
export async function sendCancelRequest(host: Host, tls: DatabaseTls, { pid, secret }: Key): Promise<void> {
  const message = Buffer.alloc(16);
  message.writeUInt32BE(16, 0);
  message.writeUInt32BE(CANCEL_REQUEST, 4);
  message.writeUInt32BE(pid >>> 0, 8);
  message.writeUInt32BE(secret >>> 0, 12);
  let closed: Promise<void> = Promise.resolve();
  const begun = (socket: Socket) => {
    closed = new Promise((resolve) => socket.once('close', () => resolve()));
    socket.setTimeout(LIMIT_MS, () => socket.destroy());
    socket.unref();
  };
  try {
    const socket = await openSocket(host, tls, begun);
    // Left open until the other side closes it: PgBouncer 1.18 ends itself over a cancel request whose sender has gone already.
    socket.resume();
    socket.write(message);
  } catch {
    // If the server cannot be reached, it cannot be asked.
  }
  await closed;
}
