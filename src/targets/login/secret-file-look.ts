import { type BigIntStats, constants } from 'node:fs';
import { type FileHandle, open, realpath, stat } from 'node:fs/promises';
import { join, sep } from 'node:path';
import type { Instant } from '../../core/instant.ts';
import { ownShortageOf } from '../../runtime/own-shortage.ts';

/** What one look at a file found: its text, or why it cannot be used. */
export interface FileLook {
  /** Differs between two states of a file, as far as its file system notes them; null: it changed during the look. */
  version: string | null;
  content: { text: string } | { fault: string };
  /** When it was changed last, by the clock of its file system; null: there is none. */
  changedAt: Instant | null;
}

export const EMPTY = 'is empty';
const MOST_BYTES = 64 * 1024;

/** The version of a file that was read before; null: it cannot be read now. */
export async function versionOfFile(directory: string, name: string): Promise<string | null> {
  try {
    return versionOf(await stat(join(directory, name), { bigint: true }));
  } catch {
    return null;
  }
}

/**
 * Reads a file of the directory; `name` has been judged. Rejects only for want of what this process lacks itself. Links are
 * followed as long as they stay inside, as those of Kubernetes do. Only a program that may write to the directory, and swaps
 * a folder for a link between two of these steps, gets around that. Pipes and devices are not opened, and if they come in
 * between, not waited for.
 */
export async function lookAtFile(directory: string, name: string): Promise<FileLook> {
  let file: FileHandle | undefined;
  try {
    const root = await realpath(directory);
    const path = await realpath(join(root, name));
    if (!path.startsWith(root + sep)) return faulty('leads out of the directory');
    if (!(await stat(path)).isFile()) return faulty(NO_FILE);
    file = await open(path, constants.O_RDONLY | constants.O_NONBLOCK | constants.O_NOFOLLOW);
    return await readWhole(file);
  } catch (error) {
    if (ownShortageOf(error) !== null) throw error;
    return faulty(reasonOf(error));
  } finally {
    await file?.close();
  }
}

const NO_FILE = 'is not a regular file';

/** Judges what was opened, which may be something else than what stood there before. */
async function readWhole(file: FileHandle): Promise<FileLook> {
  const before = await file.stat({ bigint: true });
  if (!before.isFile()) return faulty(NO_FILE);
  const bytes = before.size > MOST_BYTES ? null : await readAtMost(file, MOST_BYTES + 1);
  const version = versionOf(await file.stat({ bigint: true }));
  const changedAt = Number((before.mtimeNs > before.ctimeNs ? before.mtimeNs : before.ctimeNs) / 1_000_000n);
  return { version: version === versionOf(before) ? version : null, content: contentOf(bytes), changedAt };
}

/** A file may be longer than its size says. */
async function readAtMost(file: FileHandle, most: number): Promise<Buffer> {
  const buffer = Buffer.alloc(most);
  let length = 0;
  for (let read = -1; read !== 0 && length < most; length += read)
    read = (await file.read(buffer, length, most - length, length)).bytesRead;
  return buffer.subarray(0, length);
}

/** Null: too many to read. */
function contentOf(bytes: Buffer | null): FileLook['content'] {
  if (bytes === null || bytes.length > MOST_BYTES) return { fault: 'is larger than 64 KiB' };
  let text: string;
  try {
    text = new TextDecoder('utf-8', { fatal: true }).decode(bytes).replace(/\r?\n$/, '');
  } catch {
    return { fault: 'is not UTF-8' };
  }
  if (text.includes('\0')) return { fault: 'contains a NUL' };
  return text === '' ? { fault: EMPTY } : { text };
}

/** The device and the inode tell a file that took the place of another from one that was written again. */
function versionOf({ dev, ino, size, mtimeNs, ctimeNs }: BigIntStats): string {
  return [dev, ino, size, mtimeNs, ctimeNs].join();
}

function faulty(fault: string): FileLook {
  return { version: fault, content: { fault }, changedAt: null };
}

/** Node's own message has the path; the file's name is said elsewhere. */
function reasonOf(error: unknown): string {
  const { code } = error as NodeJS.ErrnoException;
  if (code === 'ENOENT' || code === 'ENOTDIR') return 'does not exist';
  return `cannot be read (${code ?? 'no reason known'})`;
}
