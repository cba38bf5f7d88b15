// @module-tag long
import { execFile } from 'node:child_process';
import { chmod, mkdtemp, rm, statfs, truncate, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { expect, it, onTestFinished } from 'vitest';
import { serverPid } from '../../local-postgres/user-process.ts';
import { type Daemon, startDaemon } from '../../support/daemon.ts';
import { receiverOfTest } from '../../support/of-test.ts';
import { until } from '../../support/until.ts';

const run = promisify(execFile);

/** In memory, with room for a database and little more; null: this user may mount nothing. */
async function smallDisk(): Promise<string | null> {
  const directory = await mkdtemp(join(tmpdir(), 'firelock-full-'));
  // As root the server runs as someone else, who has to get in.
  await chmod(directory, 0o755);
  onTestFinished(() => rm(directory, { recursive: true, force: true }));
  const isMounted = await run('mount', ['-t', 'tmpfs', '-o', 'size=160m,mode=755', 'tmpfs', directory]).then(
    () => true,
    () => false,
  );
  if (!isMounted) return null;
  onTestFinished(async () => {
    const pid = await serverPid(join(directory, 'data'));
    if (pid !== undefined) process.kill(pid, 'SIGQUIT');
    // What still has a file there lets go of it when it ends.
    await run('umount', ['--lazy', directory]);
  });
  return directory;
}

async function fill(disk: string): Promise<string> {
  const file = join(disk, 'filling');
  const { bavail, bsize } = await statfs(disk);
  // The daemon may have taken some of the room meanwhile.
  await writeFile(file, Buffer.alloc(bavail * bsize)).catch((error: unknown) => {
    expect(error).toMatchObject({ code: 'ENOSPC' });
  });
  return file;
}

interface Readiness {
  status: string;
  checks: Record<string, string>;
  warnings: string[];
}

async function readiness(daemon: Daemon): Promise<Readiness> {
  return (await daemon.call('GET', '/readyz')).body as Readiness;
}

it('a disk that is full is named everywhere, a SIGTERM leaves no server behind, and room is enough to go on', async (context) => {
  const disk = await smallDisk();
  if (disk === null) {
    context.skip('this user may mount no file system');
    return;
  }
  const receiver = await receiverOfTest();
  const dataDir = join(disk, 'data');
  const start = async () => {
    const daemon = await startDaemon({
      FIRELOCK_DATA_DIR: dataDir,
      FIRELOCK_HEARTBEAT_INTERVAL_SECONDS: '1',
      FIRELOCK_INSTANCE_TTL_SECONDS: '4',
    });
    await daemon.ready();
    return daemon;
  };
  const daemon = await start();
  const target = { type: 'http', url: receiver.url };
  for (let at = 0; at < 40; at += 1) {
    const put = await daemon.call('PUT', `/api/v1/schedules/s${at}`, { cron: '* * * * * *', target });
    expect(put.status).toBe(201);
  }
  await receiver.arrived(40);
  const filling = await fill(disk);

  const warned = await until(async () => {
    const now = await readiness(daemon);
    return now.warnings.some((text) => text.startsWith('the disk of the database is full')) ? now : null;
  });
  expect(warned.status).toBe('ready');
  const refused = await until(async () => {
    const answer = await daemon.call('POST', '/api/v1/runs', { target, payload: 'x'.repeat(60_000) });
    return answer.status === 503 ? answer : null;
  });
  expect(refused.body).toMatchObject({ detail: 'the disk of the database is full' });
  const said = () => daemon.log().filter(({ msg }) => msg.startsWith('the disk of the database is full'));
  expect(said()).toMatchObject([{ level: 50, reason: expect.stringContaining('53100') as string }]);
  const unready = await until(async () => {
    const now = await readiness(daemon);
    return now.status === 'unavailable' ? now : null;
  });
  expect(unready.checks).toMatchObject({
    ...{ database: 'ok', lease: 'ok' },
    loops: expect.stringMatching(/^the tick loop has failed for .*: the disk of the database is full/) as string,
  });

  daemon.signal('SIGTERM');
  expect(await daemon.exited).toBe(0);
  expect(await serverPid(dataDir)).toBeUndefined();
  expect((await run('pgrep', ['-f', dataDir]).catch(() => ({ stdout: '' }))).stdout).toBe('');

  await truncate(filling);
  const arrived = receiver.arrivals.length;
  const again = await start();
  await receiver.arrived(arrived + 40);
  again.signal('SIGTERM');
  expect(await again.exited).toBe(0);
});
