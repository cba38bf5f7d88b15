import { isIP } from 'node:net';

/** A range of addresses: those that begin with the same `prefix` bits as `address`. */
export interface AddressRange {
  address: string;
  prefix: number;
  family: 'ipv4' | 'ipv6';
}

/** Reads `10.0.0.0/8,fd00::/8,192.0.2.7`; an address alone is a range of one. Null: a part of it is none. */
export function parseRanges(list: string): AddressRange[] | null {
  const ranges = list.split(',').map((text) => parseRange(text.trim()));
  return ranges.every((range) => range !== null) ? ranges : null;
}

function parseRange(text: string): AddressRange | null {
  const [, address = '', bits] = /^([^/]+)(?:\/(\d{1,3}))?$/.exec(text) ?? [];
  const version = isIP(address);
  if (version === 0 || address.includes('%')) return null;
  const longest = version === 4 ? 32 : 128;
  const prefix = bits === undefined ? longest : Number(bits);
  return prefix <= longest ? { address, prefix, family: version === 4 ? 'ipv4' : 'ipv6' } : null;
}
