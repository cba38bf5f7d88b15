import { randomUUID } from 'node:crypto';
import { link, readdir, readFile, rm, truncate } from 'node:fs/promises';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { errorCode, unlessMissing, writeNew } from './files.ts';
import { formatIdentity, isAlive, ownIdentity, parseIdentity } from './process-identity.ts';

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
