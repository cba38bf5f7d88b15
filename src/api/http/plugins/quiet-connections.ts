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

interface State extends ConnectionLimits {
  all: Map<Socket, Connection>;
  /** The longest quiet come first. */
  quiet: Set<Socket>;
  quietOf: Map<string, Set<Socket>>;
}

interface Connection {
  /** Null: it is of a proxy. */
  network: string | null;
  requests: number;
}

/**
 * A connection is quiet while it has no request that is being answered: it is half-open, drips, or idles. When there are too
 * many connections, the one that has been quiet for longest gives way. So one that brings a request is always taken.
 */
export function limitQuietConnections(server: Server, limits: ConnectionLimits): void {
  const state: State = { ...limits, all: new Map(), quiet: new Set(), quietOf: new Map() };
  server.maxConnections = limits.most;
  server.on('connection', (socket: Socket) => begin(state, socket));
  server.on('request', ({ socket }: IncomingMessage, response: ServerResponse) =>
    beginRequest(state, socket, response),
  );
}

function begin(state: State, socket: Socket): void {
  const { all, quiet, most, isProxy } = state;
  const address = remoteAddressOf(socket);
  const known = { network: isProxy(address) ? null : networkOf(address), requests: 0 };
  all.set(socket, known);
  socket.once('close', () => forget(state, socket));
  becomeQuiet(state, socket, known);
  // Room for the next one: the server itself would refuse it, whatever it brings.
  if (all.size >= most) giveWay(state, quiet);
}

function beginRequest(state: State, socket: Socket, response: ServerResponse): void {
  const known = state.all.get(socket);
  if (known === undefined) return;
  known.requests += 1;
  leaveQuiet(state, socket, known);
  response.once('close', () => {
    known.requests -= 1;
    if (known.requests === 0 && state.all.has(socket)) becomeQuiet(state, socket, known);
  });
}

function becomeQuiet(state: State, socket: Socket, { network }: Connection): void {
  state.quiet.add(socket);
  if (network === null) return;
  const group = state.quietOf.get(network) ?? new Set();
  state.quietOf.set(network, group.add(socket));
  if (group.size > state.mostQuietOfAddress) giveWay(state, group);
}

function giveWay(state: State, [longest]: Iterable<Socket>): void {
  if (longest === undefined) return;
  forget(state, longest);
  longest.destroy();
}

function forget(state: State, socket: Socket): void {
  const known = state.all.get(socket);
  state.all.delete(socket);
  if (known) leaveQuiet(state, socket, known);
}

function leaveQuiet({ quiet, quietOf }: State, socket: Socket, { network }: Connection): void {
  quiet.delete(socket);
  const group = network === null ? undefined : quietOf.get(network);
  group?.delete(socket);
  if (network !== null && group?.size === 0) quietOf.delete(network);
}
