import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { readConfig } from '../../src/config/config.ts';
import { ATTACK } from '../support/runner/attack.ts';

const key = (fill: number, length = 32) => Buffer.alloc(length, fill).toString('base64');
const readKeys = (keys: string) => readConfig({ FIRELOCK_SECRET_KEYS: keys });

test('keys are read in their order, and there may be none', () => {
  expect(readKeys(`new:${key(1)},old:${key(2)}`)).toMatchObject({
    config: { secretKeys: [{ id: 'new' }, { id: 'old' }] },
  });
  expect(readKeys('')).toMatchObject({ config: { secretKeys: [] } });
});

test('a fault names each wrong entry, and repeats no text that may be a key', () => {
  const text = `short:${key(3, 31)},${key(4)},good:${key(5)}`;
  const answer = readKeys(text);
  expect(answer).toEqual({
    faults: [
      'FIRELOCK_SECRET_KEYS is not a list of keys; expected: keyId:base64 of 32 bytes, comma-separated; the first ' +
        'encrypts (default none); "short" has 31 bytes, and not 32; "entry 2" has no colon between the id of a key and the key',
    ],
  });
  for (const part of [key(3, 31), key(4), key(5)]) expect(JSON.stringify(answer)).not.toContain(part);
});

const readList = (list: string) => readConfig({ FIRELOCK_FILE_VARIABLES: list });

test('a schedules file may use the variables that are listed, and none by default', { tags: [ATTACK] }, () => {
  expect(readList('REPORTS_TOKEN, hook_2')).toMatchObject({
    config: { fileVariables: ['REPORTS_TOKEN', 'hook_2'] },
  });
  expect(readList('')).toMatchObject({ config: { fileVariables: [] } });
});

test('a daemon does not start with a list that names its own keys, passwords and tokens', { tags: [ATTACK] }, () => {
  const own = 'configures firelock itself, and no file may use it';
  expect(readList('A,FIRELOCK_SECRET_KEYS,DATABASE_URL,a-b,')).toEqual({
    faults: [
      'FIRELOCK_FILE_VARIABLES is "A,FIRELOCK_SECRET_KEYS,DATABASE_URL,a-b,"; expected: names of variables that a ' +
        `schedules file may use, separated by commas (default none); "FIRELOCK_SECRET_KEYS" ${own}; ` +
        `"DATABASE_URL" ${own}; "a-b" is not the name of a variable; "" is not the name of a variable`,
    ],
  });
});

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
