import {
  type AddressRange,
  addressBytes,
  addressRanges,
  isInRange,
  parseAddressRanges,
} from './address-ranges.ts';
import type { EntryFault } from './variable-kinds.ts';

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
  const others = entries
    .filter((entry) => !NAME.test(entry))
    .map((entry) => entry.replace(/^\[(.*)\]$/, '$1'));
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
