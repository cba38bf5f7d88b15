import type { Database } from '../../../src/postgres/database.ts';
import type { Executor } from '../../../src/postgres/executor.ts';

/** The same, which writes into `statements` what its work executes: by the function that each statement names, else its text. */
export function notingAll(database: Database, statements: string[]): Database {
  return {
    ...database,
    run: (work, limitMs) => database.run((db) => work(noting(db, statements)), limitMs),
    transaction: (work, limitMs) => database.transaction((tx) => work(noting(tx, statements)), limitMs),
  };
}

function noting<Db extends Executor>(db: Db, statements: string[]): Db {
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
