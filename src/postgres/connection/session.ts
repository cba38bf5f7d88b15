import type { Socket } from 'node:net';
import type { Readable, Writable } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import { drizzle } from 'drizzle-orm/postgres-js';
import postgres from 'postgres';
import { type DatabaseTls, type DatabaseUrl, type Host, hostText } from '../../config/database-url.ts';
import { type Client, createClient } from './client.ts';
import { ConnectionLost, NotReadCommitted } from '../errors.ts';
import type { Executor } from '../executor.ts';
import { type InTransaction, transaction } from '../transaction.ts';
import { openSocket } from './socket.ts';

/** One session on one server: it ends with its connection, and is never opened again. */
export interface Session {
  readonly host: Host;
  readonly executor: Executor;
  readonly mayWrite: boolean;
  /** The rows that a `COPY … TO STDOUT` answers. */
  copyOut(statement: string): Promise<Readable>;
  /** Sends rows to a `COPY … FROM STDIN`. */
  copyIn(statement: string, rows: AsyncIterable<Buffer>): Promise<void>;
  /** Whether its connection is there, and not so old that a new one should replace it. */
  isUsable(): boolean;
  /** Resolves when its connection is gone. */
  readonly lost: Promise<void>;
  /** Waits for the statement that runs in it. */
  close(): Promise<void>;
  /** Drops it with everything that runs in it, here and on the server. */
  destroy(): Promise<void>;
}

export interface SessionOptions {
  onNotify?: (channel: string) => void;
}

/** Connects, logs in, and finds out which kind of session it is, all within the limit. */
export async function openSession(
  url: DatabaseUrl,
  host: Host,
  limitMs: number,
  { onNotify }: SessionOptions = {},
): Promise<Session> {
  const client = createClient(url, host, onNotify);
  let timer: NodeJS.Timeout | undefined;
  const late = new Promise<never>((_, reject) => {
    const message = `no session on ${hostText(host)} within ${limitMs} ms`;
    timer = setTimeout(() => reject(new ConnectionLost('CONNECT_TIMEOUT', message)), limitMs);
  });
  try {
    return sessionOn(url, host, client, await Promise.race([look(client.sql), late]));
  } catch (error) {
    void client.drop();
    throw error;
  } finally {
    clearTimeout(timer);
  }
}

interface Look {
  key: Key;
  /** No pooler is in between: the session can hold state. */
  isOwn: boolean;
  mayWrite: boolean;
}

/**
 * A pooler gives out cancel keys of its own, since its client has no fixed backend. If the key names the answering
 * backend, no pooler is in between. Single statements take their isolation from the default of the role or the
 * database. In a session of our own, this code corrects it. It cannot change a pooler's session, so another default is
 * refused there. Nor does it keep a pooler's session from compiling statements.
 */
async function look(sql: postgres.Sql): Promise<Look> {
  const rows = await sql.unsafe<LookRow[]>(LOOK);
  const [row] = rows;
  if (!row) throw new ConnectionLost('CONNECTION_CLOSED', 'the server did not say what session it is');
  const { pid, read_only, isolation, role } = row;
  const { pid: keyPid, secret } = rows.state;
  const isOwn = keyPid === pid;
  if (isolation !== 'read committed') {
    if (!isOwn) throw new NotReadCommitted(role, isolation);
    await sql.unsafe('SET SESSION CHARACTERISTICS AS TRANSACTION ISOLATION LEVEL READ COMMITTED');
  }
  if (isOwn) await sql.unsafe(PLANNING);
  return { key: { pid: keyPid, secret }, isOwn, mayWrite: read_only === 'off' };
}

interface LookRow {
  pid: number;
  read_only: string;
  isolation: string;
  role: string;
}

const LOOK = `SELECT pg_backend_pid() AS pid, current_setting('transaction_read_only') AS read_only,
  current_setting('transaction_isolation') AS isolation, quote_ident(current_user) AS role`;

/**
 * With `jit`, the server compiles a statement that it expects to be dear, for every execution anew: that took a second for one of 20 ms.
 * And it would keep the plan of a statement that has a name. A plan that was made while a table was empty reads all of it; when 50,000 rows
 * had come, to claim 1,000 of them took more than 5 s. So each execution is planned, which takes the server about half a millisecond.
 */
const PLANNING = "SELECT set_config('jit', 'off', false), set_config('plan_cache_mode', 'force_custom_plan', false)";

function sessionOn(url: DatabaseUrl, host: Host, client: Client, { key, isOwn, mayWrite }: Look): Session {
  return {
    host,
    mayWrite,
    copyOut: (statement) => copyOut(client.sql, statement),
    copyIn: (statement, rows) => copyIn(client.sql, statement, rows),
    executor: executorOn(host, client, isOwn ? new RepeatedStatements() : undefined),
    isUsable: client.isUsable,
    lost: client.lost,
    close: client.close,
    destroy: async () => {
      client.shut();
      await sendCancelRequest(host, url.tls, key);
      await client.drop();
    },
  };
}

/** The name of a statement after its first word: from 18 on, pg_stat_statements leaves out a comment that stands before that. */
function withNameInside(text: string): string {
  return text.replace(/^(-- \w+\n)\s*(\w+|\()/, '$2 $1');
}

/** `repeated`: those are prepared by name; never in a transaction, which would fail over an unknown name. */
function executorOn(host: Host, { sql, isOpen }: Client, repeated: RepeatedStatements | undefined): Executor {
  const send = (text: string, parameters: unknown[] = [], prepare = false) => {
    if (!isOpen()) throw new ConnectionLost('CONNECTION_ENDED', `the session on ${hostText(host)} has ended`);
    return sql.unsafe<postgres.Row[]>(withNameInside(text), parameters as never[], { prepare });
  };
  const unsafe = (text: string, parameters: unknown[] = [], { prepare = false } = {}) =>
    send(text, parameters, prepare && repeated?.comesAgain(text) === true);
  const begin = <T>(work: (scope: InTransaction) => Promise<T>) => transaction({ unsafe: send }, work);
  // The part of it that the query builder uses.
  return drizzle({ options: sql.options, unsafe, begin } as unknown as postgres.Sql);
}

/** The server's cancel key of a session. */
interface Key {
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
async function sendCancelRequest(host: Host, tls: DatabaseTls, { pid, secret }: Key): Promise<void> {
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

/** The rows that a `COPY … TO STDOUT` answers: no more of them are in memory than the reader is behind. */
function copyOut(sql: postgres.Sql, statement: string): Promise<Readable> {
  return sql.unsafe(statement).readable();
}

/**
 * Sends rows to a `COPY … FROM STDIN`. To the driver it has succeeded with its first answer, and it keeps what the server says
 * afterwards for itself: so that is heard here.
 */
async function copyIn(sql: postgres.Sql, statement: string, rows: AsyncIterable<Buffer>): Promise<void> {
  const query = sql.unsafe(statement);
  const failed = new Promise<never>((_, reject) => void Object.assign(query, { reject }));
  const sent = Promise.race([query.writable(), failed]).then((into: Writable) => pipeline(rows, into));
  // What the server says comes first; the stream is then broken off too.
  sent.catch(() => undefined);
  await Promise.race([failed, sent]);
}

/**
 * The statements that have come before in a session: only these are prepared by name, since one that comes once must not stay in the
 * session.
 *
 * A statement with a name is parsed once in a session, which saves the server a good part of a small batch. But it belongs to the session,
 * and with a pooler between, the next statement may run in another one. So names are used only if the session is proven to be this
 * process's own. They are never needed.
 */
class RepeatedStatements {
  readonly #seen = new Set<string>();

  comesAgain(text: string): boolean {
    if (this.#seen.has(text)) return true;
    if (this.#seen.size >= MAX_SEEN) this.#seen.clear();
    this.#seen.add(text);
    return false;
  }
}

const MAX_SEEN = 100;
