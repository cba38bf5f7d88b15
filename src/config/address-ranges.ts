import { isIP } from 'node:net';
import type { EntryFault } from './variable-kinds.ts';

/** All addresses of one family that begin with the same bits. */
export interface AddressRange {
  /** The text as it was written. */
  readonly text: string;
  readonly bytes: Uint8Array;
  /** How many of the bits count. */
  readonly prefix: number;
}

export function isInRange(address: Uint8Array, { bytes, prefix }: AddressRange): boolean {
  if (address.length !== bytes.length) return false;
  const whole = prefix >> 3;
  for (let index = 0; index < whole; index++) if (address[index] !== bytes[index]) return false;
  const rest = prefix & 7;
  return rest === 0 || ((address[whole] ?? 0) ^ (bytes[whole] ?? 0)) >> (8 - rest) === 0;
}

type Presets = Readonly<Record<string, readonly string[]>>;

/**
 * Reads a comma-separated list of ranges (`10.0.0.0/8`, `fd00::/8`), single addresses, and names of presets. Each other
 * entry is a fault.
 */
export function parseAddressRanges(
  text: string,
  presets: Presets = {},
): [ranges: AddressRange[], faults: EntryFault[]] {
  const ranges: AddressRange[] = [];
  const faults: EntryFault[] = [];
  for (const entry of text.split(',').map((one) => one.trim())) {
    if (Object.hasOwn(presets, entry)) {
      ranges.push(...addressRanges(presets[entry] ?? []));
      continue;
    }
    const range = parseRange(entry);
    if (typeof range === 'string') faults.push({ entry, message: range });
    else if (isMapped(range)) faults.push({ entry, message: 'must be written as IPv4' });
    else ranges.push(range);
  }
  return [ranges, faults];
}

/** @throws TypeError if one of them is no range */
export function addressRanges(texts: readonly string[]): AddressRange[] {
  return texts.map((text) => {
    const range = parseRange(text);
    if (typeof range === 'string') throw new TypeError(`${text} ${range}`);
    return range;
  });
}

/** The range, or its fault. */
function parseRange(text: string): AddressRange | string {
  const [, address = '', given] = /^([\d.]+|[\da-f:.]*:[\da-f:.]*)(?:\/(\d{1,3}))?$/i.exec(text) ?? [];
  const bytes = addressBytes(address);
  if (bytes === null) return 'is neither an address nor a range of them';
  const size = bytes.length * 8;
  const prefix = given === undefined ? size : Number(given);
  if (prefix > size) return `must have at most ${size} bits after the slash`;
  const begin = bytes.map((byte, index) => byte & maskOf(prefix, index));
  if (begin.some((byte, index) => byte !== bytes[index]))
    return `has bits set after the first ${prefix}: a range begins with its first address`;
  return { text, bytes, prefix };
}

function maskOf(prefix: number, index: number): number {
  const bits = Math.min(Math.max(prefix - index * 8, 0), 8);
  return (0xff << (8 - bits)) & 0xff;
}

/** RFC 4291, 2.5.5.2: IPv4-mapped IPv6 addresses. A resolver answers them as IPv4, so such a range would never match. */
const MAPPED = addressRanges(['::ffff:0:0/96']);

function isMapped({ bytes, prefix }: AddressRange): boolean {
  return MAPPED.some((mapped) => prefix >= mapped.prefix && isInRange(bytes, mapped));
}

/** The 4 or 16 bytes of an address in its usual form, without its zone (`%eth0`). Null: the text is no address. */
export function addressBytes(text: string): Uint8Array | null {
  const plain = text.split('%', 1)[0] ?? '';
  switch (isIP(plain)) {
    case 4:
      return ipv4Bytes(plain);
    case 6:
      return ipv6Bytes(plain);
    default:
      return null;
  }
}

function ipv4Bytes(text: string): Uint8Array {
  return Uint8Array.from(text.split('.'), Number);
}

/** RFC 4291, 2.2: groups of 16 bits, `::` for a row of zeros, the last 32 bits perhaps as IPv4. */
function ipv6Bytes(text: string): Uint8Array {
  const [head = '', tail] = text.split('::');
  const front = bytesOfGroups(head);
  const back = bytesOfGroups(tail ?? '');
  const bytes = new Uint8Array(16);
  bytes.set(front);
  bytes.set(back, 16 - back.length);
  return bytes;
}

function bytesOfGroups(text: string): number[] {
  if (text === '') return [];
  return text.split(':').flatMap((group) => {
    if (group.includes('.')) return [...ipv4Bytes(group)];
    const value = Number.parseInt(group, 16);
    return [value >> 8, value & 0xff];
  });
}

/** `default` of FIRELOCK_TARGET_DENY_CIDRS: addresses that no target needs and an attacker wants. */
const DEFAULT = [
  // Unspecified: Linux connects to this machine.
  '0.0.0.0/8',
  '::/128',
  // Link-local: the metadata services of most clouds, which hand out credentials.
  '169.254.0.0/16',
  'fe80::/10',
  // Metadata services that are not link-local: Alibaba, Azure, Oracle (two), AWS, Google, Scaleway.
  '100.100.100.200/32',
  '168.63.129.16/32',
  '192.0.0.192/32',
  'fd00:c1::a9fe:a9fe/128',
  'fd00:ec2::/32',
  'fd20:ce::254/128',
  'fd00:42::42/128',
  // Multicast and broadcast.
  '224.0.0.0/4',
  '255.255.255.255/32',
  'ff00::/8',
];

/** Everything that IANA's registries of special-purpose addresses do not call globally reachable: only the public Internet is left. */
const NOT_PUBLIC = [
  '10.0.0.0/8',
  '100.64.0.0/10',
  '127.0.0.0/8',
  '172.16.0.0/12',
  '192.0.0.0/24',
  '192.0.2.0/24',
  '192.88.99.0/24',
  '192.168.0.0/16',
  '198.18.0.0/15',
  '198.51.100.0/24',
  '203.0.113.0/24',
  '240.0.0.0/4',
  '::1/128',
  '64:ff9b:1::/48',
  '100::/64',
  '100:0:0:1::/64',
  '2001::/23',
  '2001:db8::/32',
  '3fff::/20',
  '5f00::/16',
  'fc00::/7',
  'fec0::/10',
];

export const DENIED_PRESETS = { default: DEFAULT, strict: [...DEFAULT, ...NOT_PUBLIC] };

/** What a `Host` may name. */
export interface AllowedHosts {
  /** In lower case, without a dot at the end. */
  readonly names: readonly string[];
  readonly ranges: readonly AddressRange[];
}

export function isAllowedHost(host: string, { names, ranges }: AllowedHosts): boolean {
  const bytes = addressBytes(host);
  return bytes === null ? names.includes(host) : ranges.some((range) => isInRange(bytes, range));
}

/** The names by which a machine calls itself, and the name or address that the daemon listens on. */
export function withOwnHosts(host: string, { names, ranges }: AllowedHosts): AllowedHosts {
  const own = host.replace(/%.*$/, '');
  const isAddress = addressBytes(own) !== null;
  return {
    names: [...names, 'localhost', ...(isAddress ? [] : [own.toLowerCase()])],
    ranges: [...ranges, ...addressRanges(['127.0.0.0/8', '::1', ...(isAddress ? [own] : [])])],
  };
}

/** Reads a comma-separated list of host names, addresses, and ranges of addresses. Each other entry is a fault. */
export function parseAllowedHosts(text: string): [hosts: AllowedHosts, faults: EntryFault[]] {
  const entries = text.split(',').map((entry) => entry.trim());
  const names = entries.filter((entry) => NAME.test(entry));
  const others = entries.filter((entry) => !NAME.test(entry)).map((entry) => entry.replace(/^\[(.*)\]$/, '$1'));
  const [ranges, faults] = others.length === 0 ? [[], []] : parseAddressRanges(others.join());
  return [
    { names: names.map((name) => name.toLowerCase().replace(/\.$/, '')), ranges },
    faults.map(({ entry, message }) => ({
      entry,
      message: `is no name of a host (without a port), and ${message}`,
    })),
  ];
}

/** What ends in a number is an address, or a mistyped one. */
const NAME = /^(?=.{1,253}$)(?!(.*\.)?\d+\.?$)\w([\w-]*\w)?(\.\w([\w-]*\w)?)*\.?$/;
