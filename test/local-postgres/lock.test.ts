import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { withLock } from '../../src/local-postgres/lock.ts';

let directory: string;

beforeEach(async () => {
  directory = await mkdtemp(join(tmpdir(), 'firelock-lock-'));
  await writeFile(join(directory, 'count'), '0');
});

afterEach(() => rm(directory, { recursive: true }));

test('processes that all die under the lock lose no turn to each other', async () => {
  await Promise.all(Array.from({ length: 5 }, () => holdLock(20)));
  expect(await readFile(join(directory, 'count'), 'utf8')).toBe('100');
  expect(await withLock(directory, () => Promise.resolve('mine'))).toBe('mine');
});

test('one process holds the lock once at a time, and an error releases it', async () => {
  let holders = 0;
  const turn = async () => {
    holders += 1;
    await new Promise(setImmediate);
    expect(holders).toBe(1);
    holders -= 1;
  };
  await expect(withLock(directory, () => Promise.reject(new Error('in the body')))).rejects.toThrow('in the body');
  await Promise.all(Array.from({ length: 10 }, () => withLock(directory, turn)));
});

async function holdLock(turns: number): Promise<void> {
  const fixture = join(import.meta.dirname, 'fixtures', 'lock-holder.ts');
  await once(spawn(process.execPath, [fixture, directory, String(turns)], { stdio: 'inherit' }), 'close');
}
