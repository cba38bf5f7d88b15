import { sql } from 'drizzle-orm';
import { expect, it } from 'vitest';
import { createLogger } from '../../../src/observability/log/logger.ts';
import { openDatabase } from '../../../src/postgres/database.ts';
import { createDatabase } from '../../support/postgres/cluster.ts';

it('a failed query is logged with its reason and its place, without its data', async () => {
  const { url, drop } = await createDatabase();
  const database = openDatabase(url, 1);
  const lines: string[] = [];
  const logger = createLogger('info', { write: (line: string) => lines.push(line) });
  const failing = database.run((db) =>
    db.execute(sql`SELECT ${'Bearer TOPSECRET42'}::text FROM no_such_table`),
  );
  logger.error({ err: await failing.catch((error: unknown) => error) }, 'it failed');
  await database.close();
  await drop();
  const [line = '', ...others] = lines;
  expect(others).toEqual([]);
  expect(line).not.toContain('TOPSECRET42');
  const logged = JSON.parse(line) as { pid: number; err: { reason: string; stack: string } };
  expect(logged.pid).toBe(process.pid);
  expect(logged.err.reason).toContain('no_such_table');
  expect(logged.err.stack).toContain('database.ts');
});
