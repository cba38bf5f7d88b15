import { chown, readFile, stat } from 'node:fs/promises';
import { dirname, parse } from 'node:path';
import { unlessMissing } from './files.ts';

/** The ordinary user that the server runs as when firelock runs as root. PostgreSQL refuses root. */
export interface Account {
  readonly uid: number;
  readonly gid: number;
  readonly name: string;
  /** Whether a person started the process as root, for example by sudo, and will want to go on without root. */
  readonly isPerson: boolean;
}

/**
 * Undefined if this process belongs to an ordinary user, who runs the server too. For root: the owner of the data if
 * there are any, else the user who called sudo, else `nobody`.
 */
export async function chooseAccount(clusterDirectory: string): Promise<Account | undefined> {
  if (process.getuid?.() !== 0) return undefined;
  const existing = await unlessMissing(stat(clusterDirectory));
  if (existing !== undefined) return ownerAccount(clusterDirectory, existing.uid, existing.gid);
  const [uid, gid] = [process.env['SUDO_UID'], process.env['SUDO_GID']].map(Number);
  if (uid !== undefined && gid !== undefined && uid > 0 && gid > 0) {
    return { uid, gid, name: await nameOf(uid), isPerson: true };
  }
  return nobody();
}

/** As `spawn` needs it. The C library writes macOS's nobody as -2, and spawn takes nothing above 2^31. */
export function spawnAs(account: Account | undefined): { uid?: number; gid?: number } {
  return account === undefined ? {} : { uid: account.uid | 0, gid: account.gid | 0 };
}

/** Gives a file that this process has just created to the account; do not pass any other path. */
export async function giveTo(account: Account | undefined, path: string): Promise<void> {
  if (account !== undefined) await chown(path, account.uid >>> 0, account.gid >>> 0);
}

/**
 * The topmost directory on the way to `path`, or `path` itself, that the account may not enter or read; undefined if it
 * reaches all. Missing directories do not count. Decided by owner and mode; spawn drops all other groups.
 */
export async function firstUnreachable(account: Account, path: string): Promise<string | undefined> {
  for (const component of componentsOf(path)) {
    const found = await unlessMissing(stat(component));
    if (found === undefined) return undefined;
    const shift = found.uid === account.uid >>> 0 ? 6 : found.gid === account.gid >>> 0 ? 3 : 0;
    const needed = component === path ? 0o5 : 0o1;
    if (((found.mode >> shift) & needed) !== needed) return component;
  }
  return undefined;
}

function componentsOf(path: string): string[] {
  const components: string[] = [path];
  while (components[0] !== undefined && components[0] !== parse(path).root) {
    components.unshift(dirname(components[0]));
  }
  return components;
}

async function ownerAccount(directory: string, uid: number, gid: number): Promise<Account> {
  if (uid === 0) {
    throw new Error(
      `${directory} belongs to root, and PostgreSQL does not run as root: give it to an ordinary user (chown -R), ` +
        'or remove it to begin with an empty database, or set DATABASE_URL',
    );
  }
  const { uid: nobodyUid } = await nobody();
  return { uid, gid, name: await nameOf(uid), isPerson: uid !== nobodyUid };
}

async function nobody(): Promise<Account> {
  const entry = (await passwd()).find(({ name }) => name === 'nobody');
  return { uid: entry?.uid ?? 65534, gid: entry?.gid ?? 65534, name: 'nobody', isPerson: false };
}

async function nameOf(uid: number): Promise<string> {
  const entry = (await passwd()).find((candidate) => candidate.uid === uid);
  return entry?.name ?? `uid ${uid}`;
}

async function passwd(): Promise<{ name: string; uid: number; gid: number }[]> {
  const text = (await unlessMissing(readFile('/etc/passwd', 'utf8'))) ?? '';
  return text
    .split('\n')
    .map((line) => line.split(':'))
    .flatMap(([name, , uid, gid]) =>
      name === undefined || uid === undefined || gid === undefined
        ? []
        : [{ name, uid: Number(uid) >>> 0, gid: Number(gid) >>> 0 }],
    );
}
