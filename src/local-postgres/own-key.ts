import { randomBytes, randomUUID } from 'node:crypto';
import { chmod, open, readFile, rename } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import type { Account } from './account.ts';
import { giveTo } from './account.ts';
import { syncToDisk, unlessMissing } from './files.ts';

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
