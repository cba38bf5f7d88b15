import type { IncomingMessage, RequestListener, Server, ServerResponse } from 'node:http';
import type { Socket } from 'node:net';
import { networkOf, remoteAddressOf } from '../remote-address.ts';

/** What a client may hold that has shown no valid token, and the connections of all. */
export interface ConnectionLimits {
  /** Connections: far below the number of files that a process may open, since targets and the database need sockets too. */
  most: number;
  /** From so many on they are scarce: calls that wait for work give way. */
  scarceFrom: number;
  /** Of strangers, from one address (IPv6: from one /64). */
  mostOfAddress: number;
  /** Requests of one connection that wait behind the one that is being answered, and those of all connections. */
  mostWaiting: number;
  mostWaitingInAll: number;
  /** How long a stranger may take to read an answer, and how long an answer to others may stand still. */
  strangerSeconds: number;
  stillSeconds: number;
  /** How often unread answers are looked for. */
  lookEveryMs: number;
  /** Addresses that stand for many clients. */
  isProxy: (address: string) => boolean;
}

/** With the limits of every installation. */
export function standardLimits(isProxy: ConnectionLimits['isProxy']): ConnectionLimits {
  return {
    ...{ most: 4096, scarceFrom: 3584, mostOfAddress: 512, mostWaiting: 500, mostWaitingInAll: 2000 },
    ...{ strangerSeconds: 15, stillSeconds: 60, lookEveryMs: 1000 },
    isProxy,
  };
}

/** What the rest of the server says of a request that asks for more than strangers get. */
export interface Strangers {
  /** It gets it, and gives way to none until it is answered. `hasName`: its token, or its proxy, says whose it is. */
  letIn(socket: object, hasName: boolean): void;
  refused(socket: object): void;
  /** A call over it waits for work. Answers a function to call when it is over. */
  waits(socket: object, call: PatientCall): () => void;
}

interface PatientCall {
  /** It has waited longest while connections are scarce: it is to be answered soon, so that it is not cut off. */
  giveWay(): void;
  /** Called about once a second. */
  look(): void;
}

type Exchange = [request: IncomingMessage, response: ServerResponse];

interface Connection {
  /** Null: it is of a proxy. */
  network: string | null;
  isKnown: boolean;
  isLetIn: boolean;
  /** What is being answered. */
  current: ServerResponse | null;
  waiting: Exchange[];
  /** How often an answer was found that was begun and not yet read. */
  looks: number;
}

interface State {
  limits: ConnectionLimits;
  handle: RequestListener;
  silentMs: number;
  all: Map<object, Connection>;
  waiting: number;
  /** Those of strangers that nothing was let in over; the one that was answered, or opened, longest ago comes first. */
  strangers: Set<Socket>;
  strangersOf: Map<string, Set<Socket>>;
  /** Those of others on which nothing is being answered, in the same order. */
  idle: Set<Socket>;
  /** The next requests of strangers' connections over which one was answered; they take turns. */
  next: Map<Socket, Exchange>;
  turn: NodeJS.Immediate | null;
  /** Calls that wait for work; the longest waiting first. */
  patient: Set<PatientCall>;
}

/**
 * Takes the requests of a server. Those of one connection are answered one after the other, and the loop turns in between, so
 * that one pipeline does not delay other connections; of all that strangers send behind their first ones, one a turn. When there
 * are too many connections, a stranger's gives way to the newcomer: so one that brings a request is always taken.
 */
export function limitStrangers(server: Server, limits: ConnectionLimits): Strangers {
  const [handle] = server.listeners('request') as RequestListener[];
  if (handle === undefined) throw new Error('this server takes no requests');
  const state: State = {
    ...{ limits, handle, silentMs: server.timeout },
    ...{ all: new Map(), waiting: 0, strangers: new Set(), strangersOf: new Map(), idle: new Set() },
    ...{ next: new Map(), turn: null, patient: new Set() },
  };
  server.maxConnections = limits.most;
  server.removeAllListeners('request');
  const take = (...exchange: Exchange) => takeRequest(state, exchange);
  server.on('request', take);
  server.on('connection', (socket: Socket) => begin(state, socket));
  const looking = setInterval(() => lookAround(state), limits.lookEveryMs).unref();
  server.once('close', () => clearInterval(looking));
  return {
    letIn: (socket, hasName) => is(state, socket, { isKnown: hasName, isLetIn: true }),
    refused: (socket) => is(state, socket, { isKnown: false, isLetIn: false }),
    waits: (socket, call) => {
      if (state.all.has(socket)) state.patient.add(call);
      return () => void state.patient.delete(call);
    },
  };
}

function begin(state: State, socket: Socket): void {
  const { all, strangers, idle, limits } = state;
  const address = remoteAddressOf(socket);
  const network = limits.isProxy(address) ? null : networkOf(address);
  const fresh = { isKnown: false, isLetIn: false, current: null, waiting: [], looks: 0 };
  all.set(socket, { network, ...fresh });
  socket.once('close', () => forget(state, socket));
  place(state, socket);
  if (all.size > limits.scarceFrom) endLongestWait(state);
  if (all.size < limits.most) return;
  // Room for the next one: the server itself would refuse it, whatever it brings.
  const [first] = strangers;
  giveWay(state, first === socket ? idle : strangers);
}

function endLongestWait({ patient }: State): void {
  const [longest] = patient;
  if (longest === undefined) return;
  patient.delete(longest);
  longest.giveWay();
}

function takeRequest(state: State, exchange: Exchange): void {
  const { socket } = exchange[0];
  const { all, limits } = state;
  const known = all.get(socket);
  // It has given way meanwhile.
  if (known === undefined) return;
  if (known.current === null) {
    known.current = exchange[1];
    answer(state, exchange);
  } else if (known.waiting.length < limits.mostWaiting && state.waiting < limits.mostWaitingInAll) {
    known.waiting.push(exchange);
    state.waiting += 1;
  } else drop(state, socket);
}

function answer(state: State, exchange: Exchange): void {
  const [{ socket }, response] = exchange;
  response.once('close', () => {
    const known = state.all.get(socket);
    if (known === undefined) return;
    const next = known.waiting.shift();
    if (next) state.waiting -= 1;
    if (next && known.looks > 0) socket.setTimeout(state.silentMs);
    Object.assign(known, { looks: 0, isLetIn: false, current: next?.[1] ?? null });
    place(state, socket);
    if (next) answerLater(state, socket, next);
  });
  state.handle(...exchange);
}

function answerLater(state: State, socket: Socket, exchange: Exchange): void {
  if (state.all.get(socket)?.isKnown === true) {
    setImmediate(() => state.all.has(socket) && answer(state, exchange));
    return;
  }
  state.next.set(socket, exchange);
  state.turn ??= setImmediate(() => takeTurn(state));
}

function takeTurn(state: State): void {
  const [first] = state.next;
  if (first !== undefined) {
    state.next.delete(first[0]);
    answer(state, first[1]);
  }
  state.turn = state.next.size > 0 ? setImmediate(() => takeTurn(state)) : null;
}

function is(state: State, socket: object, what: Pick<Connection, 'isKnown' | 'isLetIn'>): void {
  const known = state.all.get(socket);
  if (known === undefined) return;
  Object.assign(known, what);
  place(state, socket as Socket);
}

/** Gives a connection the last place among those that may give way, if it is one of them. */
function place(state: State, socket: Socket): void {
  const known = state.all.get(socket);
  if (known === undefined) return;
  remove(state, socket, known);
  const { isKnown, isLetIn, current, network } = known;
  if (isKnown && current === null) state.idle.add(socket);
  if (isKnown || isLetIn) return;
  state.strangers.add(socket);
  if (network === null) return;
  const group = state.strangersOf.get(network) ?? new Set();
  state.strangersOf.set(network, group.add(socket));
  if (group.size > state.limits.mostOfAddress) giveWay(state, group);
}

function giveWay(state: State, [first]: Iterable<Socket>): void {
  if (first !== undefined) drop(state, first);
}

function drop(state: State, socket: Socket): void {
  forget(state, socket);
  socket.destroy();
}

function forget(state: State, socket: Socket): void {
  const known = state.all.get(socket);
  state.next.delete(socket);
  state.all.delete(socket);
  state.waiting -= known?.waiting.length ?? 0;
  if (known) remove(state, socket, known);
}

function remove({ strangers, strangersOf, idle }: State, socket: Socket, { network }: Connection): void {
  strangers.delete(socket);
  idle.delete(socket);
  const group = network === null ? undefined : strangersOf.get(network);
  group?.delete(socket);
  if (network !== null && group?.size === 0) strangersOf.delete(network);
}

function lookAround(state: State): void {
  for (const call of state.patient) call.look();
  endUnread(state);
}

/** An answer that is not read fills this machine's memory, and may be dripped for ever. */
function endUnread(state: State): void {
  const { strangerSeconds, stillSeconds, lookEveryMs } = state.limits;
  for (const [socket, known] of state.all as Map<Socket, Connection>) {
    if (known.current?.headersSent !== true) continue;
    known.looks += 1;
    // Node ends it then, unless some of it has moved.
    if (known.looks === 1) socket.setTimeout(stillSeconds * 1000);
    if (!known.isKnown && (known.looks - 1) * lookEveryMs >= strangerSeconds * 1000) drop(state, socket);
  }
}
