import type { Socket } from 'node:net';
import postgres from 'postgres';
import { type DatabaseUrl, type Host, hostText } from '../../config/database-url.ts';
import { ConnectionLost } from '../errors.ts';
import { openSocket } from './socket.ts';

/**
 * A client of the driver that has one connection, to one server, and never another. The driver by itself would open a
 * new one when that is lost, and send statements there that belong to a transaction of the previous session.
 */
export interface Client {
  readonly sql: postgres.Sql;
  /** Whether its connection is there, and not so old that a new one should replace it. */
  isUsable: () => boolean;
  /** Resolves when its connection is gone. */
  readonly lost: Promise<void>;
  /** False: nothing more may be sent. */
  isOpen: () => boolean;
  /** From now on nothing more may be sent. */
  shut: () => void;
  /** Waits for the statement that runs. */
  close: () => Promise<void>;
  /** Ends the connection at once, even if the server is frozen and does not close its side. */
  drop: () => Promise<void>;
}

/** Nothing is sent before its first statement; `onNotify` gets the channels of NOTIFY. */
export function createClient(url: DatabaseUrl, host: Host, onNotify?: (channel: string) => void): Client {
  const line = createLine(url, host);
  const sql = postgres(`postgres://localhost/${url.search}`, {
    ...OPTIONS,
    // As lists they are used unchanged, including the colons of IPv6.
    host: [host.name],
    port: [host.port],
    ...(url.database === undefined ? {} : { database: url.database }),
    ...(url.user === undefined ? {} : { username: url.user }),
    ...(url.password === undefined ? {} : { password: url.password }),
    socket: line.connect,
    onnotify: onNotify,
    onclose: () => {
      line.lose();
      // Refuses the statements that wait to be sent, and prevents the next connection.
      void sql.end({ timeout: 0 });
    },
  } as object);
  return {
    sql,
    lost: line.lost,
    isUsable: () => line.state() === 'usable',
    isOpen: () => line.state() !== 'shut',
    shut: line.shut,
    close: async () => {
      await sql.end({ timeout: 5 });
      line.end();
    },
    drop: async () => {
      line.shut();
      await sql.end({ timeout: 0 });
      line.end();
    },
  };
}

/** `socket` is documented, and the driver's listen() uses `onnotify`; neither is among its types. */
const OPTIONS = {
  max: 1,
  // Allows named statements; each statement that gets a name asks for it (session.ts).
  prepare: true,
  // The driver would ask for array types on every connection, and its caller does not wait for the answer: if the
  // connection broke in the middle of it, the process would end. Arrays are sent as text here (arrays.ts) and never
  // read.
  fetch_types: false,
  // TLS is set up before the driver gets the socket (tls.ts).
  ssl: false,
  // This module keeps these limits: the driver would end a session between two statements of a transaction.
  connect_timeout: 0,
  max_lifetime: null,
  idle_timeout: 0,
  onnotice: () => undefined,
  // Fixed here, so that reading rows does not depend on the server's settings.
  connection: { application_name: 'firelock', TimeZone: 'UTC', DateStyle: 'ISO' },
};

/** Up to twice that: the memory that a server keeps for a session grows, and names and addresses change. */
const LIFETIME_MS = 30 * 60_000;

type State = 'new' | 'usable' | 'old' | 'shut';

interface Line {
  connect: () => Promise<Socket>;
  state: () => State;
  shut: () => void;
  /** Its connection is gone. */
  lose: () => void;
  lost: Promise<void>;
  end: () => void;
}

function createLine({ tls }: DatabaseUrl, host: Host): Line {
  let state: State = 'new';
  let socket: Socket | undefined;
  let aging: NodeJS.Timeout | undefined;
  let resolveLost: () => void = () => undefined;
  const lost = new Promise<void>((resolve) => (resolveLost = resolve));
  const shut = () => {
    state = 'shut';
    clearTimeout(aging);
  };
  return {
    connect: () => {
      if (state !== 'new') throw new ConnectionLost('CONNECTION_CLOSED', `${hostText(host)} closed the connection`);
      state = 'usable';
      aging = setTimeout(() => (state = 'old'), LIFETIME_MS * (1 + Math.random())).unref();
      return openSocket(host, tls, (begun) => (socket = begun));
    },
    state: () => state,
    shut,
    lose: () => {
      shut();
      resolveLost();
    },
    lost,
    end: () => {
      shut();
      socket?.destroy();
    },
  };
}
