import type { FastifyRequest } from 'fastify';
import { yieldToEventLoop } from '../../runtime/loop/slices.ts';
import { isObject } from '../http/json/json-body.ts';
import { type Fault, MAX_FAULTS } from '../http/problem.ts';
import { itemsSent, repeatedInItems } from '../http/json/repeated.ts';
import { RUN_ID } from '../http/common-schemas.ts';
import { MAX_DEPENDENCIES } from './one-off-schemas.ts';

/** For `alsoCheck`: the dependencies of a one-off run. */
export function dependencyFaults({ body }: FastifyRequest): Fault[] {
  return faultsOf(body, '', new Set());
}

/** For `alsoCheck`: the refs, keys and dependencies of the items of a batch. */
export async function batchFaults({ body }: FastifyRequest): Promise<Fault[]> {
  const items = itemsSent(body);
  const faults = [...repeatedInItems(items, 'ref'), ...repeatedInItems(items, 'key')];
  const refs = refsOf(items);
  for (const [index, item] of items.entries()) {
    if (faults.length > MAX_FAULTS) break;
    await yieldToEventLoop();
    faults.push(...faultsOf(item, `/items/${index}`, refs));
  }
  return faults;
}

function refsOf(items: readonly unknown[]): Set<unknown> {
  return new Set(items.map((item) => (isObject(item) ? item['ref'] : undefined)));
}

/** An entry that is no ref is the id of a run. */
export function dependencyNamed(entry: string, refs: ReadonlySet<unknown>): string {
  return refs.has(entry) ? entry : entry.toLowerCase();
}

function faultsOf(input: unknown, path: string, refs: ReadonlySet<unknown>): Fault[] {
  const entries: unknown = isObject(input) ? input['dependsOn'] : undefined;
  if (!Array.isArray(entries) || entries.length > MAX_DEPENDENCIES) return [];
  const first = new Map<string, number>();
  return entries.flatMap((entry: unknown, index): Fault[] => {
    if (typeof entry !== 'string') return [];
    const at = `${path}/dependsOn/${index}`;
    if (!refs.has(entry) && !RUN_ID.test(entry)) {
      const known =
        path === '' ? 'is not the id of a run' : 'is neither a ref of this call nor the id of a run';
      return [{ path: at, message: `${known} (a UUID)` }];
    }
    const named = dependencyNamed(entry, refs);
    const earlier = first.get(named);
    if (earlier === undefined) first.set(named, index);
    return earlier === undefined ? [] : [{ path: at, message: `is dependsOn/${earlier} too` }];
  });
}
