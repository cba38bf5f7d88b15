import { mkdir, stat } from 'node:fs/promises';

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
