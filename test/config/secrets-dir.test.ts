import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { readConfig } from '../../src/config/config.ts';

test('the directory of secrets is there at the start, or the start stops with a fault', () => {
  const directory = mkdtempSync(join(tmpdir(), 'firelock-secrets-'));
  try {
    const read = (path: string) => readConfig({ FIRELOCK_SECRETS_DIR: path });
    expect(read(directory)).toMatchObject({ config: { secretsDir: directory } });
    expect(read('')).toMatchObject({ config: { secretsDir: null } });
    for (const wrong of [join(directory, 'nobody'), import.meta.filename, 'a\0b'])
      expect(read(wrong)).toEqual({
        faults: [expect.stringMatching(/^FIRELOCK_SECRETS_DIR is ".*"; expected: a directory that is there/)],
      });
  } finally {
    rmSync(directory, { recursive: true });
  }
});
