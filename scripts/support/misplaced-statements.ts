import type { Migration } from '../../src/postgres/migrations/read-migrations.ts';

/** What may run outside of a transaction, since it can be repeated after a crash. The first is built anew where it was broken off. */
const REPEATABLE = [
  /^CREATE (UNIQUE )?INDEX CONCURRENTLY "\w+" ON "\w+" /,
  /^DROP INDEX CONCURRENTLY IF EXISTS "\w+";?$/,
  /^ALTER TABLE "\w+" VALIDATE CONSTRAINT "\w+";?$/,
];

/** A statement outside of a transaction that cannot be repeated, and one inside that PostgreSQL refuses there. */
export function misplacedStatements(migrations: readonly Migration[]): string[] {
  return migrations.flatMap(({ name, isOutside, statements }) =>
    statements
      .filter((statement) =>
        isOutside ? !REPEATABLE.some((form) => form.test(statement)) : statement.includes(' CONCURRENTLY '),
      )
      .map((statement) => `${name}: ${statement.split('\n')[0] ?? ''}`),
  );
}
