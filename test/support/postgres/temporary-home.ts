import { constants, rmSync } from 'node:fs';
import { access, chmod, mkdtemp, realpath, rm, statfs } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { type Account, chooseAccount } from '../../../src/local-postgres/binaries.ts';
import { type Home, homeLink, openHome } from '../../../src/local-postgres/home.ts';

interface TemporaryHome {
  home: Home;
  account: Account | undefined;
  remove: () => Promise<void>;
  /** While the process exits: memory would hold the files until the machine stops. */
  removeAtOnce: () => void;
}

/** Where a server keeps its files, in a directory that begins so; and who runs it. */
export async function temporaryHome(prefix: string, { durable }: { durable: boolean }): Promise<TemporaryHome> {
  const parent = !durable && (await isRoomy(MEMORY)) ? MEMORY : tmpdir();
  const directory = await realpath(await mkdtemp(join(parent, prefix)));
  // As root the server runs as someone else, who has to get in.
  await chmod(directory, 0o755);
  const account = await chooseAccount(homeLink(directory));
  const home = await openHome(directory, account);
  const all = [home.directory, directory];
  const remove = async () => {
    for (const path of all) await rm(path, { recursive: true, force: true });
  };
  const removeAtOnce = () => {
    for (const path of all) rmSync(path, { recursive: true, force: true });
  };
  return { home, account, remove, removeAtOnce };
}

/** A file system of Linux in memory: a database has 500 files, and to make and remove them costs a sixth there of what it costs on a disk. */
const MEMORY = '/dev/shm';
/** Several times what the servers of a run take. */
const ROOM = 4 * 1024 ** 3;

async function isRoomy(directory: string): Promise<boolean> {
  try {
    await access(directory, constants.W_OK);
    const { bavail, bsize } = await statfs(directory);
    return bavail * bsize >= ROOM && process.availableMemory() >= 2 * ROOM;
  } catch {
    return false;
  }
}
