import { sql } from 'drizzle-orm';
import type { Executor } from './executor.ts';
import { rowsOf } from './sql/rows.ts';

/** The database cannot have the tables of firelock, or not where its role would look for them. */
class DatabaseUnusable extends Error {
  override readonly name = 'DatabaseUnusable';
  readonly code: '3F000' | 'NOT_UTF8';
  constructor(code: DatabaseUnusable['code'], message: string) {
    super(message);
    this.code = code;
  }
}

interface Found {
  database: string;
  encoding: string;
  schema: string | null;
  search_path: string;
  role: string;
}

/** Called before anything is migrated. @throws DatabaseUnusable */
export async function checkUsable(db: Executor): Promise<void> {
  const [found] = await rowsOf<Found>(db)(sql`-- checkUsable
    SELECT quote_ident(current_database()) AS database, current_setting('server_encoding') AS encoding,
      current_schema() AS schema, current_setting('search_path') AS search_path, quote_ident(current_user) AS role`);
  if (!found) return;
  const { database, encoding, schema, search_path, role } = found;
  // Texts of users hold any characters, and a row that cannot be written would stop a batch.
  if (encoding !== 'UTF8')
    throw new DatabaseUnusable(
      'NOT_UTF8',
      `database ${database} has the encoding ${encoding}, and firelock needs UTF8: ` +
        "make another one by CREATE DATABASE … TEMPLATE template0 ENCODING 'UTF8'",
    );
  if (schema === null)
    throw new DatabaseUnusable(
      '3F000',
      `search_path is ${search_path}, and names no schema that exists and that role ${role} may use: ` +
        `CREATE SCHEMA … AUTHORIZATION ${role}, or GRANT USAGE, CREATE ON SCHEMA … TO ${role}`,
    );
}
