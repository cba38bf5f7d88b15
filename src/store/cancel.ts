import { connect } from 'node:net';
import type postgres from 'postgres';
import { type Naming, letName } from './sessions.ts';

/** A client whose statements can be cancelled on the server. */
export interface Cancellable {
  client: postgres.Sql;
  /**
   * Asks the server to end what runs; resolves when it has heard, or cannot be reached in time. Only then may the connection be closed: a
   * pooler between forgets the key of a client that is gone, and leaves its statement alone.
   */
  cancel: () => Promise<void>;
  /** The statement sent last, as the driver has it. */
  latest: () => unknown;
}

/**
 * A connection that is thrown away takes nothing with it on the server: a statement that waits there for a lock goes on waiting, and
 * holds a connection, until the server has none left. So it is cancelled, as the protocol has it (PostgreSQL documentation,
 * "Message Flow", canceling requests in progress): by a connection of its own, with the key of the one that runs it. Not by the driver's
 * `cancel`, whose failure nobody could catch.
 *
 * `naming`: which of its statements are prepared by name.
 */
export function cancellable(client: postgres.Sql, naming: Naming): Cancellable {
  let latest: unknown;
  const send: Send = (call, [text, parameters, options], isAlone) => {
    // A name that is not there fails a whole transaction; a statement that is alone, the driver sends again.
    const isNamed = isAlone && naming.names(text, parameters, options);
    // Without parameters the driver would send it by the protocol that knows no names.
    const how = isNamed ? { prepare: true, simple: false } : { prepare: false };
    const query = call(text, parameters, { ...(options as object), ...how });
    if (isNamed) letName(query, client);
    latest = query;
    return query;
  };
  return {
    client: sendingBy(client, send, true),
    latest: () => latest,
    cancel: async () => {
      const key = keyOf(latest);
      if (key) await sendCancelRequest(client.options, key);
    },
  };
}

type Call = (...args: unknown[]) => unknown;
type Send = (call: Call, args: unknown[], isAlone: boolean) => unknown;

/** The same client, and those of its transactions, with each statement sent by way of `send`; `isAlone`: in no transaction. */
function sendingBy<Client extends object>(client: Client, send: Send, isAlone: boolean): Client {
  return new Proxy(client, {
    get(target, name, receiver) {
      const value: unknown = Reflect.get(target, name, receiver);
      if (typeof value !== 'function') return value;
      const call: Call = (...args) => Reflect.apply(value, target, args);
      if (name === 'unsafe') return (...args: unknown[]) => send(call, args, isAlone);
      if (name !== 'begin') return value;
      return (...args: unknown[]) => {
        const work = args.pop() as (tx: object) => unknown;
        return call(...args, (tx: object) => work(sendingBy(tx, send, false)));
      };
    },
  });
}

interface Key {
  pid: number;
  secret: number;
}

/** The driver keeps it with the statement that runs; one that has not begun has none. */
function keyOf(query: unknown): Key | undefined {
  const { active, state } = (query ?? {}) as { active?: boolean; state?: Partial<Key> | null };
  const { pid, secret } = state ?? {};
  return active === true && typeof pid === 'number' && typeof secret === 'number'
    ? { pid, secret }
    : undefined;
}

const CANCEL_REQUEST = 80_877_102;
const LIMIT_MS = 2_000;

function sendCancelRequest(
  { host, port, path }: postgres.ParsedOptions,
  { pid, secret }: Key,
): Promise<void> {
  const message = Buffer.alloc(16);
  message.writeUInt32BE(16, 0);
  message.writeUInt32BE(CANCEL_REQUEST, 4);
  message.writeUInt32BE(pid >>> 0, 8);
  message.writeUInt32BE(secret >>> 0, 12);
  const socket = path ? connect(path) : connect(port[0] ?? 5432, host[0] ?? 'localhost');
  const closed = new Promise<void>((resolve) => socket.once('close', () => resolve()));
  socket.on('error', () => undefined);
  socket.setTimeout(LIMIT_MS, () => socket.destroy());
  socket.unref();
  // Left open until the other side closes it: PgBouncer 1.18 ends itself over a cancel request whose sender has gone already.
  socket.resume();
  socket.write(message);
  return closed;
}
