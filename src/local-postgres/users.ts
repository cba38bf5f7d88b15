import { randomUUID } from 'node:crypto';
import { readdir, readFile, rm } from 'node:fs/promises';
import { join } from 'node:path';
import type { Account } from './account.ts';
import { unlessMissing, writeNew } from './files.ts';
import type { Home } from './home.ts';
import { makeDirectory } from './home.ts';
import { formatIdentity, isAlive, ownIdentity, parseIdentity } from './process-identity.ts';

/**
 * Notes that this process uses the server, and returns the note's path. Call it under the home's lock, as the functions
 * below.
 */
export async function registerUser(home: Home, account: Account | undefined): Promise<string> {
  await makeDirectory(home.users, account);
  const note = join(home.users, `${process.pid}-${randomUUID()}`);
  await writeNew(note, formatIdentity(await ownIdentity()));
  return note;
}

/** Removes the note, and notes of users that died without removing theirs; returns how many live users remain. */
export async function unregisterUser(users: string, note: string): Promise<number> {
  await rm(note, { force: true });
  return countUsers(users);
}

/** How many live users there are; removes the notes of dead ones. */
async function countUsers(users: string): Promise<number> {
  let alive = 0;
  for (const name of (await unlessMissing(readdir(users))) ?? []) {
    const note = join(users, name);
    const identity = parseIdentity((await unlessMissing(readFile(note, 'utf8'))) ?? '');
    if (identity !== undefined && (await isAlive(identity))) alive += 1;
    else await rm(note, { force: true });
  }
  return alive;
}
