// @module-tag attack
import { describe, expect, test } from 'vitest';
import { addressRanges, DENIED_PRESETS } from '../../src/config/address-ranges.ts';
import { hasNoAddress } from '../../src/runtime/names/resolve.ts';
import { AddressBlocked, createAddressGuard } from '../../src/targets/address-guard.ts';

type Options = Parameters<typeof createAddressGuard>[0];

const strict = { denied: addressRanges(DENIED_PRESETS.strict) };
const allowing = (...ranges: string[]) => ({ allowed: addressRanges(ranges) });

/** Why these addresses are blocked, or null. */
async function whyBlocked(addresses: string[], options: Options = {}, port = 80): Promise<string | null> {
  const guard = createAddressGuard({
    resolve: () => Promise.reject(new Error('not to be asked')),
    ...options,
  });
  return guard.judge(addresses, port).then(
    () => null,
    (error: unknown) => {
      if (error instanceof AddressBlocked) return error.because;
      throw error;
    },
  );
}

describe('by default', () => {
  test.each([
    ['link-local', ['169.254.169.254', '169.254.0.1', 'fe80::1', 'fe80::1%eth0', 'FEBF::1']],
    ['metadata', ['100.100.100.200', '168.63.129.16', '192.0.0.192', 'fd00:ec2::254', 'FD00:EC2::23', 'fd20:ce::254']],
    ['unspecified', ['0.0.0.0', '0.1.2.3', '::', '0:0:0:0:0:0:0:0']],
    ['multicast and broadcast', ['224.0.0.1', '239.255.255.255', '255.255.255.255', 'ff02::1']],
    ['IPv4-mapped', ['::ffff:169.254.169.254', '::ffff:a9fe:a9fe', '0:0:0:0:0:FFFF:A9FE:A9FE']],
    ['IPv4-compatible', ['::169.254.169.254', '::a9fe:a9fe', '::100.100.100.200']],
    ['IPv4-translated', ['::ffff:0:169.254.169.254', '::ffff:0:a9fe:a9fe']],
    ['NAT64', ['64:ff9b::169.254.169.254', '64:ff9b::a83f:8110']],
    [
      'local NAT64, whatever its layout',
      [
        '64:ff9b:1::169.254.169.254',
        '64:ff9b:1:1:2:3:a9fe:a9fe',
        '64:ff9b:1:a9fe:a9:fe00::',
        '64:ff9b:1:12a9:fe:a9fe::',
        '64:ff9b:1:1234:a9:fea9:fe00:0',
      ],
    ],
    [
      'NAT64, with bytes that a translator ignores,',
      [
        '64:ff9b:1:a9fe:a9:fe00:0:1',
        '64:ff9b:1:a9fe:ffa9:fe12:3456:789a',
        '64:ff9b:1:12a9:fffe:a9fe:1:2',
        '64:ff9b:1:1234:ffa9:fea9:fe01:203',
        '64:ff9b:1:5678:ff00:0:a9fe:a9fe',
      ],
    ],
    [
      'NAT64, after a prefix that is shorter than it should be,',
      ['64:ff9b:a9fe:a9fe::', '64:ff9b:a9fe:a9fe:12:3:4:5', '64:ff9b:a9:fea9:fe::', '64:ff9b:2:a9fe:a9:fe00::'],
    ],
    ['unspecified, translated', ['64:ff9b::', '64:ff9b:1::', '64:ff9b:1::0.1.2.3']],
    ['6to4', ['2002:a9fe:a9fe::', '2002:6464:64c8:1::1']],
    ['Teredo', ['2001:0:a9fe:a9fe::', '2001:0:808:808:0:0:5601:5601']],
  ])('%s addresses are blocked', async (_, addresses) => {
    for (const address of addresses) expect(await whyBlocked([address]), address).toMatch(/denied range/);
  });

  test.each([
    ['public', ['8.8.8.8', '1.1.1.1', '2606:4700::1111', '169.253.255.255', '169.255.0.0', '223.255.255.255']],
    ['loopback', ['127.0.0.1', '127.9.9.9', '::1', '::ffff:127.0.0.1']],
    ['private', ['10.0.0.1', '172.16.0.1', '192.168.1.1', '100.64.0.1', 'fd12::1', '::ffff:10.0.0.1']],
    [
      'translated public',
      ['64:ff9b::8.8.8.8', '64:ff9b:1::8.8.8.8', '64:ff9b:1:808:8:800::', '2002:808:808::1', '::8.8.8.8'],
    ],
  ])('%s addresses are not', async (_, addresses) => {
    expect(await whyBlocked(addresses)).toBeNull();
  });
});

test.each(
  (
    '10.1.2.3 127.0.0.1 172.31.0.1 192.168.0.1 100.64.0.1 198.18.0.1 240.0.0.1 169.254.169.254 ::1 ' +
    'fd12::1 fec0::1 2001:db8::1 ::ffff:10.0.0.1 64:ff9b::10.0.0.1 64:ff9b:1::192.168.0.1 2002:a00:1::1 ' +
    '64:ff9b:1::1 2001::1 2001:1ff::1'
  ).split(' '),
)('the strict list also blocks %s', async (address) => {
  expect(await whyBlocked([address], strict)).toMatch(/denied range/);
});

test('the strict list leaves the public Internet', async () => {
  expect(await whyBlocked(['8.8.8.8', '2606:4700::1111', '64:ff9b::8.8.8.8', '::ffff:8.8.8.8'], strict)).toBeNull();
});

describe('lists', () => {
  test('an address on both is allowed, also if the denied range is the smaller one', async () => {
    const denied = addressRanges(['10.1.0.0/16']);
    expect(await whyBlocked(['10.1.2.3'], { denied, ...allowing('10.0.0.0/8') })).toBeNull();
    expect(await whyBlocked(['10.1.2.3'], { denied, ...allowing('10.1.2.4') })).toMatch(/10\.1\.0\.0\/16/);
    expect(await whyBlocked(['169.254.7.7'], allowing('169.254.7.7'))).toBeNull();
  });

  test('a denied list that is given replaces the default one', async () => {
    const denied = addressRanges(['10.0.0.0/8']);
    expect(await whyBlocked(['169.254.169.254'], { denied })).toBeNull();
    expect(await whyBlocked(['10.0.0.1'], { denied })).toBe('it is in the denied range 10.0.0.0/8');
  });

  test('to allow an IPv6 prefix does not allow the IPv4 address in it', async () => {
    expect(await whyBlocked(['64:ff9b::169.254.169.254'], allowing('64:ff9b::/96', '::/0'))).toMatch(/169\.254/);
    expect(await whyBlocked(['64:ff9b::169.254.169.254'], allowing('169.254.169.254'))).toBeNull();
  });
});

test('one denied address among several blocks all of them', async () => {
  expect(await whyBlocked(['8.8.8.8', '169.254.169.254'])).toMatch(/denied range/);
  expect(await whyBlocked(['fe80::1', '8.8.8.8'])).toMatch(/denied range/);
});

test.each(['', 'localhost', '1.2.3', '0x7f000001', '1.2.3.4.5', ':::1', 'fe80::1::'])(
  'the answer %j, which cannot be judged, is blocked',
  async (text) => {
    expect(await whyBlocked(['8.8.8.8', text], allowing('0.0.0.0/0', '::/0'))).toMatch(/can be judged/);
  },
);

describe('the own port', () => {
  const own = { ownPorts: new Set([8080]), localAddresses: () => ['192.168.7.7', 'fd12::7', 'fe80::7'] };
  const all = allowing('0.0.0.0/0', '::/0');

  test.each([
    ['127.0.0.1', '127.1.2.3', '::1', '0.0.0.0', '::', '192.168.7.7', 'fd12::7', 'fe80::7%eth0'],
    ['::ffff:127.0.0.1', '::ffff:192.168.7.7', '64:ff9b::192.168.7.7', '::127.0.0.1'],
  ])('is blocked on every address of this machine, whatever is allowed: %s …', async (...addresses) => {
    for (const address of addresses)
      expect(await whyBlocked([address], { ...own, ...all }, 8080), address).toBe('firelock listens there');
  });

  test('is free on other machines, and other ports are free here', async () => {
    expect(await whyBlocked(['192.168.7.8', '8.8.8.8'], own, 8080)).toBeNull();
    expect(await whyBlocked(['127.0.0.1', '192.168.7.7', '::1'], own, 8081)).toBeNull();
  });
});

describe('the port of the database', () => {
  const names: Record<string, string[]> = { 'db.test': ['10.0.0.5', 'fd00::5'], localhost: ['127.0.0.1'] };
  const asked: string[] = [];
  const at = (...databases: { name: string; port: number }[]): Options => ({
    databases,
    localAddresses: () => ['192.168.7.7'],
    resolve: (name) => {
      asked.push(name);
      const addresses = names[name];
      if (addresses) return Promise.resolve(addresses.map((address) => ({ address, family: 4 })));
      return Promise.reject(hasNoAddress(name));
    },
  });
  const remote = at({ name: '10.0.0.4', port: 5433 }, { name: 'db.test', port: 5432 });

  test('is blocked at each address of each of its hosts', async () => {
    for (const address of ['10.0.0.5', 'fd00::5', '::ffff:10.0.0.5', '64:ff9b::10.0.0.5'])
      expect(await whyBlocked([address], remote, 5432), address).toBe('the database is there');
    expect(await whyBlocked(['10.0.0.4'], remote, 5433)).toBe('the database is there');
    expect(await whyBlocked(['10.0.0.4'], { ...remote, ...allowing('0.0.0.0/0') }, 5433)).toBe('the database is there');
  });

  test('is free elsewhere, and the resolver is asked for no other port', async () => {
    expect(await whyBlocked(['10.0.0.6', '127.0.0.1'], remote, 5432)).toBeNull();
    asked.length = 0;
    expect(await whyBlocked(['10.0.0.5', '10.0.0.4'], remote, 80)).toBeNull();
    expect(asked).toEqual([]);
  });

  test.each([
    { name: '127.0.0.1', port: 5432 },
    { name: '::1', port: 5432 },
    { name: 'localhost', port: 5432 },
    { name: '192.168.7.7', port: 5432 },
    { name: '/var/run/postgresql', port: 5432 },
  ])('is blocked on every address of this machine where the database is on it, as $name', async (database) => {
    for (const address of ['127.0.0.1', '127.0.0.2', '::1', '192.168.7.7', '0.0.0.0'])
      expect(await whyBlocked([address], { ...at(database), denied: [] }, 5432), address).toBe('the database is there');
    expect(await whyBlocked(['10.0.0.5'], at(database), 5432)).toBeNull();
  });

  test('is not called while the name of the database cannot be resolved', async () => {
    await expect(whyBlocked(['10.0.0.9'], at({ name: 'gone.test', port: 5432 }), 5432)).rejects.toThrow(
      'gone.test has no address',
    );
  });
});
