/** Keeps a redis-server for as long as the parent process lives, and then removes what it stored. */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import type { FromRedis } from './redis.ts';
import { freePort } from '../../test/support/loopback.ts';

const directory = mkdtempSync(join(tmpdir(), 'firelock-bench-redis-'));
const port = await freePort();
// What BullMQ's guide to production asks for: the append-only file, written back every second, and no eviction.
// Snapshots beside it are off: they would only cost time.
const redis = spawn(
  'redis-server',
  [
    ...['--bind', '127.0.0.1', '--port', String(port), '--dir', directory, '--daemonize', 'no'],
    ...['--appendonly', 'yes', '--appendfsync', 'everysec', '--save', '', '--maxmemory-policy', 'noeviction'],
  ],
  { stdio: ['ignore', 'pipe', 'inherit'] },
);
const ended = once(redis, 'exit');
// Ctrl-C reaches the whole group; the end of the channel is what counts.
process.on('SIGINT', () => undefined);
process.on('disconnect', () => redis.kill('SIGTERM'));
void ended.then(([code]: unknown[]) => {
  rmSync(directory, { recursive: true, force: true });
  process.exit(code === 0 ? 0 : 1);
});

createInterface(redis.stdout).on('line', (line) => {
  if (!line.includes('Ready to accept connections') || redis.pid === undefined) return;
  process.send?.({ type: 'ready', port, pid: redis.pid } satisfies FromRedis);
});
