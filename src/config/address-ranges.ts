import { addressBytes } from './ip-address.ts';

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

/** The entry and its fault: "10.0.0/8" is neither … */
interface RangeFault {
  entry: string;
  message: string;
}

/**
 * Reads a comma-separated list of ranges (`10.0.0.0/8`, `fd00::/8`), single addresses, and names of presets. Each other
 * entry is a fault.
 */
export function parseAddressRanges(
  text: string,
  presets: Presets = {},
): { ranges: AddressRange[]; faults: RangeFault[] } {
  const ranges: AddressRange[] = [];
  const faults: RangeFault[] = [];
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
  return { ranges, faults };
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
