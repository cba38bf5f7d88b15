import { execFile } from 'node:child_process';
import { existsSync, globSync } from 'node:fs';
import { chmod, mkdir, mkdtemp, rename, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout } from 'node:timers/promises';
import { promisify } from 'node:util';
import { type TestContext, onTestFinished } from 'vitest';
import { startCommand } from './programs.ts';

const run = promisify(execFile);
const CRON = '/usr/sbin/cron';
/** Debian's package libfaketime. */
const [LIBRARY = ''] = globSync('/usr/lib/*/faketime/libfaketime.so.1');
/** So many times faster its clock runs; 1: as it is. The jobs have the clock of all. */
const RATE = Number(process.env['FIRELOCK_TEST_CRON_RATE'] ?? '10');

export const CRON_MINUTE_MS = 60_000 / RATE;

export interface DebianCron {
  /** For what its jobs write. */
  readonly folder: string;
  /** Says when it is to run what is due each minute for the first time: some seconds and a minute from now. */
  firstMinute(): number;
  /** The crontab of root in the place of the one before. It is read before each minute. */
  install(crontab: string | Buffer): Promise<void>;
  /** A minute before that. */
  start(): Promise<void>;
}

/** Debian's cron itself, with one crontab and nothing of this machine's. Skips the test where it cannot be. */
export async function debianCron(context: TestContext): Promise<DebianCron> {
  const folder = await mkdtemp(join(tmpdir(), 'firelock-cron-'));
  onTestFinished(() => rm(folder, { recursive: true, force: true, maxRetries: 10 }));
  const missing = await whatIsMissing();
  if (missing !== null) context.skip(missing);
  for (const name of ['spool', 'none']) await mkdir(join(folder, name), { mode: 0o700 });
  await writeFile(join(folder, 'crontab'), '');
  await writeFile(join(folder, 'pam'), PAM);
  await writeFile(join(folder, 'start'), START);
  let first: number | undefined;
  return {
    folder,
    firstMinute: () => (first ??= firstFrom(Date.now() + 3000)),
    install: async (crontab) => {
      const draft = join(folder, 'draft');
      await writeFile(draft, crontab, { mode: 0o600 });
      await chmod(draft, 0o600);
      await rename(draft, join(folder, 'spool', 'root'));
    },
    start: async () => {
      await setTimeout(Math.max(0, (first ?? 0) - CRON_MINUTE_MS - Date.now()));
      const env = { PATH: process.env['PATH'], TZ: 'UTC', ...(RATE === 1 ? {} : FAST) };
      const args = ['--mount', 'sh', join(folder, 'start'), folder, CRON];
      // What its jobs print would be waited for.
      const cron = startCommand('unshare', args, { env, stdio: 'ignore' });
      onTestFinished(() => cron.kill());
    },
  };
}

/** Its clock begins at a whole minute, unless it is that of all. */
function firstFrom(soon: number): number {
  return RATE === 1 ? Math.ceil(soon / 60_000) * 60_000 : Math.ceil(soon / 1000) * 1000 + CRON_MINUTE_MS;
}

const FAST = {
  FIRELOCK_PRELOAD: LIBRARY,
  FAKETIME: `@2030-01-01 00:00:00 x${RATE}`,
  NO_FAKE_STAT: '1',
};
const PAM = ['auth', 'account', 'session'].map((kind) => `${kind} required pam_permit.so\n`).join('');
const START = `set -e
mount -t tmpfs none /run
mount --bind "$1/spool" /var/spool/cron/crontabs
mount --bind "$1/none" /etc/cron.d
mount --bind "$1/crontab" /etc/crontab
mount --bind "$1/pam" /etc/pam.d/cron
LD_PRELOAD=$FIRELOCK_PRELOAD exec "$2" -f -L 15
`;

async function whatIsMissing(): Promise<string | null> {
  if (!existsSync(CRON)) return "needs Debian's cron: apt-get install cron";
  if (RATE !== 1 && LIBRARY === '') return 'needs libfaketime (Debian: apt-get install libfaketime)';
  const mounts = await run('unshare', ['--mount', 'mount', '-t', 'tmpfs', 'none', '/run']).catch(() => null);
  return mounts === null ? 'needs root, who may mount: cron reads its crontabs at one place' : null;
}
