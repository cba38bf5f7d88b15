import type { FastifyRequest } from 'fastify';
import type { z } from 'zod';
import { instant, queryInstant } from './common-schemas.ts';
import { isObject } from './json/json-body.ts';
import type { Fault } from './problem.ts';

/** For `alsoCheck`, as all of these: an empty period is a mistake of the caller. */
export function emptyPeriod({ query }: FastifyRequest): Fault[] {
  return emptyPeriodOf(query, queryInstant, 'to');
}

export function emptyPeriodInBody({ body }: FastifyRequest): Fault[] {
  return emptyPeriodOf(body, instant, '/to');
}

export const LATER_THAN_FROM = 'must be later than from';

function emptyPeriodOf(period: unknown, schema: z.ZodType<number>, path: string): Fault[] {
  if (!isObject(period)) return [];
  const [first, end] = [schema.safeParse(period['from']), schema.safeParse(period['to'])];
  if (!first.success || !end.success || first.data < end.data) return [];
  return [{ path, message: LATER_THAN_FROM }];
}

export function idOfAnother({ params, body }: FastifyRequest): Fault[] {
  const { id } = params as { id: string };
  if (!isObject(body) || body['id'] === undefined || body['id'] === id) return [];
  return [{ path: '/id', message: 'must be the id in the path' }];
}

export function unexpectedBody({ body }: FastifyRequest): Fault[] {
  return body === undefined ? [] : [{ path: '', message: 'must be absent: this call takes no body' }];
}

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
      : [{ path: `/items/${index}/${name}`, message: `repeats the ${name} of item ${earlier}` }];
  });
}
