import { expect, test } from 'vitest';
import { readConfig } from '../../src/config/config.ts';

const key = (fill: number, length = 32) => Buffer.alloc(length, fill).toString('base64');
const read = (keys: string) => readConfig({ FIRELOCK_SECRET_KEYS: keys });

test('keys are read in their order, and there may be none', () => {
  expect(read(`new:${key(1)},old:${key(2)}`)).toMatchObject({
    config: { secretKeys: [{ id: 'new' }, { id: 'old' }] },
  });
  expect(read('')).toMatchObject({ config: { secretKeys: [] } });
});

test('a fault names each wrong entry, and repeats no text that may be a key', () => {
  const text = `short:${key(3, 31)},${key(4)},good:${key(5)}`;
  const answer = read(text);
  expect(answer).toEqual({
    faults: [
      'FIRELOCK_SECRET_KEYS is not a list of keys; expected: keyId:base64 of 32 bytes, comma-separated; the first ' +
        'encrypts (default none); "short" has 31 bytes, and not 32; "entry 2" has no colon between the id of a key and the key',
    ],
  });
  for (const part of [key(3, 31), key(4), key(5)]) expect(JSON.stringify(answer)).not.toContain(part);
});
