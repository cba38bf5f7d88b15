/**
 * The tests, with PgBouncer in transaction mode between them and a throw-away PostgreSQL. What brings a server of its
 * own (the embedded one, servers that are crashed) goes straight to that; the fault campaign is left out.
 *
 *     npm run test:pgbouncer [-- arguments of vitest]
 */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { join } from 'node:path';
import { startCluster } from '../test/support/postgres/server.ts';
import { startPgBouncer } from './support/pgbouncer.ts';
import { findProgram } from './support/programs-here.ts';

const root = join(import.meta.dirname, '..');
const program = findProgram('pgbouncer');
if (program === undefined) {
  console.error('there is no pgbouncer; install it (Debian, Ubuntu: apt-get install pgbouncer)');
  process.exitCode = 2;
} else {
  process.exitCode = await runTests(program);
}

async function runTests(pgbouncer: string): Promise<number> {
  const cluster = await startCluster();
  try {
    const pooler = await startPgBouncer(pgbouncer, cluster.url);
    try {
      return await vitest(pooler.url);
    } finally {
      await pooler.stop();
    }
  } finally {
    await cluster.stop();
  }
}

async function vitest(url: string): Promise<number> {
  const program = join(root, 'node_modules', 'vitest', 'vitest.mjs');
  const options = ['run', '--exclude=test/chaos/**', ...process.argv.slice(2)];
  const child = spawn(process.execPath, [program, ...options], {
    cwd: root,
    env: { ...process.env, FIRELOCK_TEST_DATABASE_URL: url, FIRELOCK_TEST_POOLER: '1' },
    stdio: 'inherit',
  });
  // From a terminal the tests hear of it themselves; the servers must outlive them.
  for (const signal of ['SIGINT', 'SIGTERM'] as const) process.on(signal, () => child.kill(signal));
  const [code] = (await once(child, 'exit')) as [number | null];
  return code ?? 1;
}
