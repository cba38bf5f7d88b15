import { isObject } from './json-body.ts';
import type { Fault } from '../problem.ts';

/** The items of a batch as they were sent; none for any other body. */
export function itemsSent(body: unknown): readonly unknown[] {
  const items = isObject(body) ? body['items'] : undefined;
  return Array.isArray(items) ? items : [];
}

/** Items that have the same name as an earlier item. */
export function repeatedInItems(items: readonly unknown[], name: string): Fault[] {
  const first = new Map<unknown, number>();
  return items.flatMap((item, index) => {
    const value = isObject(item) ? item[name] : undefined;
    if (value === undefined || value === null) return [];
    const earlier = first.get(value);
    if (earlier === undefined) first.set(value, index);
    return earlier === undefined
      ? []
      : [{ path: `/items/${index}/${name}`, message: `is the ${name} of item ${earlier} too` }];
  });
}
