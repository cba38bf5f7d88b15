import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { onTestFinished } from 'vitest';

/** Where a store may put its file; gone at the end of the test. */
export async function temporaryFile(): Promise<string> {
  const directory = await mkdtemp(join(tmpdir(), 'firelock-store-'));
  onTestFinished(() => rm(directory, { recursive: true }));
  return join(directory, 'runs.jsonl');
}
