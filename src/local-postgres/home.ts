import { randomBytes, randomUUID } from 'node:crypto';
import { chmod, mkdir, open, readFile, realpath, rename, rmdir, stat, symlink } from 'node:fs/promises';
import { dirname, join, resolve } from 'node:path';
import { type Account, firstUnreachable, giveTo } from './binaries.ts';
import { errorCode, makePublicRoot, syncToDisk, unlessMissing } from './files.ts';

/**
 * Everything that belongs to one embedded PostgreSQL. Only `cluster` belongs to the server's user; the rest to the user
 * that runs firelock, so that a program running as `nobody` cannot plant links for root to follow.
 */
export interface Home {
  readonly directory: string;
  /** The data and the password, renamed into place as one. */
  readonly cluster: string;
  readonly data: string;
  readonly passwordFile: string;
  readonly portFile: string;
  readonly logFile: string;
  /** One file per process that uses the server. */
  readonly users: string;
  /** Set when the home lies elsewhere: the directory that the server's user may not enter. */
  readonly closedDirectory?: string;
}

/** The place of the home, as seen from the data directory, whether it exists or not. */
export function homeLink(dataDirectory: string): string {
  return join(resolve(dataDirectory), 'postgres');
}

/**
 * Finds or makes `<dataDirectory>/postgres`. Where the server's user cannot reach it, it becomes a link to a new
 * directory under /var/lib/firelock.
 */
export async function openHome(dataDirectory: string, account: Account | undefined): Promise<Home> {
  const link = homeLink(dataDirectory);
  await makeDirectory(dirname(link), account);
  const parent = await realpath(dirname(link));
  const closed = account === undefined ? undefined : await firstUnreachable(account, parent);
  if ((await unlessMissing(stat(link))) === undefined) {
    await (closed === undefined ? makeDirectory(link, account) : linkElsewhere(link, account));
  }
  const directory = await realpath(link);
  const home = describe(directory, directory === join(parent, 'postgres') ? undefined : closed);
  await refuseIfUnusable(home, link, account);
  return home;
}

/** Creates a directory, if it is missing, that every local user may enter; if a person works as root, that person owns it. */
export async function makeDirectory(path: string, account: Account | undefined): Promise<void> {
  const first = await mkdir(path, { recursive: true });
  if (first === undefined || account === undefined) return;
  for (let made = path; made.length >= first.length; made = dirname(made)) {
    // Whatever root's umask is: the server's user must get through.
    await chmod(made, 0o755);
    if (account.isPerson) await giveTo(account, made);
  }
}

function describe(directory: string, closed: string | undefined): Home {
  const cluster = join(directory, 'cluster');
  return {
    directory,
    cluster,
    data: join(cluster, 'data'),
    passwordFile: join(cluster, 'password'),
    portFile: join(directory, 'port'),
    logFile: join(directory, 'server.log'),
    users: join(directory, 'users'),
    ...(closed === undefined ? {} : { closedDirectory: closed }),
  };
}

async function refuseIfUnusable(home: Home, link: string, account: Account | undefined): Promise<void> {
  const instead = `remove ${link} to begin with an empty database, or set DATABASE_URL`;
  if (account !== undefined) {
    const closed = await firstUnreachable(account, home.data);
    if (closed === undefined) return;
    throw new Error(`PostgreSQL would run as ${account.name}, who cannot enter ${closed}: open it, ${instead}`);
  }
  const owner = (await unlessMissing(stat(home.cluster))) ?? (await stat(home.directory));
  if (process.getuid !== undefined && owner.uid !== process.getuid()) {
    throw new Error(
      `the database in ${home.directory} belongs to uid ${owner.uid}, as after a start as root: ` +
        `start the same way again, ${instead}`,
    );
  }
}

async function linkElsewhere(link: string, account: Account | undefined): Promise<void> {
  const directory = join(await makePublicRoot(), randomBytes(8).toString('hex'));
  await makeDirectory(directory, account);
  try {
    await symlink(directory, link);
  } catch (error) {
    await rmdir(directory);
    // Another process was first; or the link points to a directory that is gone.
    if (errorCode(error) !== 'EEXIST') throw error;
    if ((await unlessMissing(stat(link))) === undefined) {
      throw new Error(`${link} points to nothing: remove it to begin with an empty database`, {
        cause: error,
      });
    }
  }
}

interface OwnKeyOptions {
  /** The directory above the home of this database. */
  directory: string;
  account: Account | undefined;
  /** The key is new. */
  onMade: (file: string) => void;
}

/** In the form of FIRELOCK_SECRET_KEYS. */
const KEY_LINE = /^[A-Za-z0-9._-]{1,64}:[A-Za-z0-9+/]{43}=$/;

/**
 * The key that encrypts secrets in this database if no other is configured; created if it is missing. Call it under the
 * home's lock. The key lies beside the database and not in it, so that a copy of the database alone does not reveal the
 * secrets.
 * @throws Error if the file has been changed
 */
export async function ownKey({ directory, account, onMade }: OwnKeyOptions): Promise<string> {
  const file = join(directory, 'secret-key');
  const text = await unlessMissing(readFile(file, 'utf8'));
  const line = text?.trim() ?? (await make(file, account));
  if (text === undefined) onMade(file);
  if (KEY_LINE.test(line)) return line;
  throw new Error(
    `${file} does not hold a key any more: bring it back from a backup, or remove it to begin with a new key ` +
      '(stored header values and secrets are then lost)',
  );
}

/** It appears complete, by a rename, or not at all. */
async function make(file: string, account: Account | undefined): Promise<string> {
  const line = `embedded-${randomBytes(4).toString('hex')}:${randomBytes(32).toString('base64')}`;
  const draft = `${file}.draft-${randomUUID()}`;
  const written = await open(draft, 'wx', 0o600);
  try {
    await written.writeFile(`${line}\n`);
    await written.sync();
  } finally {
    await written.close();
  }
  await chmod(draft, 0o600);
  // If a person works as root, that person will want to go on without root.
  if (account?.isPerson === true) await giveTo(account, draft);
  await rename(draft, file);
  await syncToDisk(dirname(file));
  return line;
}
