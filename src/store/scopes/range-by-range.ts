import type { SQL } from 'drizzle-orm';
import { type Scope, isAfterRange, rangesOf, seenPrefixes } from '../../core/access/scope.ts';
import { isWithin } from './in-scope.ts';

interface Page {
  scope: Scope;
  /** Only names after this one. */
  after?: string | null | undefined;
  limit: number;
}

/**
 * A page of what a caller of this scope sees, by name: from range to range until it is full. One statement with all ranges could walk the
 * names between them too. `read` adds the conditions to its own, reads by name and at most `limit`; without a scope there are none.
 */
export async function readRangeByRange<Row>(
  { scope, after, limit }: Page,
  column: SQL,
  read: (conditions: SQL[], limit: number) => Promise<Row[]>,
): Promise<Row[]> {
  if (scope === null) return read([], limit);
  const found: Row[] = [];
  for (const range of rangesOf(seenPrefixes(scope))) {
    if (after !== undefined && after !== null && isAfterRange(after, range)) continue;
    found.push(...(await read([isWithin(column, range)], limit - found.length)));
    if (found.length >= limit) break;
  }
  return found;
}
