import { randomUUID } from 'node:crypto';
import { readdir, readFile, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { unlessMissing } from './files.ts';
import { formatIdentity, isAlive, ownIdentity, parseIdentity } from './process-identity.ts';

/** Notes that this process uses the server, and returns the note's path. To be called under the home's lock, as below. */
export async function registerUser(users: string): Promise<string> {
  const note = join(users, `${process.pid}-${randomUUID()}`);
  await writeFile(note, formatIdentity(await ownIdentity()), { flag: 'wx' });
  return note;
}

/** Removes the note and those of users that died without removing theirs; returns how many live users remain. */
export async function unregisterUser(users: string, note: string): Promise<number> {
  await rm(note, { force: true });
  return countUsers(users);
}

/** How many live users there are; removes the notes of dead ones. */
export async function countUsers(users: string): Promise<number> {
  let alive = 0;
  for (const name of (await unlessMissing(readdir(users))) ?? []) {
    const note = join(users, name);
    const identity = parseIdentity((await unlessMissing(readFile(note, 'utf8'))) ?? '');
    if (identity !== undefined && (await isAlive(identity))) alive += 1;
    else await rm(note, { force: true });
  }
  return alive;
}
