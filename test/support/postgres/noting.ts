import type { Executor } from '../../../src/postgres/executor.ts';

/** The same, which writes into `statements` what it executes: by the function that each statement names, else its text. */
export function noting<Db extends Executor>(db: Db, statements: string[]): Db {
  const { session } = db._;
  if (!writers.has(session)) {
    const prepare = session.prepareQuery.bind(session);
    session.prepareQuery = (query, ...more) => {
      writers.get(session)?.push(/-- (\w+)/.exec(query.sql)?.[1] ?? query.sql);
      return prepare(query, ...more);
    };
  }
  writers.set(session, statements);
  return db;
}

/** A connection is used for one piece of work after the other: each has its own. */
const writers = new WeakMap<object, string[]>();
