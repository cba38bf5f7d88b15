import { type AddressRange, addressBytes, isInRange, parseAddressRanges } from './address-ranges.ts';

/** What is called directly, although there is an egress proxy. */
export interface EgressBypass {
  /** Small letters, without the dot of the root. */
  names: ReadonlySet<string>;
  /** Each begins with a dot: all names below. */
  suffixes: readonly string[];
  /** Of addresses that a URL has; what a name resolves to plays no part. */
  ranges: readonly AddressRange[];
}

export const BYPASS_HINT =
  'hosts, suffixes (.internal.test), addresses and ranges that are called directly, comma-separated (default none)';
export const NO_BYPASS: EgressBypass = { names: new Set(), suffixes: [], ranges: [] };

const NAME = /^\.?[a-z0-9_]([a-z0-9_-]*[a-z0-9_])?(\.[a-z0-9_]([a-z0-9_-]*[a-z0-9_])?)*$/;

/** Reads a comma-separated list of hosts, suffixes as `.internal.test`, addresses and ranges of them. Each other entry is a fault. */
export function parseEgressBypass(
  text: string,
): [bypass: EgressBypass, faults: { entry: string; message: string }[]] {
  const names = new Set<string>();
  const suffixes: string[] = [];
  const ranges: AddressRange[] = [];
  const faults: { entry: string; message: string }[] = [];
  for (const entry of text.split(',').map((one) => one.trim())) {
    const found = parseAddressRanges(entry);
    const name = entry.toLowerCase().replace(/\.$/, '');
    if (found.faults.length === 0) ranges.push(...found.ranges);
    else if (/^[\d.]+(\/|$)|:/.test(entry)) faults.push(...found.faults);
    else if (!NAME.test(name)) faults.push({ entry, message: 'is no host, suffix, address or range' });
    else if (name.startsWith('.')) suffixes.push(name);
    else names.add(name);
  }
  return [{ names, suffixes, ranges }, faults];
}

/** `host`: of a URL, without brackets. */
export function isDirect({ names, suffixes, ranges }: EgressBypass, host: string): boolean {
  const bytes = addressBytes(host);
  if (bytes !== null) return ranges.some((range) => isInRange(bytes, range));
  const name = host.toLowerCase().replace(/\.$/, '');
  return names.has(name) || suffixes.some((suffix) => name.endsWith(suffix));
}
