import type { IncomingMessage, Server, ServerResponse } from 'node:http';
import type { Socket } from 'node:net';
import { networkOf, remoteAddressOf } from '../remote-address.ts';

/** Far below the number of files that a process may open: targets and the database need sockets too. */
const MAX_CONNECTIONS = 4096;
const MAX_QUIET_OF_ADDRESS = 1024;

export interface ConnectionLimits {
  /** All of them. */
  most: number;
  /** Of those without a request that is being answered, from one address (IPv6: from one /64). */
  mostQuietOfAddress: number;
  /** Addresses that stand for many clients. */
  isProxy: (address: string) => boolean;
}

/** With the limits of every installation. */
export function standardLimits(isProxy: ConnectionLimits['isProxy']): ConnectionLimits {
  return { most: MAX_CONNECTIONS, mostQuietOfAddress: MAX_QUIET_OF_ADDRESS, isProxy };
}

/**
 * A connection is quiet while it has no request that is being answered: it is half-open, drips, or idles. When there are too
 * many connections, the one that has been quiet for longest gives way. So one that brings a request is always taken.
 */
// eslint-disable-next-line max-lines-per-function -- a closure: its functions share its state, and are short
export function limitQuietConnections(server: Server, limits: ConnectionLimits): void {
  const { most, mostQuietOfAddress, isProxy } = limits;
  const all = new Map<Socket, { network: string | null; requests: number }>();
  /** The longest quiet come first. */
  const quiet = new Set<Socket>();
  const quietOf = new Map<string, Set<Socket>>();
  server.maxConnections = most;

  function becomeQuiet(socket: Socket, network: string | null): void {
    quiet.add(socket);
    if (network === null) return;
    const group = quietOf.get(network) ?? new Set();
    quietOf.set(network, group.add(socket));
    if (group.size > mostQuietOfAddress) giveWay(group);
  }

  function giveWay([longest]: Iterable<Socket>): void {
    if (longest === undefined) return;
    forget(longest);
    longest.destroy();
  }

  function forget(socket: Socket): void {
    const known = all.get(socket);
    all.delete(socket);
    if (known) leaveQuiet(socket, known.network);
  }

  function leaveQuiet(socket: Socket, network: string | null): void {
    quiet.delete(socket);
    const group = network === null ? undefined : quietOf.get(network);
    group?.delete(socket);
    if (network !== null && group?.size === 0) quietOf.delete(network);
  }

  server.on('connection', (socket: Socket) => {
    const address = remoteAddressOf(socket);
    const known = { network: isProxy(address) ? null : networkOf(address), requests: 0 };
    all.set(socket, known);
    socket.once('close', () => forget(socket));
    becomeQuiet(socket, known.network);
    // Room for the next one: the server itself would refuse it, whatever it brings.
    if (all.size >= most) giveWay(quiet);
  });
  server.on('request', ({ socket }: IncomingMessage, response: ServerResponse) => {
    const known = all.get(socket);
    if (known === undefined) return;
    known.requests += 1;
    leaveQuiet(socket, known.network);
    response.once('close', () => {
      known.requests -= 1;
      if (known.requests === 0 && all.has(socket)) becomeQuiet(socket, known.network);
    });
  });
}
