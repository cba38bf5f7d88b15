import type { LookupAddress } from 'node:dns';
import { isIP } from 'node:net';

/** The addresses of each name of a hosts file, in its order; names in lower case (hosts(5)). */
export function parseHosts(text: string): ReadonlyMap<string, readonly LookupAddress[]> {
  const known = new Map<string, LookupAddress[]>();
  for (const line of text.split('\n')) {
    const [address = '', ...names] = (line.split('#', 1)[0] ?? '').trim().split(/\s+/);
    const family = isIP(address);
    if (family === 0) continue;
    for (const name of names) add(known, withoutFinalDot(name.toLowerCase()), { address, family });
  }
  return known;
}

export function withoutFinalDot(name: string): string {
  return name.endsWith('.') ? name.slice(0, -1) : name;
}

function add(known: Map<string, LookupAddress[]>, name: string, one: LookupAddress): void {
  const others = known.get(name);
  if (others === undefined) known.set(name, [one]);
  else if (!others.some(({ address }) => address === one.address)) others.push(one);
}
