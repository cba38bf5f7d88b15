import { randomUUID } from 'node:crypto';
import { link, readdir, readFile, rm, truncate } from 'node:fs/promises';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { execFile } from 'node:child_process';
import { promisify } from 'node:util';
import { errorCode, unlessMissing, writeNew } from './files.ts';

const POLL_MS = 25;

/**
 * Runs `body` while no other process runs one under a lock of the same directory, and returns its result. A lock whose
 * owner died is taken over. Waits as long as a living owner holds it.
 *
 * Node has no flock, and removing a dead owner's lock file races with other processes that do the same. Hence generations: the
 * file `lock.N` with the highest N is the lock; it is taken by creating N+1, which only one can, and a file is removed
 * only when a higher one exists. Releasing empties the file and leaves it: that needs no room on a full disk.
 */
export async function withLock<T>(directory: string, body: () => Promise<T>): Promise<T> {
  const draft = join(directory, `lock-draft-${randomUUID()}`);
  try {
    await writeNew(draft, formatIdentity(await ownIdentity()));
    const generation = await acquire(directory, draft);
    try {
      return await body();
    } finally {
      await release(directory, generation);
    }
  } finally {
    await rm(draft, { force: true });
  }
}

async function acquire(directory: string, draft: string): Promise<number> {
  for (;;) {
    const generation = await tryAcquire(directory, draft);
    if (generation !== undefined) return generation;
    await sleep(POLL_MS);
  }
}

async function tryAcquire(directory: string, draft: string): Promise<number | undefined> {
  const highest = Math.max(0, ...(await generations(directory)));
  if (highest > 0 && (await isHeld(lockFile(directory, highest)))) return undefined;
  const mine = highest + 1;
  try {
    // A link appears with its content; a file created and then written could be read empty.
    await link(draft, lockFile(directory, mine));
  } catch (error) {
    if (errorCode(error) === 'EEXIST') return undefined;
    throw error;
  }
  const others = (await generations(directory)).filter((other) => other !== mine);
  if (others.some((other) => other > mine)) {
    // This process was so slow that others took the lock and removed the file that looked like the highest.
    await rm(lockFile(directory, mine), { force: true });
    return undefined;
  }
  await Promise.all(others.map((other) => rm(lockFile(directory, other), { force: true })));
  return mine;
}

async function release(directory: string, generation: number): Promise<void> {
  // The directory may have been removed meanwhile, and the lock with it.
  await unlessMissing(truncate(lockFile(directory, generation)));
}

async function isHeld(path: string): Promise<boolean> {
  try {
    const owner = parseIdentity(await readFile(path, 'utf8'));
    return owner !== undefined && (await isAlive(owner));
  } catch (error) {
    // Removed since it was listed, so a higher one exists: look again.
    if (errorCode(error) === 'ENOENT') return true;
    throw error;
  }
}

async function generations(directory: string): Promise<number[]> {
  const numbers: number[] = [];
  for (const name of await readdir(directory)) {
    const number = /^lock\.(\d+)$/.exec(name)?.[1];
    if (number !== undefined) numbers.push(Number(number));
  }
  return numbers;
}

function lockFile(directory: string, generation: number): string {
  return join(directory, `lock.${generation}`);
}

/** One process and no other: pids are reused, but not a pid together with its start. */
export interface ProcessIdentity {
  readonly pid: number;
  /** When it started, in the platform's own notation; null where the platform does not tell. */
  readonly started: string | null;
}

/** The process that has this pid now; undefined if none does (a zombie counts as none). */
export async function identifyProcess(pid: number): Promise<ProcessIdentity | undefined> {
  if (!pidExists(pid)) return undefined;
  if (process.platform === 'linux') return identifyOnLinux(pid);
  if (process.platform === 'win32') return { pid, started: null };
  return identifyByPs(pid);
}

export async function isAlive(identity: ProcessIdentity): Promise<boolean> {
  const current = await identifyProcess(identity.pid);
  if (current === undefined) return false;
  return current.started === null || identity.started === null || current.started === identity.started;
}

/**
 * Like `isAlive`, for a process that is watched all the time: if a look at its start would cost a process, the pid
 * suffices.
 */
export async function isStillAlive(identity: ProcessIdentity): Promise<boolean> {
  return process.platform === 'linux' ? isAlive(identity) : pidExists(identity.pid);
}

/** Whether any process has this pid, a zombie included. */
export function pidExists(pid: number): boolean {
  try {
    process.kill(pid, 0);
    return true;
  } catch (error) {
    // EPERM: it exists and belongs to someone else.
    return error instanceof Error && 'code' in error && error.code === 'EPERM';
  }
}

export async function ownIdentity(): Promise<ProcessIdentity> {
  return (await identifyProcess(process.pid)) ?? { pid: process.pid, started: null };
}

/** The text form of an identity in lock files and user files. Undefined for any other text. */
export function parseIdentity(text: string): ProcessIdentity | undefined {
  const [pid, started] = text.split('\n');
  if (pid === undefined || !/^[1-9]\d*$/.test(pid)) return undefined;
  return { pid: Number(pid), started: started === undefined || started === '' ? null : started };
}

export function formatIdentity(identity: ProcessIdentity): string {
  return `${identity.pid}\n${identity.started ?? ''}\n`;
}

/** The boot id makes the start, counted in ticks since boot, unambiguous across reboots. */
async function identifyOnLinux(pid: number): Promise<ProcessIdentity | undefined> {
  try {
    const stat = await readFile(`/proc/${pid}/stat`, 'utf8');
    // The name, field 2, may itself hold spaces and parentheses.
    const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ');
    const [state, ticks] = [fields[0], fields[19]];
    if (state === 'Z' || state === 'X') return undefined;
    const boot = (await readFile('/proc/sys/kernel/random/boot_id', 'utf8')).trim();
    return { pid, started: ticks === undefined ? null : `${boot}/${ticks}` };
  } catch {
    // Gone in the meantime, or /proc hides the processes of others.
    return pidExists(pid) ? { pid, started: null } : undefined;
  }
}

async function identifyByPs(pid: number): Promise<ProcessIdentity | undefined> {
  try {
    const { stdout } = await promisify(execFile)('ps', ['-o', 'stat=,lstart=', '-p', String(pid)], {
      env: { PATH: process.env['PATH'], LC_ALL: 'C' },
    });
    const [state, ...started] = stdout.trim().split(/\s+/);
    return state?.startsWith('Z') === true ? undefined : { pid, started: started.join(' ') };
  } catch {
    return pidExists(pid) ? { pid, started: null } : undefined;
  }
}
