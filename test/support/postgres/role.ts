import postgres from 'postgres';
import { onTestFinished } from 'vitest';
import { createDatabase } from './cluster.ts';

/** An ordinary role that owns a fresh database, as daemons come; no limit stops the administrator. */
interface RoleOfTest {
  readonly url: string;
  /** Of the database, and of the role. */
  readonly name: string;
  readonly admin: postgres.Sql;
}

export async function roleOfTest(): Promise<RoleOfTest> {
  const database = await createDatabase();
  const url = new URL(database.url);
  const name = url.pathname.slice(1);
  const admin = postgres(database.url, { max: 1, onnotice: () => undefined });
  await admin.unsafe(`CREATE ROLE ${name} LOGIN PASSWORD 'daemon'; ALTER DATABASE ${name} OWNER TO ${name}`);
  onTestFinished(async () => {
    await admin.unsafe(`ALTER DATABASE ${name} OWNER TO CURRENT_USER; DROP OWNED BY ${name} CASCADE`);
    await admin.end();
    await database.drop();
    const server = postgres(database.url.replace(name, 'postgres'), { max: 1, onnotice: () => undefined });
    await server.unsafe(`DROP ROLE ${name}`);
    await server.end();
  });
  [url.username, url.password] = [name, 'daemon'];
  return { url: url.href, name, admin };
}
