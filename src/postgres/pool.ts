import { setTimeout as delay } from 'node:timers/promises';
import { sql } from 'drizzle-orm';
import { type ConnectionBudget, isTooMany } from './connection-budget.ts';
import { type LastingConnection, connect } from './connection/lasting-connection.ts';
import type { Session } from './connection/session.ts';
import { type Deadline, deadline } from './deadline.ts';
import { OutOfTime, QueryTimeout, isReadOnly, isSessionLost, markAsOfDatabaseWork } from './errors.ts';
import type { Executor } from './executor.ts';

/** At this moment. */
export interface PoolUsage {
  /** The most connections that it may have. */
  size: number;
  /** Connections that work has. */
  busy: number;
  /** Pieces of work that wait for a connection. */
  waiting: number;
}

interface PoolOptions {
  url: string;
  size: number;
  mayBeTooMuch: boolean;
  budget: ConnectionBudget;
}

/** How a piece of work on a connection went. */
interface Piece {
  connection: LastingConnection;
  limit: Deadline;
  isBegun: boolean;
  usable: boolean;
}

const ANSWER_LIMIT_MS = 2_000;
const COMMITTED_NOTHING = sql`SELECT pg_logical_emit_message(true, 'firelock', '')`;
const CLOSING_MS = 5_000;

/**
 * Our own pool, since the driver's cannot end one query that hangs: here each connection is a client by itself, which
 * is thrown away, with its query, when its time is up.
 */
export class ConnectionPool {
  readonly #options: PoolOptions;
  readonly #idle: LastingConnection[] = [];
  readonly #all = new Set<LastingConnection>();
  #underWay = 0;
  #onIdle: (() => void) | null = null;
  readonly #waiting: ((connection: LastingConnection) => void)[] = [];
  /** The one that it always has; all others are spare. */
  #first: LastingConnection;
  #isClosed = false;

  constructor(options: PoolOptions) {
    this.#options = options;
    this.#first = this.#connect();
    this.#idle.push(this.#first);
    options.budget.onChange(() => this.#fit());
  }

  usage(): PoolUsage {
    const { size } = this.#options;
    return { size, busy: this.#all.size - this.#idle.length, waiting: this.#waiting.length };
  }

  /** Opens its first connection, if that is not open. */
  async open(): Promise<void> {
    await this.#sessionOf(this.#first);
  }

  async close(): Promise<void> {
    const idle = new Promise<void>((resolve) => (this.#onIdle = resolve));
    if (this.#underWay > 0) await Promise.race([idle, delay(CLOSING_MS, undefined, { ref: false })]);
    this.#isClosed = true;
    await Promise.all([...this.#all].map((connection) => connection.close()));
  }

  async use<T>(work: (db: Executor) => Promise<T>, limitMs: number): Promise<T> {
    this.#underWay += 1;
    try {
      return await this.#use(work, limitMs);
    } finally {
      this.#underWay -= 1;
      if (this.#underWay === 0) this.#onIdle?.();
    }
  }

  async #use<T>(work: (db: Executor) => Promise<T>, limitMs: number): Promise<T> {
    const connection = await this.#acquire(limitMs);
    const piece: Piece = { connection, limit: deadline(limitMs), isBegun: false, usable: true };
    const { limit } = piece;
    try {
      const working = this.#sessionOf(connection).then(({ executor }) => {
        // By now, another piece of work may be using it.
        if (limit.isOver()) throw new QueryTimeout(limitMs);
        piece.isBegun = true;
        return work(executor);
      });
      return await Promise.race([working, limit.expired]);
    } catch (error) {
      // There are not as many as were asked for: the work waits for one that is there.
      if (!piece.isBegun && connection !== this.#first && isTooMany(error)) {
        this.#drop(connection);
        return await this.#use(work, limitMs);
      }
      throw await this.#failed(piece, error, limitMs);
    } finally {
      limit.clear();
      this.#end(piece);
    }
  }

  /** Answers the error to throw. */
  async #failed(piece: Piece, error: unknown, limitMs: number): Promise<unknown> {
    markAsOfDatabaseWork(error);
    piece.usable = !isReadOnly(error) && !isSessionLost(error);
    if (isReadOnly(error)) {
      piece.connection.mayNotWrite();
      this.#replaceIdle();
    }
    const isOutOfTime = piece.isBegun && piece.limit.isOver() && error instanceof QueryTimeout;
    if (!isOutOfTime || !this.#options.mayBeTooMuch) return error;
    return (await this.#answersOtherwise(piece)) ? new OutOfTime(limitMs) : error;
  }

  /**
   * Work was too much if the database answers something else. If it does not, an idle connection hangs too, and would fail the next
   * work. Asked in the place that the work had: all others may be busy for as long.
   */
  async #answersOtherwise(piece: Piece): Promise<boolean> {
    const late = piece.connection;
    void late.destroy();
    piece.connection = this.#inPlaceOf(late);
    const limit = deadline(ANSWER_LIMIT_MS);
    // It commits something: where a synchronous standby is gone, reads are answered, and commits are not.
    const answered = this.#sessionOf(piece.connection).then(({ executor }) => executor.execute(COMMITTED_NOTHING));
    const answers = await Promise.race([answered, limit.expired]).then(
      () => true,
      () => false,
    );
    limit.clear();
    piece.limit = limit;
    piece.usable = answers;
    if (!answers) this.#replaceIdle();
    return answers;
  }

  #end({ connection, limit, usable }: Piece): void {
    if (!this.#all.has(connection)) return;
    if ((usable && !limit.isOver()) || connection.isOpening()) {
      this.#giveBack(connection);
    } else {
      void connection.destroy();
      this.#giveBack(this.#inPlaceOf(connection));
    }
  }

  async #sessionOf(connection: LastingConnection): Promise<Session> {
    const { budget } = this.#options;
    if (connection.isOpen()) return connection.session();
    const isFirst = connection === this.#first;
    if (isFirst) budget.lacksFirst(this);
    try {
      const session = await connection.session();
      if (isFirst) budget.hasFirst(this);
      return session;
    } catch (error) {
      budget.failed(error, isFirst ? 'first' : 'other');
      throw error;
    }
  }

  async #acquire(limitMs: number): Promise<LastingConnection> {
    const free = this.#idle.pop() ?? this.#spare();
    if (free) return free;
    return new Promise((resolve, reject) => {
      const take = (connection: LastingConnection): void => {
        clearTimeout(timer);
        resolve(connection);
      };
      const timer = setTimeout(() => {
        this.#waiting.splice(this.#waiting.indexOf(take), 1);
        reject(new QueryTimeout(limitMs));
      }, limitMs);
      this.#waiting.push(take);
    });
  }

  #spare(): LastingConnection | undefined {
    const mayGrow = this.#all.size < this.#options.size && !this.#isClosed;
    return mayGrow && this.#options.budget.takeSpare() ? this.#connect() : undefined;
  }

  /** Gives back what others need, or takes what work waits for. */
  #fit(): void {
    const { budget } = this.#options;
    for (const connection of this.#idle.filter((one) => one !== this.#first)) {
      if (!budget.isOver()) break;
      this.#idle.splice(this.#idle.indexOf(connection), 1);
      this.#drop(connection);
    }
    while (this.#waiting.length > 0) {
      const spare = this.#spare();
      if (!spare) return;
      this.#giveBack(spare);
    }
  }

  #giveBack(connection: LastingConnection): void {
    if (connection !== this.#first && this.#options.budget.isOver()) {
      this.#drop(connection);
      return;
    }
    (this.#waiting.shift() ?? ((one) => this.#idle.push(one)))(connection);
  }

  #drop(spare: LastingConnection): void {
    if (!this.#all.delete(spare)) return;
    void spare.close();
    this.#options.budget.returnSpare();
  }

  #connect(): LastingConnection {
    const connection = connect(this.#options.url);
    this.#all.add(connection);
    return connection;
  }

  #inPlaceOf(connection: LastingConnection): LastingConnection {
    this.#all.delete(connection);
    const fresh = this.#connect();
    if (connection === this.#first) this.#first = fresh;
    return fresh;
  }

  /**
   * Those that are idle were opened at about the same time as one that has failed: they would only find out one after the other. One that
   * opens just now goes on: where the way to the database is slow, another would only begin later.
   */
  #replaceIdle(): void {
    for (const other of this.#idle.splice(0)) {
      if (other.isOpening()) {
        this.#giveBack(other);
      } else {
        void other.close();
        this.#giveBack(this.#inPlaceOf(other));
      }
    }
  }
}
