import type { IncomingHttpHeaders } from 'node:http';
import { type AddressRange, addressBytes, isInRange } from '../../config/address-ranges.ts';
import { type Caller, isCallerName, isRole } from '../../core/access/roles.ts';
import { type Scope, parseScope } from '../../core/access/scope.ts';

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
      const scope = scopeOf(headers['x-firelock-scope']);
      if (!isUsable || scope === undefined) return 'unusable';
      return isCallerName(name) && isRole(role) ? { name, role, scope } : 'unusable';
    },
  };
}

/** Undefined: it cannot be read. An empty one is refused: a proxy that found no group for a user must not give all names. */
function scopeOf(header: string | string[] | undefined): Scope | undefined {
  if (header === undefined) return null;
  return typeof header === 'string' ? (parseScope(header) ?? undefined) : undefined;
}
