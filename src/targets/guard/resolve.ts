import { ADDRCONFIG, type LookupAddress } from 'node:dns';
import { lookup } from 'node:dns/promises';
import { isIP } from 'node:net';

/** All addresses of a name, in the order in which to try them. @throws if there are none, or they cannot be found out */
export type Resolve = (name: string) => Promise<readonly LookupAddress[]>;

/** As every program of this machine resolves names: by its hosts file and its DNS. */
export const resolveByMachine: Resolve = (name) =>
  lookup(name, { all: true, hints: process.platform === 'win32' ? 0 : ADDRCONFIG });

/** The addresses of a name; an address stands for itself. */
export async function addressesOf(host: string, resolve: Resolve): Promise<readonly LookupAddress[]> {
  const family = isIP(host);
  if (family !== 0) return [{ address: host, family }];
  const found = await resolve(host);
  if (found.length > 0) return found;
  throw Object.assign(new Error(`${host} has no address`), { syscall: 'getaddrinfo' });
}
