import type { IncomingHttpHeaders } from 'node:http';
import { type AddressRange, addressBytes, isInRange } from '../../config/address-ranges.ts';
import { type Caller, isCallerName, isRole } from '../../core/access/roles.ts';

/** From proxies at these addresses, headers name the caller. From all others they mean nothing. */
export interface TrustedProxies {
  /** Null: the request names no user. */
  callerOf(address: string, headers: IncomingHttpHeaders): Caller | 'unusable' | null;
  isOne(address: string): boolean;
}

export function createTrustedProxies(ranges: readonly AddressRange[]): TrustedProxies {
  const isOne = (address: string) => {
    const bytes = addressBytes(address);
    return bytes !== null && ranges.some((range) => isInRange(bytes, range));
  };
  return {
    isOne,
    callerOf: (address, headers) => {
      const { 'x-firelock-user': name, 'x-firelock-role': role } = headers;
      if (name === undefined || !isOne(address)) return null;
      // A header that was sent twice comes as `a, b`, which is no name and no role: a proxy has to replace what a client sent.
      const isUsable = typeof name === 'string' && typeof role === 'string';
      return isUsable && isCallerName(name) && isRole(role) ? { name, role } : 'unusable';
    },
  };
}
