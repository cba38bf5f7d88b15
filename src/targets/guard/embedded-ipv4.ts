import { type AddressRange, addressRanges, isInRange } from '../../config/address-ranges.ts';

/**
 * The IPv4 addresses that an IPv6 address may lead to, as the network translates or tunnels it. Judging the address
 * includes judging these: a list that denies 169.254.169.254 would otherwise let `64:ff9b::a9fe:a9fe` through.
 */
export function embeddedIpv4(address: Uint8Array): Uint8Array[] {
  if (address.length !== 16 || isUnspecifiedOrLoopback(address)) return [];
  return EMBEDDINGS.filter(({ range }) => isInRange(address, range)).flatMap(({ read }) => read(address));
}

interface Embedding {
  range: AddressRange;
  read: (address: Uint8Array) => Uint8Array[];
}

const EMBEDDINGS: readonly Embedding[] = [
  // IPv4-compatible, IPv4-mapped (RFC 4291, 2.5.5) and IPv4-translated (RFC 2765, RFC 6145).
  embedding('::/96', last),
  embedding('::ffff:0:0/96', last),
  embedding('::ffff:0:0:0/96', last),
  // NAT64: 64:ff9b::/96 (RFC 6052), and 64:ff9b:1::/48 for use in a network (RFC 8215), whose layout the network chooses.
  embedding('64:ff9b::/32', (address) => inAnyOf(LAYOUTS, address)),
  embedding('64:ff9b:1::/48', (address) => inAnyOf(LAYOUTS.slice(AFTER_48_BITS), address)),
  // 6to4 (RFC 3056).
  embedding('2002::/16', (address) => [address.slice(2, 6)]),
  // Teredo (RFC 4380): the server, and the client with all bits turned.
  embedding('2001::/32', (address) => [address.slice(4, 8), address.slice(12).map((byte) => byte ^ 0xff)]),
];

function embedding(range: string, read: Embedding['read']): Embedding {
  const [parsed] = addressRanges([range]);
  if (parsed === undefined) throw new TypeError(range);
  return { range: parsed, read };
}

function last(address: Uint8Array): Uint8Array[] {
  return [address.slice(12)];
}

/**
 * RFC 6052, 2.2: after 32, 40, 48, 56, 64 or 96 bits, around byte 8. A translator ignores byte 8 and the bytes that follow,
 * so every address fits every layout, and is judged by each. A reading that begins with zero is padding, unless all do.
 */
function inAnyOf(layouts: readonly number[][], address: Uint8Array): Uint8Array[] {
  const readings = layouts.map((places) => Uint8Array.from(places, (index) => address[index] ?? 0));
  const meant = readings.filter((reading) => reading[0] !== 0);
  return meant.length > 0 ? meant : readings;
}

const LAYOUTS = [
  [4, 5, 6, 7],
  [5, 6, 7, 9],
  [6, 7, 9, 10],
  [7, 9, 10, 11],
  [9, 10, 11, 12],
  [12, 13, 14, 15],
];
const AFTER_48_BITS = 2;

function isUnspecifiedOrLoopback(address: Uint8Array): boolean {
  return address.subarray(0, 15).every((byte) => byte === 0) && (address[15] ?? 0) <= 1;
}
