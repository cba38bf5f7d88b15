import { describe, expect, test } from 'vitest';
import { addressBytes, addressRanges, isInRange, parseAddressRanges } from '../../src/config/address-ranges.ts';
import { readConfig } from '../../src/config/config.ts';

describe('an address', () => {
  test.each([
    ['1.2.3.4', [1, 2, 3, 4]],
    ['::', Array(16).fill(0)],
    ['::1', [...Array<number>(15).fill(0), 1]],
    ['FE80::1%eth0', [0xfe, 0x80, ...Array<number>(13).fill(0), 1]],
    ['2001:db8::a:0:b', [0x20, 1, 0xd, 0xb8, 0, 0, 0, 0, 0, 0, 0, 10, 0, 0, 0, 11]],
    ['1:2:3:4:5:6:7:8', [0, 1, 0, 2, 0, 3, 0, 4, 0, 5, 0, 6, 0, 7, 0, 8]],
    ['1:2:3:4:5:6:7::', [0, 1, 0, 2, 0, 3, 0, 4, 0, 5, 0, 6, 0, 7, 0, 0]],
    ['::ffff:169.254.169.254', [...Array<number>(10).fill(0), 255, 255, 169, 254, 169, 254]],
    ['64:ff9b::1.2.3.4', [0, 0x64, 0xff, 0x9b, 0, 0, 0, 0, 0, 0, 0, 0, 1, 2, 3, 4]],
  ])('%s is read as its bytes', (text, bytes) => {
    expect([...(addressBytes(text) ?? [])]).toEqual(bytes);
  });

  test.each(['', 'localhost', '1.2.3', '1.2.3.4.5', '010.0.0.1', '0x7f000001', '256.1.1.1', '1::2::3', '[::1]'])(
    '%j is none',
    (text) => {
      expect(addressBytes(text)).toBeNull();
    },
  );
});

test.each([
  ['10.0.0.0/8', ['10.0.0.0', '10.255.255.255'], ['9.255.255.255', '11.0.0.0', '::a00:0']],
  ['172.16.0.0/12', ['172.16.0.0', '172.31.255.255'], ['172.15.255.255', '172.32.0.0']],
  ['1.2.3.4', ['1.2.3.4'], ['1.2.3.5', '1.2.3.3']],
  ['0.0.0.0/0', ['0.0.0.0', '255.255.255.255'], ['::']],
  ['fe80::/10', ['fe80::', 'febf:ffff::1'], ['fe7f::', 'fec0::']],
  ['::/0', ['::', 'ffff::'], ['0.0.0.0']],
])('the range %s contains %j and not %j', (text, inside, outside) => {
  const [range] = addressRanges([text]);
  const contains = (address: string) => range && isInRange(addressBytes(address) ?? new Uint8Array(), range);
  expect(inside.filter(contains)).toEqual(inside);
  expect(outside.filter(contains)).toEqual([]);
});

test('each wrong entry of a list is named', () => {
  const presets = { mine: ['10.0.0.0/8', 'fd00::/8'] };
  const [ranges, faults] = parseAddressRanges('mine, 1.2.3.4,10.1.2.3/8,x,,fe80::1%a,1.1.1.1/33', presets);
  expect(ranges.map(({ text }) => text)).toEqual(['10.0.0.0/8', 'fd00::/8', '1.2.3.4']);
  expect(faults.map(({ entry }) => entry)).toEqual(['10.1.2.3/8', 'x', '', 'fe80::1%a', '1.1.1.1/33']);
});

describe('the lists of the configuration', () => {
  test('deny the default ranges, and allow none', () => {
    const read = readConfig({});
    if ('faults' in read) throw new Error(read.faults.join());
    expect(read.config.targetAllowed).toEqual([]);
    expect(read.config.targetDenied.map(({ text }) => text)).toEqual(
      expect.arrayContaining('169.254.0.0/16 100.100.100.200/32 fd00:ec2::/32 fe80::/10 224.0.0.0/4'.split(' ')),
    );
  });

  test('name every fault of both at once', () => {
    const read = readConfig({
      FIRELOCK_TARGET_DENY_CIDRS: 'default,10.0.0/8,::ffff:10.0.0.0/104',
      FIRELOCK_TARGET_ALLOW_CIDRS: 'strict,10.1.2.3/8',
    });
    const faults = 'faults' in read ? read.faults : [];
    expect(faults).toEqual([
      expect.stringMatching(
        /^FIRELOCK_TARGET_DENY_CIDRS is ".*"; expected: .*; "10\.0\.0\/8" is neither .*; "::ffff:10\.0\.0\.0\/104" must be written as IPv4$/,
      ),
      expect.stringMatching(
        /^FIRELOCK_TARGET_ALLOW_CIDRS is ".*"; expected: .*; "strict" is neither .*; "10\.1\.2\.3\/8" has bits set after the first 8: .*$/,
      ),
    ]);
  });
});
