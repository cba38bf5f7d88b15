import { describe, expect, test } from 'vitest';
import { CannotOpen, createKeyRing, parseSecretKeys, webhookKey } from '../../../src/core/secrets/key-ring.ts';

const bytes = (fill: number, length = 32) => Buffer.alloc(length, fill);
const base64 = (fill: number, length = 32) => bytes(fill, length).toString('base64');
const ring = createKeyRing([
  { id: 'new', bytes: bytes(1) },
  { id: 'old', bytes: bytes(2) },
]);
const old = createKeyRing([{ id: 'old', bytes: bytes(2) }]);

describe('a key ring', () => {
  test.each(['', 'Bearer abc', 'café', 'x'.repeat(8192)])('gives back what it has encrypted: %j', (text) => {
    const sealed = ring.seal(text, 'here');
    expect(sealed.keyId).toBe('new');
    expect(ring.open(sealed, 'here')).toBe(text);
  });

  test('encrypts with the first key, and decrypts with all', () => {
    expect(ring.open(old.seal('x', 'here'), 'here')).toBe('x');
    expect(() => old.open(ring.seal('x', 'here'), 'here')).toThrow(/key "new", which FIRELOCK_SECRET_KEYS/);
  });

  test('encrypts the same text with a new nonce each time', () => {
    const sealed = Array.from({ length: 100 }, () => ring.seal('x', 'here').sealed);
    expect(new Set(sealed.map((text) => text.slice(0, 16))).size).toBe(100);
  });

  test('decrypts nothing that was encrypted for another place, or was changed in any byte', () => {
    const { keyId, sealed } = ring.seal('secret', 'here');
    expect(() => ring.open({ keyId, sealed }, 'there')).toThrow(CannotOpen);
    const stored = Buffer.from(sealed, 'base64');
    for (const index of stored.keys()) {
      const changed = Buffer.from(stored);
      changed[index] = (changed[index] ?? 0) ^ 1;
      expect(() => ring.open({ keyId, sealed: changed.toString('base64') }, 'here')).toThrow(CannotOpen);
    }
    const cut = stored.subarray(0, -4).toString('base64');
    expect(() => ring.open({ keyId, sealed: cut }, 'here')).toThrow(CannotOpen);
  });

  test.each([{ keyId: 'new' }, { keyId: 'new', sealed: 5 }, { keyId: 'new', sealed: '' }, {}, { keyId: 7 }])(
    'says of another program’s %j that it cannot be decrypted, and throws nothing else',
    (stored) => {
      expect(() => ring.open(stored as never, 'here')).toThrow(CannotOpen);
    },
  );

  test('without keys encrypts nothing', () => {
    expect(createKeyRing([]).sealsWith).toBeNull();
    expect(() => createKeyRing([]).seal('x', 'here')).toThrow('there is no key');
  });

  test('has fingerprints that depend on its first key', () => {
    expect(ring.fingerprint('x')).toEqual(ring.fingerprint('x'));
    expect(ring.fingerprint('x')).not.toEqual(old.fingerprint('x'));
  });
});

describe('FIRELOCK_SECRET_KEYS', () => {
  test('is a list of keys, in their order', () => {
    expect(parseSecretKeys(`a:${base64(1)}, b.2:${base64(2)}`)).toEqual([
      [
        { id: 'a', bytes: bytes(1) },
        { id: 'b.2', bytes: bytes(2) },
      ],
      [],
    ]);
  });

  test.each([
    ['a', 'entry 1', 'has no colon'],
    [base64(1), 'entry 1', 'has no colon'],
    [`:${base64(1)}`, 'entry 1', 'has an id that is not'],
    [`a b:${base64(1)}`, 'entry 1', 'has an id that is not'],
    ['a:nonsense!', 'a', 'is not base64'],
    [`a:${base64(1).replace('=', '')}`, 'a', 'is not base64'],
    [`a:${base64(1, 31)}`, 'a', 'has 31 bytes'],
    [`a:${base64(1)},a:${base64(2)}`, 'a', 'is the id of an earlier key'],
    [`a:${base64(1)},b:${base64(1)}`, 'b', 'is the same key'],
    [`a:${base64(1)},`, 'entry 2', 'has no colon'],
  ])('%j is refused by entry, without what may be a key', (text, entry, message) => {
    const [, faults] = parseSecretKeys(text);
    expect(faults).toMatchObject([{ entry, message: expect.stringContaining(message) as string }]);
    expect(JSON.stringify(faults)).not.toContain(base64(1).slice(0, 8));
  });

  test('names every entry that is wrong', () => {
    expect(parseSecretKeys('a,b:x')[1]).toMatchObject([{ entry: 'entry 1' }, { entry: 'b' }]);
  });
});

test.each([
  [`whsec_${base64(1, 24)}`, 24],
  [`whsec_${base64(1, 64)}`, 64],
  [`whsec_${base64(1, 23)}`, null],
  [`whsec_${base64(1, 65)}`, null],
  [base64(1, 32), null],
  [`WHSEC_${base64(1, 32)}`, null],
  [`whsec_${base64(1, 31).replace(/=+$/, '')}`, null],
  [`whsec_${base64(1, 30)} `, null],
])('%s signs with so many bytes: %s', (secret, length) => {
  expect(webhookKey(secret)?.length ?? null).toBe(length);
});
