import { BlockList, isIP } from 'node:net';
import type { IncomingHttpHeaders } from 'node:http';
import type { AddressRange } from '../../config/cidr-list.ts';
import { type Caller, isCallerName, isRole } from '../../core/access/roles.ts';

/** From proxies at these addresses, headers name the caller. From all others they mean nothing. */
interface TrustedProxies {
  /** Null: the request names nobody so. */
  callerOf(address: string, headers: IncomingHttpHeaders): Caller | 'unusable' | null;
}

export function createTrustedProxies(ranges: readonly AddressRange[]): TrustedProxies {
  const trusted = new BlockList();
  for (const { address, prefix, family } of ranges) trusted.addSubnet(address, prefix, family);
  return {
    callerOf: (address, headers) => {
      const { 'x-firelock-user': name, 'x-firelock-role': role } = headers;
      const version = isIP(address);
      if (name === undefined || version === 0) return null;
      if (!trusted.check(address, version === 4 ? 'ipv4' : 'ipv6')) return null;
      // A header that was sent twice comes as `a, b`, which is no name and no role: a proxy has to replace what a client sent.
      const isUsable = typeof name === 'string' && typeof role === 'string';
      return isUsable && isCallerName(name) && isRole(role) ? { name, role } : 'unusable';
    },
  };
}
