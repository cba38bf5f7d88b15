import { describe, expect, test } from 'vitest';
import { secretNameFault } from '../../../src/core/connections/credential-rules.ts';
import { ATTACK } from '../../support/runner/attack.ts';

test.each(['token', 'github-token.pem', 'billing/token', '..data', '..data/token', 'a'.repeat(255)])(
  'a secret file may have the name %.20s',
  (name) => {
    expect(secretNameFault(name)).toBeNull();
  },
);

describe('the name of a secret file', { tags: [ATTACK] }, () => {
  test.each([
    '..',
    '.',
    '../token',
    'a/../../token',
    'a/.',
    '/etc/passwd',
    '',
    'a//b',
    'a/',
    'a\\b',
    'a\0',
    'a\nb',
  ])('cannot be %j', (name) => {
    expect(secretNameFault(name)).toBeTypeOf('string');
  });

  test('is not longer than a file system takes', () => {
    expect(secretNameFault('a'.repeat(256))).toBe('is longer than 255 characters');
  });
});
