import { chmod, mkdir, open, stat, writeFile } from 'node:fs/promises';

/** The `code` of a system error, such as ENOENT. */
export function errorCode(error: unknown): string | undefined {
  if (error instanceof Error && 'code' in error && typeof error.code === 'string') return error.code;
  return undefined;
}

/** Nothing can be written there: the disk, or the user's share of it, is full. */
export function isDiskFull(error: unknown): boolean {
  return ['ENOSPC', 'EDQUOT'].includes(errorCode(error) ?? '');
}

/** The result, or undefined if a file or directory on the way does not exist. */
export async function unlessMissing<T>(result: Promise<T>): Promise<T | undefined> {
  try {
    return await result;
  } catch (error) {
    if (errorCode(error) === 'ENOENT' || errorCode(error) === 'ENOTDIR') return undefined;
    throw error;
  }
}

/** Writes a new file that every local user may read, whatever this process's umask. Fails if it exists. */
export async function writeNew(path: string, text: string): Promise<void> {
  await writeFile(path, text, { flag: 'wx' });
  await chmod(path, 0o644);
}

/** Makes a file's content, or a directory's names, survive a power cut. */
export async function syncToDisk(path: string): Promise<void> {
  if (process.platform === 'win32') return;
  const file = await open(path, 'r');
  try {
    await file.sync();
  } finally {
    await file.close();
  }
}

/** The last ten lines of a text file, empty if there is none. Reads 8 KiB at most, however long the file. */
export async function lastLines(path: string): Promise<string> {
  const file = await unlessMissing(open(path, 'r'));
  if (file === undefined) return '';
  try {
    const { size } = await file.stat();
    const length = Math.min(size, 8192);
    const { buffer, bytesRead } = await file.read(Buffer.alloc(length), 0, length, size - length);
    return buffer.toString('utf8', 0, bytesRead).trimEnd().split('\n').slice(-10).join('\n');
  } finally {
    await file.close();
  }
}

const PUBLIC_ROOT = '/var/lib/firelock';

/** The directory for data that the server's user could not reach elsewhere; only root creates and uses it. */
export async function makePublicRoot(): Promise<string> {
  await mkdir(PUBLIC_ROOT, { recursive: true, mode: 0o755 });
  const { uid, mode } = await stat(PUBLIC_ROOT);
  // Root runs programs from here: no other user may put any here.
  if (uid !== 0 || (mode & 0o022) !== 0) {
    throw new Error(`${PUBLIC_ROOT} must belong to root and be writable by root only`);
  }
  return PUBLIC_ROOT;
}
